package ws

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is what a socket that is over, and a hub that is closed, return.
var ErrClosed = errors.New("ws: closed")

// errLate ends coder's reading of a peer that goes on after our close frame.
var errLate = errors.New("ws: the peer does not stop")

// Hub owns sockets: their writers and the sweeper. All methods may be called
// concurrently.
type Hub struct {
	opts   Options
	start  time.Time
	shards []*shard
	next   atomic.Uint64 // shard of the next socket
	stop   chan struct{}
	bufs   sync.Pool     // *[]byte of coalesce bytes
	msgs   sync.Pool     // *[]byte of messageBuffer bytes
	large  chan struct{} // one of each message beyond Options.ReadLimit that is being read or kept

	mu      sync.Mutex
	sockets []*Socket // each knows its place
	closed  bool
	wg      sync.WaitGroup // everything that the hub started; Add under mu
}

// Stats are the counters of a hub. Writes counts calls to the network, Frames the
// text and close frames handed to it.
type Stats struct {
	Sockets, QueuedBytes         int64
	Large                        int64 // messages beyond Options.ReadLimit that are being read or kept
	Writes, Frames, BytesWritten int64 // since the hub began
}

// NewHub starts the writers and the sweeper; Close ends them.
func NewHub(o Options) *Hub {
	o = o.withDefaults()
	h := &Hub{opts: o, start: time.Now(), stop: make(chan struct{}), large: make(chan struct{}, o.LargeMessages)}
	h.bufs.New = func() any { return newBuffer(coalesce) }
	h.msgs.New = func() any { return newBuffer(messageBuffer) }
	for range o.Shards {
		sh := newShard(h)
		h.shards = append(h.shards, sh)
		h.spawn(sh.run)
	}
	h.spawn(h.sweeper)
	return h
}

func newBuffer(size int) *[]byte {
	b := make([]byte, 0, size)
	return &b
}

// Close aborts the sockets that are left, and returns when nothing that the hub
// started is running. It must not be called from a Handler.
func (h *Hub) Close() {
	h.mu.Lock()
	first := !h.closed
	h.closed = true
	left := append([]*Socket(nil), h.sockets...)
	h.mu.Unlock()
	for _, s := range left {
		s.Abort()
	}
	if first {
		close(h.stop)
		for _, sh := range h.shards {
			sh.end()
		}
	}
	h.wg.Wait()
}

// Accept turns the request into a socket. Where it cannot, it has answered the
// request already. It neither checks Origin nor Host: the gateway has. The caller
// must then Bind a handler and Read in a goroutine of its own, so that the HTTP
// handler can return and its memory be freed.
func (h *Hub) Accept(w http.ResponseWriter, r *http.Request, subprotocols []string) (*Socket, error) {
	if h.isClosed() {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return nil, ErrClosed
	}
	s, err := h.upgrade(w, r, subprotocols)
	if err != nil {
		return nil, fmt.Errorf("ws: handshake: %w", err)
	}
	if !h.add(s) {
		s.Abort()
		return nil, ErrClosed
	}
	return s, nil
}

// Stats returns the counters as they are now.
func (h *Hub) Stats() Stats {
	var st Stats
	for _, sh := range h.shards {
		st.Writes += sh.writes.Load()
		st.Frames += sh.frames.Load()
		st.BytesWritten += sh.bytes.Load()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	st.Sockets, st.Large = int64(len(h.sockets)), int64(len(h.large))
	for _, s := range h.sockets {
		st.QueuedBytes += int64(s.Queued())
	}
	return st
}

// now is the time since the hub started, in nanoseconds; never 0.
func (h *Hub) now() int64 { return int64(time.Since(h.start)) + 1 }

func (h *Hub) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// spawn runs f, unless the hub is closed.
func (h *Hub) spawn(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Go(f)
	return true
}

func (h *Hub) add(s *Socket) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	s.place = len(h.sockets)
	h.sockets = append(h.sockets, s)
	return true
}

func (h *Hub) remove(s *Socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.place < 0 {
		return
	}
	last := len(h.sockets) - 1
	moved := h.sockets[last]
	h.sockets[s.place], moved.place = moved, s.place
	h.sockets[last] = nil
	h.sockets = h.sockets[:last]
	s.place = -1
}

// snapshot appends the sockets to buf.
func (h *Hub) snapshot(buf []*Socket) []*Socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(buf, h.sockets...)
}
