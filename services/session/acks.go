package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// acks remembers how far the clients of sessions have read. It is safe for
// concurrent use, also by several replicas.
type acks struct{ kv jetstream.KeyValue }

// openAcks opens the bucket of acknowledged positions.
func openAcks(ctx context.Context, js jetstream.JetStream) (*acks, error) {
	kv, err := js.KeyValue(ctx, subject.BucketAcks)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", subject.BucketAcks, err)
	}
	return &acks{kv: kv}, nil
}

// get returns the position of a client, 0 if it has never acknowledged one.
func (a *acks) get(ctx context.Context, log subject.Log, client id.Entity) (uint64, error) {
	seq, _, err := a.read(ctx, log, client)
	return seq, err
}

func (a *acks) read(ctx context.Context, log subject.Log, client id.Entity) (seq, revision uint64, err error) {
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

// conflictPause is the pause after another writer was faster: what a follower of the
// bucket's leader lags.
const conflictPause = 5 * time.Millisecond

// put notes that a client has read up to seq. The highest of all counts, whatever
// the order in which they come.
func (a *acks) put(ctx context.Context, log subject.Log, client id.Entity, seq uint64) error {
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

// isConflict reports whether somebody else has written the key meanwhile.
func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
