package link

// Send sends a frame on each connection, after earlier ones, until
// it is settled. It does not wait. Its error is ErrFull or the end of the link.
func (l *Link[F]) Send(o Outgoing[F]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return l.err
	case len(l.pending) >= l.opt.Pending:
		return ErrFull
	}
	o.on = nil
	l.pending = append(l.pending, &o)
	if l.conn != nil {
		l.conn.awake()
	}
	return nil
}

// Tell queues a frame once, after earlier ones, on the ready connection. It reports false without
// one. The frame may be lost with the connection.
func (l *Link[F]) Tell(frame []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil || len(l.pending) >= l.opt.Pending {
		return false
	}
	l.pending = append(l.pending, &Outgoing[F]{Frame: func() []byte { return frame }})
	l.conn.awake()
	return true
}

// Pending returns how many sends the server has not settled.
func (l *Link[F]) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, o := range l.pending {
		if o.Settled != nil {
			n++
		}
	}
	return n
}
