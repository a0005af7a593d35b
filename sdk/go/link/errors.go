package link

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// maxFrame bounds a frame of the server: an event is one, and those are far smaller.
const maxFrame = 8 << 20

var (
	// ErrClosed is the end of a link that this side has closed.
	ErrClosed = errors.New("link: closed")
	// ErrLost says that a connection ended before a frame was handed to it.
	ErrLost = errors.New("link: the connection is gone")
	// ErrFull says that too many sends wait for the server.
	ErrFull = errors.New("link: too many frames wait for the server")
)

// DialError says why an attempt to connect has failed.
type DialError struct {
	Address string // without the query; empty: nothing was dialed
	Err     error
}

// Error names the address.
func (e *DialError) Error() string {
	if e.Address == "" {
		return e.Err.Error()
	}
	return "connect to " + e.Address + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DialError) Unwrap() error { return e.Err }

// RefusedError is an HTTP answer instead of a WebSocket.
type RefusedError struct {
	Status     int
	RetryAfter time.Duration // the pause that the server requests; 0 = none
	Err        error
}

// Error names the status.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("link: the server refused the connection (HTTP %d %s)", e.Status, http.StatusText(e.Status))
}

// Unwrap returns the error of the handshake.
func (e *RefusedError) Unwrap() error { return e.Err }

// final reports whether the same request would be refused again.
func (e *RefusedError) final() bool {
	return e.Status >= 300 && e.Status < 500 && e.Status != http.StatusTooManyRequests
}

// ClosedError is the close frame of a server that does not want the client back.
type ClosedError struct {
	Code   int
	Reason string
}

// Error returns the reason and the code.
func (e *ClosedError) Error() string {
	return fmt.Sprintf("link: the server closed the connection: %s (%d)", e.Reason, e.Code)
}

// AwayError says that the server stayed away for too long. It wraps the last failure.
type AwayError struct {
	For time.Duration
	Err error
}

// Error returns the last failure.
func (e *AwayError) Error() string {
	return fmt.Sprintf("link: the server did not come back within %s: %s", e.For.Round(time.Second), e.Err)
}

// Unwrap returns the last failure.
func (e *AwayError) Unwrap() error { return e.Err }

// GapError says that the server has left positions out or has repeated some, which ends
// the connection of an exact protocol.
type GapError struct {
	After    uint64 // the position of the last frame
	From, To uint64 // positions that the next frame covers
}

// Error names the positions.
func (e *GapError) Error() string {
	return fmt.Sprintf("link: the frames after position %d go on with %d to %d", e.After, e.From, e.To)
}

// finalError marks an error that coming back would not change.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// Final marks err as one that coming back would not change: the link ends with err.
func Final(err error) error { return &finalError{err} }

// Close codes from firstFinal to lastFinal tell a client not to reconnect unchanged; the first
// concerns credentials.
const (
	firstFinal   = 4400
	unauthorized = 4401
	lastFinal    = 4499
)

// ending returns the error with which the link ends, nil if it makes another connection.
// fresh says that the next connection would have other credentials.
func ending(err error, fresh bool) error {
	if f, ok := errors.AsType[*finalError](err); ok {
		return f.error
	}
	if r, ok := errors.AsType[*RefusedError](err); ok && r.final() {
		return err
	}
	if errors.Is(err, websocket.ErrMessageTooBig) { // the server would send the same frame again
		return &ClosedError{Code: int(websocket.StatusMessageTooBig), Reason: fmt.Sprintf("a frame of the server is larger than %d MiB", maxFrame>>20)}
	}
	c, ok := errors.AsType[websocket.CloseError](err)
	if !ok {
		return nil
	}
	switch c.Code {
	case websocket.StatusProtocolError, websocket.StatusUnsupportedData, websocket.StatusInvalidFramePayloadData, websocket.StatusMessageTooBig:
	case unauthorized:
		if fresh {
			return nil
		}
	default:
		if c.Code < firstFinal || c.Code > lastFinal {
			return nil
		}
	}
	return &ClosedError{Code: int(c.Code), Reason: c.Reason}
}

// goodbye reports whether the server has sent the client to another gateway.
func goodbye(err error) bool {
	switch websocket.CloseStatus(err) {
	case websocket.StatusGoingAway, websocket.StatusServiceRestart:
		return true
	}
	return false
}
