// Package unary carries messages as the one body of an HTTP response: JSON, or JSON lines
// for several messages. Nothing is written before the end, so that an end with a fault is a
// problem document with the fault's status.
package unary

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

var _ transport.Transport = (*Response)(nil)

// forceExtra is what Force may add beyond Options.QueueBytes.
const forceExtra = 64 << 10

// Options of a response. A zero field takes its default.
type Options struct {
	QueueBytes int           // bytes of the body; 1 MiB
	WriteStall time.Duration // for the client to take the body; 30 s
	Lines      bool          // the body is JSON lines, however many messages it has
}

// Response is one response. All methods but Serve may be called concurrently at any time.
//
// Queued messages wait for the end, so that no room comes again: the owner of a response
// that refuses a message ends it.
type Response struct {
	o     Options
	w     http.ResponseWriter
	ended chan struct{} // nothing more is accepted
	done  chan struct{}

	mu     sync.Mutex
	body   []*transport.Message // others may hold them, too: nothing is copied
	bytes  int                  // of the body, with the line ends between messages
	ending bool
	fault  *fault.Fault // nil: the body is complete
}

// New returns a response that is not begun.
func New(w http.ResponseWriter, o Options) *Response {
	if o.QueueBytes <= 0 {
		o.QueueBytes = 1 << 20
	}
	if o.WriteStall <= 0 {
		o.WriteStall = 30 * time.Second
	}
	return &Response{o: o, w: w, ended: make(chan struct{}), done: make(chan struct{})}
}

// Send implements transport.Transport. A Final message ends the response.
func (r *Response) Send(ms ...*transport.Message) (accepted int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range ms {
		if !r.put(m, r.o.QueueBytes) {
			break
		}
		accepted++
	}
	return accepted
}

// Force implements transport.Transport.
func (r *Response) Force(m *transport.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.put(m, r.o.QueueBytes+forceExtra)
}

// put appends a message within the bound. The caller has locked.
func (r *Response) put(m *transport.Message, bound int) bool {
	if r.ending || len(r.body) > 0 && r.bytes+len(m.Data) > bound {
		return false
	}
	if len(r.body) > 0 {
		r.bytes++
	}
	r.body = append(r.body, m)
	r.bytes += len(m.Data)
	if m.Final {
		r.end(nil)
	}
	return true
}

// Complete ends the response with the messages that were accepted so far.
func (r *Response) Complete() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ending {
		r.end(nil)
	}
}

// End implements transport.Transport: the response is the problem document of the fault.
func (r *Response) End(f *fault.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ending {
		r.body = nil
		r.end(f)
	}
}

// end has the response end. The caller has locked.
func (r *Response) end(f *fault.Fault) {
	r.ending, r.fault = true, f
	close(r.ended)
}

// Done implements transport.Transport.
func (r *Response) Done() <-chan struct{} { return r.done }

// Serve waits for the end and writes the response, with problem for the document of a
// fault. ctx ends the response as a restart of the gateway does. Serve is called once, on the
// goroutine of the request.
func (r *Response) Serve(ctx context.Context, problem func(http.ResponseWriter, *fault.Fault)) {
	defer close(r.done)
	rc := http.NewResponseController(r.w)
	_ = rc.SetReadDeadline(time.Time{}) // the server's is for requests
	select {
	case <-r.ended:
	case <-ctx.Done():
		r.End(fault.New(fault.Draining)) // the client may be gone, or it is the gateway that ends
	}
	_ = rc.SetWriteDeadline(time.Now().Add(r.o.WriteStall))
	r.w.Header().Set("Connection", "close") // it has deadlines that no other request may inherit
	if r.fault != nil {
		problem(r.w, r.fault)
		return
	}
	r.w.Header().Set("Cache-Control", "no-store")
	if r.o.Lines || len(r.body) > 1 {
		r.w.Header().Set("Content-Type", "application/jsonl")
	} else {
		r.w.Header().Set("Content-Type", "application/json")
	}
	r.write()
}

// write writes the body. An error means that the client is gone.
func (r *Response) write() {
	end := []byte{'\n'}
	last := len(r.body) - 1
	if r.o.Lines && last >= 0 {
		r.bytes++
	}
	r.w.Header().Set("Content-Length", strconv.Itoa(r.bytes))
	for n, m := range r.body {
		if _, err := r.w.Write(m.Data); err != nil {
			return
		}
		if n == last && !r.o.Lines {
			return
		}
		if _, err := r.w.Write(end); err != nil {
			return
		}
	}
}
