package waggle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/internal/sse"
)

const (
	// silence ends a connection that sends nothing for so long: gateways send heartbeats more often.
	silence = 45 * time.Second
	// goodbye is the last line of a gateway that restarts.
	goodbye = "waggle DRAINING"
	// mediaStream is the media type of streams.
	mediaStream = "text/event-stream"
)

// reading is what a stream is read with: where it is asked for, anew for each connection, and how its messages are handled.
type reading struct {
	at         func() request
	take       func(sse.Message) (event.Event, bool, error) // ok: the event is handed on
	connection func(up bool, err error)                     // may be nil
}

// stream reads a stream and reconnects when it breaks. It ends with the error after which reconnecting is pointless, or that of ctx.
func (c *Client) stream(ctx context.Context, r reading) iter.Seq2[event.Event, error] {
	if r.connection == nil {
		r.connection = func(bool, error) {}
	}
	return func(yield func(event.Event, error) bool) {
		pauses := link.NewPauses(c.opt.MinBackoff, c.opt.MaxBackoff)
		for {
			began := time.Now()
			k := connection{client: c, reading: r}
			err := k.read(ctx, func(e event.Event) bool {
				pauses.Reset()
				return yield(e, nil)
			})
			if k.left {
				return
			}
			r.connection(false, err)
			if ctx.Err() != nil {
				yield(event.Event{}, ctx.Err())
				return
			}
			if c.isPointless(err) {
				yield(event.Event{}, err)
				return
			}
			if k.up && time.Since(began) > c.opt.MaxBackoff {
				pauses.Reset()
			}
			c.turn()
			if !c.rest(ctx, pauses.Next(pauseOf(err), k.goodbye)) {
				yield(event.Event{}, ctx.Err())
				return
			}
		}
	}
}

// isPointless reports whether a stream that ended so would end so again. A broken connection has no *Error.
func (c *Client) isPointless(err error) bool {
	if c.opt.Hasty && err != nil {
		return true
	}
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return false
	case e.Code == string(fault.Expired):
		return c.opt.TokenSource == nil
	}
	return e.Status >= 300 && !isTransient(e.Status)
}

// connection is one connection of a stream.
type connection struct {
	client  *Client
	reading reading
	up      bool
	goodbye bool // the gateway restarts
	left    bool // the reader wants no more
}

// read hands on the events of the connection until it ends, nil at the end of the response.
func (k *connection) read(ctx context.Context, hand func(event.Event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	q := k.reading.at()
	q.method, q.accept = http.MethodGet, mediaStream
	resp, err := k.client.open(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || media != mediaStream {
		return k.client.unreachable(fmt.Errorf("the answer is not a stream of events, but %q", resp.Header.Get("Content-Type")))
	}
	k.up = true
	k.reading.connection(true, nil)
	for messages := sse.NewReader(alive{resp.Body, dead}); ; {
		m, err := messages.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return k.client.unreachable(err)
		case m.Comment:
			k.goodbye = m.Data == goodbye
			continue
		}
		e, ok, err := k.reading.take(m)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		dead.Stop() // a reader that takes its time holds the server back
		if !hand(e) {
			k.left = true
			return nil
		}
		dead.Reset(silence)
	}
}

// alive notes that the server has sent something.
type alive struct {
	io.Reader
	dead *time.Timer
}

func (a alive) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		a.dead.Reset(silence)
	}
	return n, err
}

// position is where a reader is in a log: it takes each event once and in order.
type position struct{ at uint64 }

// reach notes an event, and reports whether it is new. An event that does not follow is a *link.GapError.
func (p *position) reach(e event.Event) (bool, error) {
	from := e.From
	if from == 0 {
		from = e.Sequence
	}
	if e.Sequence <= p.at {
		return false, nil
	}
	if from != p.at+1 || e.Sequence < from {
		return false, &link.GapError{After: p.at, From: from, To: e.Sequence}
	}
	p.at = e.Sequence
	return true, nil
}

// skip moves forward to where the log begins.
func (p *position) skip(to uint64) { p.at = max(p.at, to) }

// decode reads an event. One that is not JSON counts as a broken connection.
func (c *Client) decode(text string) (event.Event, error) {
	var e struct {
		event.Event
		From uint64 `json:"from"`
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return event.Event{}, c.unreachable(fmt.Errorf("an event of the stream is not valid: %w", err))
	}
	e.Event.From = e.From
	return e.Event, nil
}

// streamProblem is a problem document within a stream.
type streamProblem struct {
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Status int    `json:"status"`
	First  uint64 `json:"first"` // HISTORY_EXPIRED: the first event that the server still has
}

func (p streamProblem) expired() bool { return p.Title == string(fault.HeadExpired) && p.First > 0 }

func (p streamProblem) error(raw string) *Error {
	return &Error{Code: p.Title, Message: p.Detail, Status: p.Status, Detail: json.RawMessage(raw)}
}
