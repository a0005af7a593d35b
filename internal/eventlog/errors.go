package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Errors of this package. Trouble with the bus that outlasts the retry budget is
// reported as fault.BusUnavailable.
var (
	// ErrBeyondEnd says that a position lies beyond the end of its log: it was
	// never given out, or the log was lost or has expired as a whole.
	ErrBeyondEnd = errors.New("position is beyond the end of the log")
	// ErrClosed says that the Store was closed.
	ErrClosed = errors.New("event log store is closed")
	// ErrRefused is wrapped when the bus refuses an append for good: the event is
	// too big, badly named, or its dedupe id belongs to something else.
	ErrRefused = errors.New("append refused")

	// errNone says that the stream leader has no such message.
	errNone = errors.New("no message")
)

// TruncatedError says that events after the wanted position have expired.
type TruncatedError struct {
	First uint64 // sequence of the oldest event that is left
}

// Error implements error.
func (e *TruncatedError) Error() string {
	return "the log begins at seq " + strconv.FormatUint(e.First, 10) + ", earlier events have expired"
}

// apiError is an error answer of JetStream.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     uint16 `json:"err_code"`
	Description string `json:"description"`
}

// Error implements error.
func (e *apiError) Error() string {
	return fmt.Sprintf("jetstream error %d: %s", e.ErrCode, e.Description)
}

// JetStream error codes that the log reacts to.
const (
	codeNoMessage     = 10037
	codeWrongLast     = 10071 // somebody else appended; the text ends with the real last sequence
	codeWrongLastBusy = 10164 // another append to the same subject is in flight
	codeIDInFlight    = 10158 // a message with the same dedupe id is in flight
	codeNoStream      = 10059 // there is no such stream; a server that shuts down or starts says so, too
)

// permanent reports whether repeating the request cannot help. Errors of the
// class 4xx are about the request, all others about the state of the bus.
func permanent(err error) bool {
	if a, ok := errors.AsType[*apiError](err); ok {
		switch a.ErrCode {
		case codeWrongLast, codeWrongLastBusy, codeIDInFlight, codeNoStream:
			return false
		}
		return a.Code >= 400 && a.Code < 500
	}
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload) ||
		errors.Is(err, nats.ErrHeadersNotSupported) || errors.Is(err, ErrUnreadable) ||
		errors.Is(err, ErrBeyondEnd) || errors.Is(err, ErrRefused) || errors.Is(err, ErrDeleted) || errors.Is(err, ErrClosed)
}

// unavailable wraps what was last wrong with the bus when the budget is spent.
func unavailable(cause error) error { return fault.New(fault.BusUnavailable).Wrap(cause) }

// ended returns ctx's error if ctx has ended: then err is only its consequence.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
