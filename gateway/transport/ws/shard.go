package ws

import (
	"sync"
	"sync/atomic"
)

// counts are what a shard's goroutine adds up by itself during a round.
type counts struct{ writes, frames, bytes int64 }

// shard writes for its share of the sockets. A socket that has something to write
// is in the list once; while a peer is behind, a goroutine of its own has the sink
// and the shard leaves it alone.
type shard struct {
	hub *Hub
	try *attempt

	mu      sync.Mutex
	wake    sync.Cond
	list    []*Socket
	stopped bool

	writes, frames, bytes atomic.Int64
	fresh                 counts // of this round, and not yet added
}

func newShard(h *Hub) *shard {
	sh := &shard{hub: h, try: newAttempt()}
	sh.wake.L = &sh.mu
	return sh
}

// add queues a socket that has been marked dirty.
func (sh *shard) add(s *Socket) {
	sh.mu.Lock()
	sh.list = append(sh.list, s)
	if len(sh.list) == 1 {
		sh.wake.Signal()
	}
	sh.mu.Unlock()
}

func (sh *shard) end() {
	sh.mu.Lock()
	sh.stopped = true
	sh.wake.Signal()
	sh.mu.Unlock()
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

// round drains the sockets in turn, and returns the buffer to go on with.
func (sh *shard) round(work []*Socket, buf *[]byte) *[]byte {
	for i, s := range work {
		work[i] = nil
		if sh.drain(s, buf) {
			buf = sh.hub.buffer()
		}
	}
	sh.writes.Add(sh.fresh.writes)
	sh.frames.Add(sh.fresh.frames)
	sh.bytes.Add(sh.fresh.bytes)
	sh.fresh = counts{}
	return buf
}

// drain writes what waits for the socket, without blocking. It reports whether the
// buffer has been handed on.
func (sh *shard) drain(s *Socket, buf *[]byte) bool {
	var c chunk
	for range turn {
		if c = s.advance(c, *buf); len(c.p) == 0 {
			return false
		}
		n, err := s.out.try(sh.try, c.p)
		if n > 0 {
			sh.fresh.writes++
			sh.fresh.bytes += int64(n)
		}
		if err != nil {
			s.cut(hard)
			return false
		}
		if n < len(c.p) {
			c.p = c.p[n:]
			return s.fallBehind(c, buf)
		}
		sh.fresh.frames += int64(c.frames)
	}
	s.settle(c)
	sh.add(s)
	return false
}

// buffer returns an empty buffer of coalesce bytes.
func (h *Hub) buffer() *[]byte {
	b, ok := h.bufs.Get().(*[]byte)
	if !ok {
		return newBuffer(coalesce)
	}
	return b
}
