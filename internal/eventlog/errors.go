package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Errors of this package. Failures of the bus that outlast the retry budget become fault.BusUnavailable.
var (
	// ErrBeyondEnd means that a position lies beyond the end of its log: the position was never issued, or the log was
	// lost or has expired completely.
	ErrBeyondEnd = errors.New("position is beyond the end of the log")
	// ErrClosed means that the Store was closed.
	ErrClosed = errors.New("event log store is closed")
	// ErrRefused is wrapped when the bus refuses an append for good: the event is too big, has an invalid name, or its
	// dedupe id belongs to another message.
	ErrRefused = errors.New("append refused")

	// errNone means that the stream leader does not have the message.
	errNone = errors.New("no message")
)

// TruncatedError means that events after the wanted position have expired.
type TruncatedError struct {
	First uint64 // sequence of the oldest remaining event
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

// JetStream error codes that this package handles.
const (
	codeNoMessage     = 10037
	codeWrongLast     = 10071 // another writer appended; the text ends with the real last sequence
	codeWrongLastBusy = 10164 // another append to the same subject is in flight
	codeIDInFlight    = 10158 // a message with the same dedupe id is in flight
	codeNoStream      = 10059 // stream not found; also the answer of a server that shuts down or starts
)

// permanent reports whether a retry cannot help. Errors of the class 4xx concern the request, all others the state of
// the bus.
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

// unavailable wraps the last error of the bus after the budget is spent.
func unavailable(cause error) error { return fault.New(fault.BusUnavailable).Wrap(cause) }

// ended returns ctx's error if ctx has ended: then err is only its consequence.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
