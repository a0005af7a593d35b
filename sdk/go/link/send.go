package link

import (
	"context"
	"slices"
)

// Outgoing is a frame for the server.
type Outgoing[F any] struct {
	// Frame returns the bytes for the connection that is ready. A repetition has the same id.
	Frame func() []byte
	// Settled reports whether a frame of the server shows that the server has this one, or
	// has refused it. It must not call the link. Nil: the frame is sent once, and may be lost.
	Settled func(f F) bool

	on *Conn // the last connection that it was handed to
}

// Send has a frame sent on each connection, behind those that were sent before it, until
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

// Tell queues a frame once, behind earlier ones, on the ready connection. It reports false without
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

// settle takes the oldest send away that the frame settles.
func (l *Link[F]) settle(f F) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.pending, func(o *Outgoing[F]) bool { return o.Settled != nil && o.Settled(f) })
	if i >= 0 {
		l.pending = slices.Delete(l.pending, i, i+1)
	}
}

// dropTold removes the frames of Tell with their connection. The caller holds the lock.
func (l *Link[F]) dropTold() {
	l.pending = slices.DeleteFunc(l.pending, func(o *Outgoing[F]) bool { return o.Settled == nil })
}

// awake has the connection look for something to send.
func (c *Conn) awake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// send hands every pending frame to c once, in order, until ctx ends.
func (l *Link[F]) send(ctx context.Context, c *Conn) {
	for {
		for l.hand(ctx, c) {
		}
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
	}
}

// hand sends the oldest pending frame that c does not have, and reports whether it did.
func (l *Link[F]) hand(ctx context.Context, c *Conn) bool {
	c.hands.Lock()
	defer c.hands.Unlock()
	o := l.nextFor(c)
	return o != nil && c.Send(ctx, o.Frame()) == nil
}

// nextFor returns the oldest frame that c does not have; nil if it has all of them or is not ready.
func (l *Link[F]) nextFor(c *Conn) *Outgoing[F] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != c {
		return nil
	}
	for i, o := range l.pending {
		if o.on == c {
			continue
		}
		o.on = c
		if o.Settled == nil {
			l.pending = slices.Delete(l.pending, i, i+1)
		}
		return o
	}
	return nil
}
