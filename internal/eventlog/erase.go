package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// ErrDeleted says that the log ends with a tombstone (event.Type.Tombstone): its events
// are gone, or about to go, and appends are refused. It is wrapped in the fault that
// clients see.
var ErrDeleted = errors.New("log was deleted")

// eraseTimeout bounds one purge. The server looks at every message of the log once;
// 100,000 events take well under a second.
const eraseTimeout = 10 * time.Second

// deleted returns the error of a deleted log.
func deleted(log subject.Log) error {
	code := fault.NotFound
	switch log.Kind {
	case id.KindSession:
		code = fault.SessionDeleted
	case id.KindTask:
		code = fault.TaskNotFound
	}
	return fault.New(code).Wrap(fmt.Errorf("%w: %s", ErrDeleted, log))
}

// Erase removes every event of a deleted log but its tombstone, and returns how many
// it removed. A repeat removes nothing. A log that does not end with a tombstone is
// refused with ErrRefused; an empty log has nothing to remove. Erase returns
// fault.BusUnavailable wrapped if the bus did not answer for Options.Retry.
//
// Readers of every Store stop at the tombstone from its append on; Erase frees what
// they no longer serve.
func (s *Store) Erase(ctx context.Context, log subject.Log) (removed uint64, err error) {
	err = s.retry(ctx, func() error {
		last, err := s.leaderLast(ctx, log)
		switch {
		case errors.Is(err, errNone):
			return nil
		case err != nil:
			return err
		case !last.Type.Tombstone():
			return fmt.Errorf("%w: erase %s, which ends with %s", ErrRefused, log, last.Type)
		}
		n, err := s.purge(ctx, log, last.Stream)
		removed += n
		return err
	})
	return removed, err
}

// purge removes the log's messages that are stored before the stream sequence.
func (s *Store) purge(ctx context.Context, log subject.Log, before uint64) (uint64, error) {
	body, err := json.Marshal(struct {
		Filter string `json:"filter"`
		Seq    uint64 `json:"seq"`
	}{log.Event(), before})
	if err != nil {
		return 0, fmt.Errorf("encode purge of %s: %w", log, err)
	}
	m, err := s.replies.one(ctx, &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + log.Stream(), Data: body}, eraseTimeout)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Success bool      `json:"success"`
		Purged  uint64    `json:"purged"`
		Error   *apiError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return 0, fmt.Errorf("answer to purge of %s: %w", log, err)
	}
	if answer.Error != nil {
		return 0, fmt.Errorf("purge %s: %w", log, answer.Error)
	}
	if !answer.Success {
		return 0, fmt.Errorf("purge %s: the server did not say that it succeeded", log)
	}
	return answer.Purged, nil
}

// Erased reports whether nothing is left of the log but its tombstone, or nothing at
// all. Its errors are those of Ends.
func (s *Store) Erased(ctx context.Context, log subject.Log) (bool, error) {
	first, _, err := s.Ends(ctx, log)
	return err == nil && (first == nil || first.Type.Tombstone()), err
}

// bury empties the ring of a log that was deleted: from now on the tombstone is all
// that viewers get. mu is held.
func (t *tail) bury(tombstone *Entry) {
	t.tombstone = tombstone
	t.ring.clear()
	t.s.said.forget(t.log)
}

// grave returns the tombstone of the log, nil while the log lives.
func (t *tail) grave() *Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tombstone
}
