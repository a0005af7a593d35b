package stream

import (
	"context"
	"errors"
	"math"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// ToEnd as the last sequence of a read means as far as the log goes now.
const ToEnd = math.MaxUint64

// ErrEnough ends a read: a visit returns it, and Read returns nil.
var ErrEnough = errors.New("enough was read of the log")

// Read visits the events of a log after a position in order, up to the one with the sequence last. The error is that of a visit, an *eventlog.TruncatedError where the events after the position have expired, or that of
// the log.
func Read(ctx context.Context, store *eventlog.Store, log subject.Log, after eventlog.Cursor, last uint64, visit func(*eventlog.Entry) error) error {
	if last <= after.Seq {
		return nil
	}
	err := store.Read(ctx, log, after, func(e *eventlog.Entry) error {
		if e.Sequence > last {
			return ErrEnough
		}
		if err := visit(e); err != nil || e.Sequence != last {
			return err
		}
		return ErrEnough
	})
	if errors.Is(err, ErrEnough) {
		return nil
	}
	return err
}

// ReadLeft is Read of what the log has, where the events after the position have expired. It returns the sequence of the
// oldest event in that case, and 0 otherwise.
func ReadLeft(
	ctx context.Context, store *eventlog.Store, log subject.Log, after eventlog.Cursor, last uint64, visit func(*eventlog.Entry) error,
) (first uint64, err error) {
	err = Read(ctx, store, log, after, last, visit)
	if cut, ok := errors.AsType[*eventlog.TruncatedError](err); ok {
		first = cut.First
		err = Read(ctx, store, log, eventlog.Cursor{Seq: first - 1}, last, visit)
	}
	return first, err
}

// Gone turns the reasons why a log cannot be read into faults. It returns other errors as they are.
func Gone(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrDeleted):
		return fault.New(fault.SessionDeleted)
	case errors.Is(err, eventlog.ErrBeyondEnd):
		return fault.New(fault.CursorInvalid)
	case errors.Is(err, eventlog.ErrClosed):
		return fault.New(fault.Draining)
	}
	return err
}
