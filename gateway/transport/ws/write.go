package ws

// chunk is what one write hands to the network.
type chunk struct {
	p      []byte
	queued int  // bytes of the queue in it
	frames int  // text and close frames in it
	last   bool // it ends with the close frame
}

// follow says what has to happen after a chunk was written.
type follow struct {
	low    Handler
	cut    bool
	await  bool
	broken bool
}

// advance notes that the chunk before has been written and takes the next; an
// empty one means that no bytes are left and that the caller no longer has
// the sink. buf is where small frames are joined.
func (s *Socket) advance(before chunk, buf []byte) chunk {
	s.mu.Lock()
	f := s.written(before)
	var c chunk
	if !s.over && !f.cut {
		c = s.take(buf)
	}
	if len(c.p) == 0 {
		s.dirty, s.behind = false, false
	}
	s.mu.Unlock()
	s.then(f)
	return c
}

// settle notes that the chunk has been written.
func (s *Socket) settle(c chunk) {
	s.mu.Lock()
	f := s.written(c)
	s.mu.Unlock()
	s.then(f)
}

// written accounts for a chunk; the caller has locked.
func (s *Socket) written(c chunk) (f follow) {
	if len(c.p) == 0 || s.over {
		return f
	}
	s.queued -= c.queued
	if s.refused && s.closing == nil && s.queued <= s.hub.opts.QueueBytes/2 {
		s.refused, f.low = false, s.handler
	}
	if c.last {
		s.closeSent = true
		s.closeBy = s.hub.now() + int64(s.hub.opts.CloseTimeout)
		f.cut = s.peerOver
		if !f.cut && !s.reading {
			s.reading, f.await, f.broken = true, true, s.broken
		}
	}
	return f
}

// then does what follows from a write, without a lock.
func (s *Socket) then(f follow) {
	if f.low != nil {
		f.low.Low()
	}
	if f.cut {
		s.cut(orderly)
	}
	if f.await {
		s.hearOut(f.broken)
	}
}

// take returns what to write next: control frames, then frames of the queue, then,
// behind everything, the close frame. The caller has locked.
func (s *Socket) take(buf []byte) (c chunk) {
	if s.closeOut {
		return c
	}
	q := s.queue[s.head:]
	alone := len(s.pongs) == 0 && len(q) > 0
	if alone && (len(q[0]) > cap(buf) || len(q) == 1 && s.closing == nil) {
		c = chunk{p: q[0], queued: len(q[0]), frames: 1} // as it is, not copied
		s.pop(1)
		return c
	}
	c.p = append(buf[:0], s.pongs...)
	s.pongs = shrink(s.pongs)
	for _, f := range q {
		if len(c.p)+len(f) > cap(c.p) {
			break
		}
		c.p = append(c.p, f...)
		c.queued += len(f)
		c.frames++
	}
	s.pop(c.frames)
	if s.closing != nil && s.head == len(s.queue) && len(c.p)+len(s.closing) <= cap(c.p) {
		c.p = append(c.p, s.closing...)
		c.frames++
		c.last, s.closeOut = true, true
	}
	return c
}

// pop removes n frames from the queue's front; the caller has locked.
func (s *Socket) pop(n int) {
	clear(s.queue[s.head : s.head+n])
	if s.head += n; s.head < len(s.queue) {
		return
	}
	s.head = 0
	if s.queue = s.queue[:0]; cap(s.queue) > keepFrames {
		s.queue = nil
	}
}

// shrink empties b and gives it up if it is large.
func shrink(b []byte) []byte {
	if cap(b) > 2*maxControl {
		return nil
	}
	return b[:0]
}

// fallBehind hands the socket to a goroutine of its own, which begins with the
// chunk, and reports that buf went with it.
func (s *Socket) fallBehind(c chunk, buf *[]byte) bool {
	s.moved.Store(s.hub.now())
	s.mu.Lock()
	s.behind = true
	s.mu.Unlock()
	if s.hub.spawn(func() { s.catchUp(c, buf) }) {
		return true
	}
	s.cut(hard)
	return false
}

// catchUp writes at the peer's pace until nothing waits any more.
func (s *Socket) catchUp(c chunk, buf *[]byte) {
	defer s.hub.bufs.Put(buf)
	moved := func() {
		s.moved.Store(s.hub.now())
		s.shard.writes.Add(1)
	}
	for len(c.p) > 0 {
		if err := s.out.push(c.p, moved); err != nil {
			s.cut(hard)
			return
		}
		s.shard.bytes.Add(int64(len(c.p)))
		s.shard.frames.Add(int64(c.frames))
		c = s.advance(c, *buf)
	}
}

// round drains the sockets in turn, and returns the buffer to continue with.
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
