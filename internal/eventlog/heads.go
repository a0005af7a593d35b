package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Heads returns the newest entry of every log of the kind that the tenant has, most recently used first. It leaves
// out deleted logs. It asks every shard, so it is meant for people and not for hot paths. For a log that is written
// meanwhile it may return the entry before the last.
func (s *Store) Heads(ctx context.Context, tenant id.Tenant, kind id.Kind) ([]*Entry, error) {
	var out []*Entry
	for _, p := range subject.AllPartitions() {
		logs, err := s.logs(ctx, p, tenant, kind)
		if err != nil {
			return nil, err
		}
		for chunk := range slices.Chunk(logs, checkChunk) {
			heads, err := s.headsOf(ctx, p, chunk)
			if err != nil {
				return nil, err
			}
			out = append(out, heads...)
		}
	}
	slices.SortFunc(out, func(a, b *Entry) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Subject, b.Subject))
	})
	return out, nil
}

// logs lists the logs of a shard by their subjects.
func (s *Store) logs(ctx context.Context, p subject.Partition, tenant id.Tenant, kind id.Kind) ([]string, error) {
	stream, err := s.conn.JS().Stream(ctx, p.EventStream())
	if err != nil {
		return nil, fmt.Errorf("list the logs of %s: %w", p.EventStream(), err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(p.LogFilter(tenant, kind)))
	if err != nil {
		return nil, fmt.Errorf("list the logs of %s: %w", p.EventStream(), err)
	}
	out := make([]string, 0, len(info.State.Subjects))
	for subj := range info.State.Subjects {
		out = append(out, subj)
	}
	slices.Sort(out)
	return out, nil
}

func (s *Store) headsOf(ctx context.Context, p subject.Partition, subjects []string) ([]*Entry, error) {
	var out []*Entry
	var broken error
	err := s.lastOf(ctx, p.EventStream(), subjects, func(m *nats.Msg) {
		log, err := subject.ParseEvent(m.Header.Get("Nats-Subject"))
		if err != nil {
			broken = err
			return
		}
		e, err := directEntry(log, m)
		if err != nil {
			broken = err
			return
		}
		if !e.Type.Tombstone() {
			out = append(out, e)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the heads of %s: %w", p.EventStream(), err)
	}
	return out, broken
}

// Ends returns the oldest remaining entry of the log and the newest, both nil if the log is empty. It counts every
// event whose append succeeded before the call. It costs two small requests to the leader of the stream, and returns
// fault.BusUnavailable wrapped if the leader does not answer for Options.Retry.
func (s *Store) Ends(ctx context.Context, log subject.Log) (first, last *Entry, err error) {
	err = s.retry(ctx, func() (err error) {
		if last, err = s.leaderLast(ctx, log); err != nil {
			last = nil
			return nothing(err)
		}
		if first, err = s.leaderNext(ctx, log, 1); err != nil {
			first, last = nil, nil // expired completely, meanwhile
		}
		return nothing(err)
	})
	return first, last, err
}

// nothing turns errNone into nil.
func nothing(err error) error {
	if errors.Is(err, errNone) {
		return nil
	}
	return err
}
