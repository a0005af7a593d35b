// Package thread binds HTTP requests to threads of AG-UI: logs of sessions, whose frames depend on what came before. A request
// gets a projection of the log (package agui/fold) at its position, with which a stream of the log continues.
package thread

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// DefaultMaxWait is how long a request waits for its command to be taken or refused.
const DefaultMaxWait = 10 * time.Second

// Threads are the threads of a gateway. All methods are safe for concurrent use.
type Threads struct {
	g       *binding.Gateway
	states  *stream.Folds[state, *fold.Thread]
	viewers *viewers
	maxWait time.Duration
}

// New returns the threads of a gateway.
func New(g *binding.Gateway, maxWait time.Duration) *Threads {
	if maxWait <= 0 {
		maxWait = DefaultMaxWait
	}
	return &Threads{g: g, states: newStates(), viewers: newViewers(g), maxWait: maxWait}
}

// Detailed is a fault with more to say.
type Detailed struct {
	*fault.Fault
	Members map[string]any // of the problem document
}

// Unwrap returns the fault.
func (d Detailed) Unwrap() error { return d.Fault }

// Place is the thread that a request is about.
type Place struct {
	Log     subject.Log
	Name    string // as the client writes it
	Variant fold.Variant
	To      Response // nil for requests without a stream
}

// Response is what a stream is shown on.
type Response interface {
	transport.Transport
	// Code returns the code of the fault that the response ends with, empty while it is open and after a client that has gone.
	Code() fault.Code
	// Written has f called once all that is queued has been written, or the response is over.
	Written(f func())
}

// exists returns the end of the thread's log. A thread that the client does not see does not exist.
func (t *Threads) exists(ctx context.Context, c *edge.Client, at Place) (last eventlog.Cursor, err error) {
	if last, err = t.end(ctx, c, at); err == nil && last.Seq == 0 {
		err = fault.New(missing(at))
	}
	return last, err
}

// missing is the fault of a thread that does not exist.
func missing(at Place) fault.Code {
	if at.Log.Kind == id.KindTeam {
		return fault.TeamNotFound
	}
	return fault.SessionNotFound
}

// end returns the end of the thread's log, zero for a thread without events.
func (t *Threads) end(ctx context.Context, c *edge.Client, at Place) (last eventlog.Cursor, err error) {
	if err = c.Sees(ctx, at.Log, fault.New(missing(at))); err != nil {
		return last, err
	}
	return t.g.Log.Last(ctx, at.Log)
}
