package link

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Conn is one connection of a link. Its methods are safe for concurrent use.
type Conn struct {
	socket  Socket
	out     chan outFrame
	done    chan struct{} // closed when the connection has ended
	wake    chan struct{} // a pending frame needs to be sent again
	hands   sync.Mutex    // held while a pending frame is handed over: keeps their order
	greeted sync.Once
	ready   atomic.Bool
	busy    atomic.Bool // a frame is being taken, and none is read meanwhile
	onUp    func(*Conn)
}

// outFrame is a frame that waits to be written; without bytes it is only a place in the queue.
type outFrame struct {
	bytes   []byte
	reached chan<- struct{} // closed once the queue is written up to here; may be nil
}

func newConn(s Socket, onUp func(*Conn)) *Conn {
	return &Conn{socket: s, out: make(chan outFrame, outgoing), done: make(chan struct{}), wake: make(chan struct{}, 1), onUp: onUp}
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Ready says that the server has greeted: from now on the link is up, and what waits for
// the server is sent. Calls after the first change nothing, and return once the link is up.
func (c *Conn) Ready() {
	c.greeted.Do(func() {
		c.ready.Store(true)
		c.onUp(c)
	})
}

// IsReady reports whether Ready has been called.
func (c *Conn) IsReady() bool { return c.ready.Load() }

// Send queues a frame for the connection. It waits for room, until the connection ends (ErrLost) or
// ctx ends. A queued frame may still get lost.
func (c *Conn) Send(ctx context.Context, frame []byte) error {
	return c.queue(ctx, outFrame{bytes: frame})
}

// TrySend queues a frame if the queue has room, and reports whether it did.
func (c *Conn) TrySend(frame []byte) bool {
	select {
	case c.out <- outFrame{bytes: frame}:
		return true
	default:
		return false
	}
}

func (c *Conn) queue(ctx context.Context, f outFrame) error {
	select {
	case <-c.done:
		return ErrLost
	default:
	}
	select {
	case c.out <- f:
		return nil
	case <-c.done:
		return ErrLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave writes the queued frames and says goodbye, within a few seconds.
func (c *Conn) leave(ctx context.Context) error {
	reached := make(chan struct{})
	if c.queue(ctx, outFrame{reached: reached}) == nil {
		select {
		case <-reached:
		case <-c.done:
		case <-ctx.Done():
		}
	}
	return c.socket.Close(websocket.StatusNormalClosure, "")
}

// write writes queued frames until ctx ends. A frame that cannot be written ends the connection.
func (c *Conn) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-c.out:
			if err := c.writeOne(ctx, f); err != nil {
				_ = c.socket.CloseNow() // the reader says why
				return
			}
		}
	}
}

func (c *Conn) writeOne(ctx context.Context, f outFrame) error {
	if f.reached != nil {
		close(f.reached)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.socket.Write(ctx, websocket.MessageText, f.bytes)
}

// keepAlive ends the connection when the other side is silent, until ctx ends. While a handler
// runs, the connection reads nothing, pongs included; that time does not count as silence.
func (c *Conn) keepAlive(ctx context.Context, ping, pong time.Duration) {
	t := time.NewTicker(ping)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if c.busy.Load() {
			continue
		}
		within, cancel := context.WithTimeout(ctx, pong)
		err := c.socket.Ping(within)
		cancel()
		if err != nil && ctx.Err() == nil && !c.busy.Load() {
			_ = c.socket.CloseNow()
			return
		}
	}
}

// live runs the connection until it ends or ctx does, and returns why it ended. begin and
// again run beside the reader; if begin fails, so does the connection.
func (c *Conn) live(ctx context.Context, o Options, read func(context.Context) error, begin func(context.Context) error, again func(context.Context)) error {
	helping, cancel := context.WithCancel(context.WithoutCancel(ctx))
	reading, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() { c.write(helping) })
	helpers.Go(func() { c.keepAlive(helping, o.Ping, o.Pong) })
	helpers.Go(func() { again(helping) })
	var failed error
	helpers.Go(func() {
		within, release := context.WithCancel(helping)
		defer release()
		defer context.AfterFunc(reading, release)()
		if failed = begin(within); failed != nil {
			stop()
		}
	})
	err := read(reading)
	close(c.done)
	cancel()
	stop()
	_ = c.socket.CloseNow()
	helpers.Wait()
	if failed != nil && !errors.Is(failed, ErrLost) && !errors.Is(failed, context.Canceled) {
		return failed
	}
	return err
}

// awake has the connection look for something to send.
func (c *Conn) awake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
