package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/internal/bus"
)

// The copy of CMD holds each command that is unfinished when the copy begins, and a restore repeats it. The copy lacks later
// commands. The sender of a command appends to a log first, so that commands can be missing only for logs that grow between
// that moment and their own copy; a restore wakes those logs.

// codeNoMessage is JetStream's answer if the stream has no message from a sequence on.
const codeNoMessage = 10037

// ends returns the last sequences of the event streams.
func ends(ctx context.Context, c *bus.Conn) (map[string]uint64, error) {
	out := map[string]uint64{}
	for _, p := range c.Partitions().All() {
		s, err := c.JS().Stream(ctx, p.EventStream())
		if err != nil {
			return nil, fmt.Errorf("read the stream %s: %w", p.EventStream(), err)
		}
		out[p.EventStream()] = s.CachedInfo().State.LastSeq
	}
	return out, nil
}

// grown returns the subjects of all copied events beyond the ends.
func grown(ctx context.Context, c *bus.Conn, before map[string]uint64, copies []Stream) ([]string, error) {
	var mu sync.Mutex
	found := map[string]bool{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, s := range copies {
		last, ok := before[s.Name]
		if !ok {
			continue
		}
		g.Go(func() error {
			filter, err := s.filter()
			if err != nil {
				return err
			}
			for seq := last + 1; seq <= s.LastSeq; {
				at, subj, err := after(ctx, c, s.Name, filter, seq)
				if err != nil || at > s.LastSeq || at == 0 {
					return err
				}
				mu.Lock()
				found[subj] = true
				mu.Unlock()
				seq = at + 1
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("look for logs that have grown: %w", err)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// filter returns the subjects that the stream holds.
func (s Stream) filter() (string, error) {
	var cfg struct {
		Subjects []string `json:"subjects"`
	}
	if err := json.Unmarshal(s.Config, &cfg); err != nil {
		return "", err
	}
	if len(cfg.Subjects) != 1 {
		return "", fmt.Errorf("the stream %s holds %q", s.Name, cfg.Subjects)
	}
	return cfg.Subjects[0], nil
}

// after returns the first message from a sequence on, or 0. It asks the leader: another copy may not have the message yet.
func after(ctx context.Context, c *bus.Conn, stream, filter string, seq uint64) (at uint64, subj string, err error) {
	var resp struct {
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
		} `json:"message"`
	}
	err = ask(ctx, c, "$JS.API.STREAM.MSG.GET."+stream, map[string]any{"seq": seq, "next_by_subj": filter}, &resp)
	if said, ok := errors.AsType[*apiError](err); ok && said.ErrCode == codeNoMessage {
		return 0, "", nil
	}
	return resp.Message.Seq, resp.Message.Subject, err
}
