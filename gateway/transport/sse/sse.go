// Package sse carries messages as server-sent events: one response that lasts until its
// end, as an EventSource reads it.
//
// A message has its position as id, so that a client which comes back says where it stands
// (Last-Event-ID). Heartbeats are comments. An end is a comment with the code of its fault,
// and the end of the body, after which an EventSource reconnects.
//
// Some proxies pass an answer on only when it is whole. So a request for a stream may ask for a WebSocket, and gets the
// bytes of the same response in binary messages.
package sse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

var _ transport.Transport = (*Response)(nil)

// HeaderResume is the header in which a client that comes back says the id of the last
// event that it has.
const HeaderResume = "Last-Event-ID"

const (
	// chunk is what one write joins, and the least that a client has to take within
	// Options.WriteStall.
	chunk = 16 << 10
	// forceExtra is what Force may add beyond Options.QueueBytes.
	forceExtra = 64 << 10
	// tick is the pause between two calls of Handler.Tick.
	tick = time.Second
)

// Media is the type of the body.
const Media = "text/event-stream; charset=utf-8"

// padding is a comment that fills the buffers of proxies which hold small bodies back.
var padding = ":" + strings.Repeat(" ", 2<<10)

// buffers are where small messages are joined.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, chunk)
	return &b
}}

// Options of a response. A zero field takes its default.
type Options struct {
	QueueBytes   int           // bytes that may wait; 1 MiB
	Heartbeat    time.Duration // between two signs of life while nothing is sent; 15 s
	WriteStall   time.Duration // for the client to take 16 KiB; 30 s
	CloseTimeout time.Duration // to write what waits once End was called; 5 s
	Retry        time.Duration // how long a client waits before it reconnects; 1 s
	Shared       bool          // the connection has other requests, too (HTTP/2)
	Stats        *Stats        // counts what is written; nil = nothing does
}

// Stats counts over many responses.
type Stats struct{ Messages, Bytes, Writes atomic.Int64 }

// Handler hears of what happens to a response. No method may block.
type Handler interface {
	// Room: the queue has drained to half of its bound after a Send that was refused.
	Room()
	// Tick is called about once a second.
	Tick(now time.Time)
}

// Response is one response of server-sent events. All methods but Serve may be called
// concurrently at any time.
type Response struct {
	o    Options
	w    http.ResponseWriter
	rc   *http.ResponseController
	kick chan struct{} // something waits
	done chan struct{}

	mu      sync.Mutex
	queue   [][]byte
	seq     uint64   // of the last event that was queued
	queued  int      // bytes of the queue and of the chunk that is being written
	written []func() // to be called once nothing of the queue is left
	refused bool
	ending  bool
	closed  bool // nothing is written any more
	code    fault.Code
	closeBy time.Time
}

// New returns a response that is not begun. Messages wait until Serve.
func New(w http.ResponseWriter, o Options) *Response {
	if o.Stats == nil {
		o.Stats = &Stats{}
	}
	set(&o.QueueBytes, 1<<20)
	set(&o.Heartbeat, 15*time.Second)
	set(&o.WriteStall, 30*time.Second)
	set(&o.CloseTimeout, 5*time.Second)
	set(&o.Retry, time.Second)
	return &Response{o: o, w: w, rc: http.NewResponseController(w), kick: make(chan struct{}, 1), done: make(chan struct{})}
}

func set[T int | time.Duration](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}

// Send implements transport.Transport. Where it accepts fewer than all, Handler.Room is
// called when the queue has drained to half.
func (r *Response) Send(ms ...*transport.Message) (accepted int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range ms {
		p := m.Render(transport.EventStream, render)
		if r.ending || r.queued > 0 && r.queued+len(p) > r.o.QueueBytes {
			r.refused = r.refused || !r.ending
			break
		}
		r.put(m, p)
		accepted++
	}
	return accepted
}

// Force implements transport.Transport.
func (r *Response) Force(m *transport.Message) bool {
	p := m.Render(transport.EventStream, render)
	r.mu.Lock()
	defer r.mu.Unlock()
	ok := !r.ending && (r.queued == 0 || r.queued+len(p) <= r.o.QueueBytes+forceExtra)
	if ok {
		r.put(m, p)
	}
	return ok
}

// put appends a message in its wire form. A final one ends the response. The caller has
// locked.
func (r *Response) put(m *transport.Message, p []byte) {
	r.queue = append(r.queue, p)
	r.queued += len(p)
	r.seq = max(r.seq, m.Position.Seq)
	if m.Final {
		r.finish()
	}
	r.wake()
}

// finish has the response end after all that waits. The caller has locked.
func (r *Response) finish() {
	r.ending, r.closeBy = true, time.Now().Add(r.o.CloseTimeout)
	_ = r.rc.SetWriteDeadline(r.closeBy) // of a write that continues; the next one has it anyway
}

func (r *Response) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// End implements transport.Transport: after all that waits, or after CloseTimeout, come a
// comment with the fault's code and the end of the body.
func (r *Response) End(f *fault.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return
	}
	r.code = f.Code
	r.queue = append(r.queue, fmt.Appendf(nil, ": waggle %s\n\n", f.Code))
	r.finish()
	r.wake()
}

// Written has f called once all that is queued has been written, or the response is over.
func (r *Response) Written(f func()) {
	r.mu.Lock()
	over := r.closed
	if !over {
		r.written = append(r.written, f)
		r.wake()
	}
	r.mu.Unlock()
	if over {
		f()
	}
}

// allWritten calls what waits for an empty queue.
func (r *Response) allWritten() {
	r.mu.Lock()
	waiting := r.written
	if len(r.queue) > 0 && !r.closed {
		waiting = nil
	} else {
		r.written = nil
	}
	r.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// Code returns the code of the fault that the response ends with, empty while it is open
// and after a client that has gone by itself.
func (r *Response) Code() fault.Code {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.code
}

// Header returns the header of the response, which may be changed before Serve.
func (r *Response) Header() http.Header { return r.w.Header() }

// Done implements transport.Transport.
func (r *Response) Done() <-chan struct{} { return r.done }

// position returns the sequence of the last event.
func (r *Response) position() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// Queued returns the bytes that wait to be written.
func (r *Response) Queued() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queued
}

// Serve begins the response and writes until its end: that of End, of a Final message, of
// the client or of ctx. A client that takes too little within WriteStall ends with
// fault.PeerStuck. Serve is called once, on the goroutine of the request.
func (r *Response) Serve(ctx context.Context, h Handler) {
	defer r.over()
	if !r.open() {
		return
	}
	t := time.NewTicker(min(tick, r.o.Heartbeat))
	defer t.Stop()
	quiet := time.Now()
	for {
		wrote, more := r.flush(h)
		if !more {
			return
		}
		if wrote {
			quiet = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-r.kick:
		case now := <-t.C:
			h.Tick(now)
			if now.Sub(quiet) < r.o.Heartbeat {
				continue
			}
			if quiet = now; !r.beat() {
				return
			}
		}
	}
}

// open writes the header and the first comments, and reports whether the client took them.
func (r *Response) open() bool {
	head := r.w.Header()
	head.Set("Content-Type", Media)
	head.Set("Cache-Control", "no-store, no-transform")
	head.Set("X-Accel-Buffering", "no") // proxies of the kind of nginx pass events on at once
	if !r.o.Shared {
		head.Set("Connection", "close") // it has deadlines that no other request may inherit
	}
	_ = r.rc.SetReadDeadline(time.Time{}) // the server's is for requests
	r.w.WriteHeader(http.StatusOK)
	return r.write(fmt.Appendf(nil, "retry: %d\n%s\n\n", r.o.Retry.Milliseconds(), padding))
}

// beat writes a sign of life, and reports whether the client took it.
func (r *Response) beat() bool { return r.write(fmt.Appendf(nil, ": hb %d\n\n", r.position())) }

// flush writes what waits and reports whether it wrote, and whether more may come.
func (r *Response) flush(h Handler) (wrote, more bool) {
	buf, _ := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		r.mu.Lock()
		p, n := r.take(*buf)
		ending := r.ending
		r.mu.Unlock()
		if n == 0 {
			r.allWritten()
			return wrote, !ending
		}
		if !r.write(p) {
			return true, false
		}
		wrote = true
		r.o.Stats.Messages.Add(int64(n))
		r.mu.Lock()
		r.queued = max(0, r.queued-len(p))
		low := r.refused && !r.ending && r.queued <= r.o.QueueBytes/2
		if low {
			r.refused = false
		}
		r.mu.Unlock()
		if low {
			h.Room()
		}
	}
}

// take returns what is written next and how many messages that are: a large one as it is,
// small ones joined. The caller has locked.
func (r *Response) take(buf []byte) (p []byte, n int) {
	if len(r.queue) == 0 {
		return nil, 0
	}
	if p, n = buf[:0], 0; len(r.queue[0]) > cap(buf) {
		p, n = r.queue[0], 1
	}
	for n < len(r.queue) && len(p)+len(r.queue[n]) <= cap(buf) {
		p = append(p, r.queue[n]...)
		n++
	}
	clear(r.queue[:n])
	if r.queue = r.queue[n:]; len(r.queue) == 0 {
		r.queue = nil
	}
	return p, n
}

// write writes piece by piece and reports whether the client took all of it.
func (r *Response) write(p []byte) bool {
	for len(p) > 0 {
		n := min(len(p), chunk)
		_ = r.rc.SetWriteDeadline(r.deadline())
		_, err := r.w.Write(p[:n])
		if err == nil {
			err = r.rc.Flush()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.End(fault.New(fault.PeerStuck)) // unless it is ending already
		}
		if err != nil {
			return false
		}
		r.o.Stats.Writes.Add(1)
		r.o.Stats.Bytes.Add(int64(n))
		p = p[n:]
	}
	return true
}

// deadline returns until when a piece has to be taken.
func (r *Response) deadline() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return r.closeBy
	}
	return time.Now().Add(r.o.WriteStall)
}

// over drops what waits.
func (r *Response) over() {
	r.mu.Lock()
	r.ending, r.closed, r.queue, r.queued = true, true, nil, 0
	r.mu.Unlock()
	r.allWritten()
	close(r.done)
}

// render returns the wire form of a message.
func render(m *transport.Message) []byte {
	id := cmp.Or(m.ID, m.Position.String())
	b := make([]byte, 0, len("id: \nevent: \ndata: \n\n")+len(id)+len(m.Event)+len(m.Data))
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if m.Event != "" {
		b = append(append(append(b, "event: "...), m.Event...), '\n')
	}
	for rest, more := m.Data, true; more; {
		var line []byte
		line, rest, more = bytes.Cut(rest, []byte("\n"))
		b = append(append(append(b, "data: "...), line...), '\n')
	}
	return append(b, '\n')
}
