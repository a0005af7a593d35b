package link

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Protocol defines the frames that a link carries. Decode and Take are
// called from one goroutine at a time. Everything but Decode and Take may be nil.
type Protocol[F any] struct {
	// Decode reads a frame. Its error ends the connection.
	Decode func(raw []byte) (F, error)
	// Position returns the first and the last position in the log that a frame stands
	// for, 0 and 0 if it is in no log. A frame whose position has been reached is dropped.
	Position func(f F) (from, to uint64)
	// Exact says that the server neither leaves out nor repeats a position: a frame that does not
	// follow the one before is a *GapError, which ends the connection.
	Exact bool
	// Resume returns the URL parameters by which the next connection resumes after Link.At. Its
	// error ends the attempt.
	Resume func() (url.Values, error)
	// Begin introduces the client on a new connection. It runs beside Take and ends with
	// ctx. Its error ends the connection.
	Begin func(ctx context.Context, c *Conn) error
	// Take is given the frames. Its error ends the connection; Final makes it end the link.
	// Either it or Begin calls c.Ready once the server has greeted.
	Take func(c *Conn, f F) error
}

// Link is a connection that is made again when it breaks. Its methods are safe for
// concurrent use.
type Link[F any] struct {
	opt   Options
	proto Protocol[F]

	leaving atomic.Bool // this side ends the link

	mu      sync.Mutex
	conn    *Conn         // ready; nil = none
	dialed  *Conn         // the last connection, ready or not
	changed chan struct{} // closed when conn or err changes
	err     error         // why the link has ended
	stop    context.CancelFunc
	at      uint64 // the position of the last frame
	pending []*Outgoing[F]

	ended chan struct{} // closed with err
}

// New returns a link that connects once Run runs.
func New[F any](opt Options, proto Protocol[F]) *Link[F] {
	if proto.Position == nil {
		proto.Position = func(F) (uint64, uint64) { return 0, 0 }
	}
	if proto.Resume == nil {
		proto.Resume = func() (url.Values, error) { return nil, nil }
	}
	if proto.Begin == nil {
		proto.Begin = func(context.Context, *Conn) error { return nil }
	}
	return &Link[F]{opt: opt.withDefaults(), proto: proto, changed: make(chan struct{}), ended: make(chan struct{}), stop: func() {}}
}

// Run connects until ctx ends, Close is called or a retry is pointless, and
// returns why: ErrClosed for the first two. It is for one call.
func (l *Link[F]) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.stop = cancel
	l.mu.Unlock()
	if l.leaving.Load() {
		return l.end(ErrClosed)
	}
	pause := NewPauses(l.opt.MinBackoff, l.opt.MaxBackoff)
	pause.Reset()
	away := time.Now()
	for attempt := 0; ; attempt++ {
		began, at := time.Now(), l.At()
		ready, err := l.once(ctx, attempt)
		if ready {
			l.opt.OnDown(l.reason(ctx, err))
			away = time.Now()
		}
		if ctx.Err() != nil || l.leaving.Load() {
			return l.end(ErrClosed)
		}
		end := ending(err, ready && l.opt.Token != nil)
		switch {
		case end != nil:
			return l.end(end)
		case l.opt.Hasty && attempt == 0 && !ready:
			return l.end(err)
		case l.opt.GiveUp > 0 && time.Since(away) > l.opt.GiveUp:
			return l.end(&AwayError{For: time.Since(away), Err: err})
		case l.At() > at, time.Since(began) > l.opt.MaxBackoff:
			pause.Reset() // it has carried a frame, or has lasted
		}
		if !rest(ctx, pause.after(err)) {
			return l.end(ErrClosed)
		}
	}
}

// rest waits and reports whether the link continues.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// reason returns why a connection has ended, nil if this side has ended it.
func (l *Link[F]) reason(ctx context.Context, err error) error {
	if ours := ctx.Err() != nil || l.leaving.Load(); ours {
		return nil
	}
	return err
}

// once lives through one connection and reports whether it was ready.
func (l *Link[F]) once(ctx context.Context, attempt int) (ready bool, err error) {
	query, err := l.proto.Resume()
	if err != nil {
		return false, err
	}
	address := l.opt.URL
	if attempt > 0 {
		address = l.opt.Next()
	}
	s, err := l.opt.dial(ctx, address, query)
	if err != nil {
		return false, err
	}
	c := newConn(s, l.up)
	l.mu.Lock()
	l.dialed = c
	l.mu.Unlock()
	err = c.live(ctx, l.opt, func(ctx context.Context) error { return l.read(ctx, c) },
		func(ctx context.Context) error { return l.proto.Begin(ctx, c) },
		func(ctx context.Context) { l.send(ctx, c) })
	l.down()
	return c.ready.Load(), err
}

// read hands every frame to Take until the connection ends, and returns why it did.
func (l *Link[F]) read(ctx context.Context, c *Conn) error {
	for {
		if ctx.Err() != nil && !l.leaving.Load() { // Take has ended the link
			_ = l.leave(c)
			return ctx.Err()
		}
		_, raw, err := c.socket.Read(ctx)
		if err != nil {
			return err
		}
		f, err := l.proto.Decode(raw)
		if err != nil {
			return err
		}
		old, err := l.reach(f)
		if err != nil {
			return err
		}
		if old {
			continue
		}
		l.settle(f)
		c.busy.Store(true)
		err = l.proto.Take(c, f)
		c.busy.Store(false)
		if err != nil {
			return err
		}
	}
}

// reach notes the position of a frame and reports whether it had been reached before.
func (l *Link[F]) reach(f F) (old bool, err error) {
	from, to := l.proto.Position(f)
	if to == 0 {
		return false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.proto.Exact && (from != l.at+1 || to < from):
		return false, &GapError{After: l.at, From: from, To: to}
	case to <= l.at:
		return true, nil
	}
	l.at = to
	return false, nil
}

// At returns the position of the last frame, 0 before the first.
func (l *Link[F]) At() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// Skip moves the position forward to the given one: the events before it have expired, or were seen
// on another connection. It never moves back.
func (l *Link[F]) Skip(at uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = max(l.at, at)
}

// up makes c the connection of the link.
func (l *Link[F]) up(c *Conn) {
	l.opt.OnUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = c
	l.tell()
	c.awake()
}

// down takes c away.
func (l *Link[F]) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = nil
	l.dropTold()
	l.tell()
}

// tell wakes those that wait for a change. The caller holds the lock.
func (l *Link[F]) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Link[F]) end(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.ended)
		l.tell()
	}
	return l.err
}

// Done is closed when the link has ended; Err says why.
func (l *Link[F]) Done() <-chan struct{} { return l.ended }

// Err returns why the link has ended, nil if it has not.
func (l *Link[F]) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Up returns a connection that is ready, and waits for one. Its error is that of ctx, or
// the link's end.
func (l *Link[F]) Up(ctx context.Context) (*Conn, error) {
	for {
		l.mu.Lock()
		c, err, changed := l.conn, l.err, l.changed
		l.mu.Unlock()
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Current returns the connection that is ready, nil if none is.
func (l *Link[F]) Current() *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

// Cut ends the present connection without a goodbye, as a bad line does, and reports whether one
// was ready. The link makes another one.
func (l *Link[F]) Cut() bool {
	l.mu.Lock()
	c, ready := l.dialed, l.conn != nil
	l.mu.Unlock()
	return c != nil && c.socket.CloseNow() == nil && ready
}

// Close writes the queued frames, says goodbye to the server and ends the link. It returns within
// seconds and before Run does.
func (l *Link[F]) Close() {
	l.leaving.Store(true)
	l.mu.Lock()
	c, stop := l.conn, l.stop
	l.mu.Unlock()
	if c != nil {
		_ = l.leave(c) // the link ends, with or without the server's answer
	}
	stop()
	_ = l.end(ErrClosed)
}

// leave hands everything over that is pending, and says goodbye.
func (l *Link[F]) leave(c *Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	for l.hand(ctx, c) {
	}
	return c.leave(ctx)
}

// Outgoing is a frame for the server.
type Outgoing[F any] struct {
	// Frame returns the bytes for the connection that is ready. A repetition has the same id.
	Frame func() []byte
	// Settled reports whether a frame of the server shows that the server has this one, or
	// has refused it. It must not call the link. Nil: the frame is sent once, and may be lost.
	Settled func(f F) bool

	on *Conn // the last connection that it was handed to
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
