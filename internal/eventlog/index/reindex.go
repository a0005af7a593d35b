package index

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// reindexes is how long one request for a part of the work takes, and a chunk of logs more.
	reindexes = 5 * time.Second
	// page is the number of entries that are read at once.
	page = 200
)

// Reindex rebuilds a part of a tenant's entries of the kind from the logs while all processes work. First it
// reads the logs, shard by shard, then it looks for entries without a log. Any replica may do any part, and any part twice.
func (f *Follower) Reindex(ctx context.Context, in command.ReindexRequest) (api.Reindexed, error) {
	began := f.cfg.Now()
	w := &walk{writer: &f.writer, tenant: in.Tenant, more: func() bool { return f.cfg.Now().Sub(began) < reindexes }}
	from, err := parsePlace(in.After)
	at := from
	for more := true; more && err == nil; more = more && w.more() {
		at, more, err = w.part(ctx, at)
	}
	out := api.Reindexed{Logs: w.logs.Load(), Written: w.written.Load(), Next: at.String()}
	switch {
	case errors.Is(err, errRaced) && at != from:
		err = nil // the next request begins at the busy log, and has all of its time for it
	case errors.Is(err, errRaced):
		err = fault.Newf(fault.BusUnavailable, "Other processes are writing the same entries. Try again in a few seconds.").Wrap(err)
	}
	return out, err
}

// place is how far a walk has come: in the part'th shard, or after the shards in the summaries and then in the questions.
type place struct {
	part int
	at   uint64 // the last sequence that was read; 0: none
}

// String returns the place as parsePlace reads it, empty for that of the end, which is the zero place.
func (p place) String() string {
	if p == (place{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d", p.part, p.at)
}

func parsePlace(s string) (p place, err error) {
	if s == "" {
		return p, nil
	}
	part, at, _ := strings.Cut(s, ".")
	n, err := strconv.ParseUint(part, 10, 16)
	if err == nil {
		p.part = int(n)
		p.at, err = strconv.ParseUint(at, 10, 64)
	}
	if err != nil {
		return place{}, fault.Newf(fault.InvalidField, "after must be the next value of the previous response.").At("after").Wrap(err)
	}
	return p, nil
}

// walk goes through the logs of a tenant, and through the entries that the index has of them.
type walk struct {
	*writer
	tenant        id.Tenant
	more          func() bool
	logs, written atomic.Int64
}

// part does the work from a place on, to the end of its part at most, and returns the next place, if any.
func (w *walk) part(ctx context.Context, from place) (next place, more bool, err error) {
	var end bool
	reached, shards := from.at, w.conn.Partitions().All()
	switch entries := from.part - len(shards); entries {
	case 0:
		reached, end, err = w.orphans(ctx, subject.IndexFilter(w.tenant, w.kind), from.at)
	case 1:
		reached, end, err = w.orphans(ctx, subject.TenantQuestions(w.tenant, w.kind), from.at)
	default:
		if entries > 0 {
			return place{}, false, nil
		}
		mine := func(log subject.Log, _ event.Type) bool { return log.Tenant == w.tenant }
		end, err = w.scan(ctx, shards[from.part], from.at, mine, func(logs []subject.Log, at uint64) (bool, error) {
			err := w.each(ctx, logs, w.rebuild)
			if err == nil {
				reached = at
			}
			return w.more(), err
		})
	}
	if !end || err != nil {
		return place{from.part, reached}, true, err
	}
	return place{part: from.part + 1}, true, nil
}

// orphans removes the entries of logs without events, the newest first, from before a sequence on, 0 for the end of the index.
func (w *walk) orphans(ctx context.Context, filter string, before uint64) (at uint64, end bool, err error) {
	for more := true; more; more = w.more() {
		p, err := w.index.exact.Read(ctx, filter, before, page)
		if err != nil {
			return before, false, err
		}
		seen, reached := map[subject.Log]bool{}, before
		var logs []subject.Log
		for _, e := range p.Entries {
			reached = e.Sequence
			if log, err := logOf(e.Subject); err == nil && !seen[log] {
				seen[log], logs = true, append(logs, log)
			}
		}
		if err := w.each(ctx, logs, w.orphan); err != nil {
			return before, false, err
		}
		before = reached
		if !p.More || len(p.Entries) == 0 {
			return before, true, nil
		}
	}
	return before, false, nil
}

// logOf returns the log of an entry.
func logOf(entry string) (subject.Log, error) {
	if log, err := subject.ParseIndex(entry); err == nil {
		return log, nil
	}
	log, _, _, err := subject.ParseQuestion(entry)
	return log, err
}

func (w *walk) orphan(ctx context.Context, log subject.Log) error {
	last, err := w.index.log.Last(ctx, log)
	switch {
	case errors.Is(err, eventlog.ErrDeleted), err == nil && last.Seq == 0:
		return w.rebuild(ctx, log)
	}
	return err
}

// rebuild rebuilds the entries of a log. While other processes write the same entries, it tries again as long as the request lasts.
func (w *walk) rebuild(ctx context.Context, log subject.Log) error {
	w.logs.Add(1)
	for {
		n, err := w.repair(ctx, log)
		w.written.Add(int64(n))
		if !errors.Is(err, errRaced) || !w.more() {
			return err
		}
	}
}
