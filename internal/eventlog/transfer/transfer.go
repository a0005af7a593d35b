// Package transfer copies the logs of a tenant to another installation, event by event: the same bytes under the same seq.
//
// The logs must not change meanwhile. Positions in streams differ after a copy; readers take them as hints. Ids that a stream
// uses to recognise repeats are not copied, because the new stream would take a copy that it has seen before for a repeat:
// writers do not rely on them.
package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// parallel bounds the shards that are copied at once.
const parallel = 4

// Sum is the number of events of a log, and a digest of their seqs and bytes.
type Sum struct {
	Events uint64
	Last   uint64 // seq
	Ended  bool   // with a tombstone
	Digest [sha256.Size]byte
}

// Census holds a Sum of each log of a tenant.
type Census map[subject.Log]Sum

// Events returns the number of events of all logs.
func (c Census) Events() (n uint64) {
	for _, s := range c {
		n += s.Events
	}
	return n
}

// Same reports whether both have the same logs with the same events.
func (c Census) Same(o Census) bool { return maps.Equal(c, o) }

// Differ returns the logs in which both differ.
func (c Census) Differ(o Census) (out []subject.Log) {
	for log, sum := range c {
		if o[log] != sum {
			out = append(out, log)
		}
	}
	for log := range o {
		if _, ok := c[log]; !ok {
			out = append(out, log)
		}
	}
	slices.SortFunc(out, func(a, b subject.Log) int { return slices.Compare([]byte(a.Name()), []byte(b.Name())) })
	return out
}

// Take reads all logs of a tenant.
func Take(ctx context.Context, c *bus.Conn, t id.Tenant) (Census, error) {
	return each(ctx, c, t, func(context.Context, *bus.Message, subject.Log) error { return nil })
}

// Copy copies all logs of a tenant, which the target must not have, and returns what it has copied.
func Copy(ctx context.Context, from, to *bus.Conn, t id.Tenant) (Census, error) {
	var mu sync.Mutex
	ends := map[subject.Log]uint64{} // sequences in the target's streams
	return each(ctx, from, t, func(ctx context.Context, m *bus.Message, log subject.Log) error {
		mu.Lock()
		end := ends[log]
		mu.Unlock()
		out := &nats.Msg{Subject: to.Partitions().Event(log), Data: m.Data, Header: nats.Header{
			event.HeaderSeq: m.Header[event.HeaderSeq], event.HeaderType: m.Header[event.HeaderType],
		}}
		ack, err := to.JS().PublishMsg(ctx, out, jetstream.WithExpectLastSequencePerSubject(end))
		if err != nil {
			return fmt.Errorf("copy event %s of %s: %w", m.Header.Get(event.HeaderSeq), log, err)
		}
		mu.Lock()
		ends[log] = ack.Sequence
		mu.Unlock()
		return nil
	})
}

// Remove removes all logs of a tenant.
func Remove(ctx context.Context, c *bus.Conn, t id.Tenant) error {
	for _, p := range c.Partitions().All() {
		if err := c.Purge(ctx, p.EventStream(), p.TenantFilter(t)); err != nil {
			return err
		}
	}
	return nil
}

// each visits all events of a tenant, those of one log in order, and returns their sums.
func each(ctx context.Context, c *bus.Conn, t id.Tenant, visit func(context.Context, *bus.Message, subject.Log) error) (Census, error) {
	var mu sync.Mutex
	all := Census{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, p := range c.Partitions().All() {
		g.Go(func() error {
			logs := map[subject.Log]*running{}
			err := c.Each(ctx, p.EventStream(), false, func(m *bus.Message) error {
				log, err := c.Partitions().ParseEvent(m.Subject)
				if err != nil {
					return err
				}
				r := logs[log]
				if r == nil {
					r = &running{digest: sha256.New()}
					logs[log] = r
				}
				if fresh, err := r.add(m); err != nil || !fresh {
					return err
				}
				return visit(ctx, m, log)
			}, p.TenantFilter(t))
			mu.Lock()
			defer mu.Unlock()
			for log, r := range logs {
				r.sum.Digest = [sha256.Size]byte(r.digest.Sum(nil))
				all[log] = r.sum
			}
			return err
		})
	}
	return all, g.Wait()
}

// running is the sum of the events of a log so far.
type running struct {
	sum    Sum
	digest hash.Hash
}

// errHole means that a log is not dense.
var errHole = errors.New("the log has a hole")

// add adds an event. It leaves out one that is stored twice, as readers do.
func (r *running) add(m *bus.Message) (fresh bool, err error) {
	seq, err := strconv.ParseUint(m.Header.Get(event.HeaderSeq), 10, 64)
	switch {
	case err != nil:
		return false, fmt.Errorf("%s at %d: %w", m.Subject, m.Sequence, err)
	case r.sum.Events > 0 && seq <= r.sum.Last:
		return false, nil
	case r.sum.Events > 0 && seq != r.sum.Last+1:
		return false, fmt.Errorf("%w: %s has %d after %d", errHole, m.Subject, seq, r.sum.Last)
	}
	r.sum.Events, r.sum.Last = r.sum.Events+1, seq
	r.sum.Ended = event.Type(m.Header.Get(event.HeaderType)).Tombstone()
	var head [16]byte
	binary.BigEndian.PutUint64(head[:8], seq)
	binary.BigEndian.PutUint64(head[8:], uint64(len(m.Data)))
	_, _ = r.digest.Write(head[:]) // a hash never fails
	_, _ = r.digest.Write(m.Data)
	return true, nil
}
