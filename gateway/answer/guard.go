package answer

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// slowest is the rate, in bytes per second, below which the reader of an answer is cut off.
const slowest = 64 << 10

// Guard sets the headers that every answer has, gives each answer a deadline, and counts the answers in progress. A stream that
// sets deadlines of its own keeps these.
func Guard(h http.Handler, stall time.Duration, inProgress *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := begin(w, stall)
		inProgress.Add(1)
		defer inProgress.Add(-1)
		defer g.extend() // of what is still in the server's buffer
		h.ServeHTTP(g, r)
	})
}

// begin sets the headers and the deadline.
func begin(w http.ResponseWriter, stall time.Duration) *response {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	g := &response{ResponseWriter: w, rc: http.NewResponseController(w), stall: stall}
	_ = g.rc.SetWriteDeadline(time.Time{}) // of the answer before it on the same connection
	return g
}

// response is an answer with a deadline: the client takes something within stall, and
// the whole within as long and the time that the slowest reader needs. Streams set their deadlines on any
// goroutine; all else is for that of the handler.
type response struct {
	http.ResponseWriter
	rc      *http.ResponseController
	stall   time.Duration
	begun   time.Time
	written int64       // bytes that the client or the kernel has taken
	own     atomic.Bool // the handler sets its own deadlines, or has taken the connection
}

// extend sets the deadline for the next bytes.
func (r *response) extend() {
	if r.own.Load() {
		return
	}
	now := time.Now()
	if r.begun.IsZero() {
		r.begun = now
	}
	whole := r.begun.Add(time.Duration(r.written) * time.Second / slowest)
	if whole.After(now) {
		whole = now
	}
	_ = r.rc.SetWriteDeadline(whole.Add(r.stall))
}

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	if r.own.Load() {
		return r.ResponseWriter.Write(p)
	}
	for n := 0; ; {
		r.extend()
		some, err := r.ResponseWriter.Write(p[n:min(len(p), n+slowest)])
		r.written += int64(some)
		if n += some; err != nil || n == len(p) {
			return n, err
		}
	}
}

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	r.extend()
	r.ResponseWriter.WriteHeader(status)
}

// SetWriteDeadline leaves the deadlines to the handler. http.ResponseController calls it.
func (r *response) SetWriteDeadline(t time.Time) error {
	r.own.Store(true)
	return r.rc.SetWriteDeadline(t)
}

// Hijack leaves the connection to the handler. http.ResponseController calls it.
func (r *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.own.Store(true)
	return r.rc.Hijack()
}

// Unwrap lets http.ResponseController reach the writer.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
