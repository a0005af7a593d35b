package ws

import (
	"fmt"
	"net/http"
	"time"
)

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

func (h *Hub) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
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

func (sh *shard) run() {
	var work []*Socket
	buf := sh.hub.buffer()
	for {
		sh.mu.Lock()
		for len(sh.list) == 0 && !sh.stopped {
			sh.wake.Wait()
		}
		if sh.stopped {
			sh.mu.Unlock()
			return
		}
		sh.list, work = work[:0], sh.list
		sh.mu.Unlock()
		buf = sh.round(work, buf)
	}
}
