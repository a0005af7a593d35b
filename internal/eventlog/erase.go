package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// ErrDeleted means that the log ends with a tombstone (event.Type.Tombstone): its events are gone, or about to go,
// and the log refuses appends. The fault that clients see wraps it.
var ErrDeleted = errors.New("log was deleted")

// eraseTimeout bounds one purge. The server reads every message of the log once; 100,000 events take well under a
// second.
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

// Erase removes every event of a deleted log but its tombstone, and returns the number of removed events. It is
// idempotent, and does nothing to an empty log. It returns ErrRefused for a log that does not end with a tombstone,
// and fault.BusUnavailable wrapped if the bus did not answer for Options.Retry.
//
// Readers of every Store stop at the tombstone as soon as it is appended; Erase frees the events that they do not
// serve any more.
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
	}{s.partitions.Event(log), before})
	if err != nil {
		return 0, fmt.Errorf("encode purge of %s: %w", log, err)
	}
	m, err := s.replies.One(ctx, &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + s.partitions.Stream(log), Data: body}, eraseTimeout)
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

// Erased reports whether the log is empty or holds only its tombstone. Its errors are those of Ends.
func (s *Store) Erased(ctx context.Context, log subject.Log) (bool, error) {
	first, _, err := s.Ends(ctx, log)
	return err == nil && (first == nil || first.Type.Tombstone()), err
}

// bury empties the ring of a deleted log: from now on viewers get only the tombstone. mu is held.
func (t *tail) bury(tombstone *Entry) {
	t.tombstone = tombstone
	t.ring.Clear()
	t.s.said.forget(t.log)
	t.s.recent.forget(t.log)
}

// grave returns the tombstone of the log, nil while the log lives.
func (t *tail) grave() *Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tombstone
}
