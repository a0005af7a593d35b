package ws

func newShard(h *Hub) *shard {
	sh := &shard{hub: h, try: newAttempt()}
	sh.wake.L = &sh.mu
	return sh
}

func (sh *shard) end() {
	sh.mu.Lock()
	sh.stopped = true
	sh.wake.Signal()
	sh.mu.Unlock()
}

// buffer returns an empty buffer of coalesce bytes.
func (h *Hub) buffer() *[]byte {
	b, ok := h.bufs.Get().(*[]byte)
	if !ok {
		return newBuffer(coalesce)
	}
	return b
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
