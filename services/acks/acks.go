// Package acks stores how far clients have read logs. It keeps the highest acknowledged position of
// each client and log, and never moves it back.
package acks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Acks is the bucket of acknowledged positions. It is safe for concurrent use, also by
// several replicas. Its errors are fault.BusUnavailable wrapped, or ctx's.
type Acks struct{ kv jetstream.KeyValue }

// Open opens the bucket of acknowledged positions.
func Open(ctx context.Context, conn *bus.Conn) (*Acks, error) {
	kv, err := conn.Bucket(ctx, subject.BucketAcks)
	if err != nil {
		return nil, err
	}
	return &Acks{kv: kv}, nil
}

// Get returns the position of a client, 0 if it has never acknowledged one.
func (a *Acks) Get(ctx context.Context, log subject.Log, client id.Entity) (uint64, error) {
	seq, _, err := a.read(ctx, log, client)
	return seq, err
}

func (a *Acks) read(ctx context.Context, log subject.Log, client id.Entity) (seq, revision uint64, err error) {
	e, err := a.kv.Get(ctx, subject.AckKey(log, client))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("read the position of a client of %s: %w", log, err))
	}
	seq, err = strconv.ParseUint(string(e.Value()), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("the position of client %s of %s: %w", client, log, err)
	}
	return seq, e.Revision(), nil
}

// conflictPause is the pause after another writer was faster: about the lag of a follower behind
// the bucket's leader.
const conflictPause = 5 * time.Millisecond

// Put notes that a client has read up to seq. The highest of all counts, whatever
// the order in which they come.
func (a *Acks) Put(ctx context.Context, log subject.Log, client id.Entity, seq uint64) error {
	for {
		known, revision, err := a.read(ctx, log, client)
		if err != nil || known >= seq {
			return err
		}
		value := strconv.AppendUint(nil, seq, 10)
		if revision == 0 {
			_, err = a.kv.Create(ctx, subject.AckKey(log, client), value)
		} else {
			_, err = a.kv.Update(ctx, subject.AckKey(log, client), value, revision)
		}
		if err == nil {
			return nil
		}
		if !isConflict(err) {
			return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("note the position of a client of %s: %w", log, err))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(conflictPause):
		}
	}
}

// isConflict reports whether another process has written the key meanwhile.
func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
