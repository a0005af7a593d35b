package swarm

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// session is one connection.
type session struct {
	conn *websocket.Conn
	out  chan []byte
	done chan struct{} // closed when the connection has ended
}

func newSession(conn *websocket.Conn) *session {
	return &session{conn: conn, out: make(chan []byte, outgoing), done: make(chan struct{})}
}

// errLost says that a connection ended before something was handed to it, or before
// the answer came.
var errLost = errors.New("swarm: the connection is gone")

// send queues a frame for the connection.
func (s *session) send(ctx context.Context, frame []byte) error {
	select {
	case <-s.done:
		return errLost
	default:
	}
	select {
	case s.out <- frame:
		return nil
	case <-s.done:
		return errLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write writes what is queued until ctx ends. A frame that cannot be written ends the
// connection.
func (s *session) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case frame := <-s.out:
			if err := s.writeOne(ctx, frame); err != nil {
				_ = s.conn.CloseNow() // the reader says why
				return
			}
		}
	}
}

func (s *session) writeOne(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, frame)
}

// keepAlive ends the connection when the other side is silent, until ctx ends.
func (s *session) keepAlive(ctx context.Context) {
	t := time.NewTicker(pingInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		c, cancel := context.WithTimeout(ctx, pingTimeout)
		err := s.conn.Ping(c)
		cancel()
		if err != nil && ctx.Err() == nil {
			_ = s.conn.CloseNow()
			return
		}
	}
}

// read hands every frame to take until the connection ends, and returns why it did.
func (s *session) read(ctx context.Context, take func(Message)) error {
	for {
		_, raw, err := s.conn.Read(ctx)
		if err != nil {
			return err
		}
		m, err := parse(raw)
		if err != nil {
			return err
		}
		if m.Type == asp.Ping {
			s.pong()
			continue
		}
		take(m)
	}
}

// pong answers a ping, unless so much waits to be written that this shows life as well.
func (s *session) pong() {
	frame, err := encode(newID(), asp.Pong, nil)
	if err != nil {
		return
	}
	select {
	case s.out <- frame:
	default:
	}
}

// live runs the connection until it ends or ctx does, and returns why it ended. greet
// runs beside the reader; if it fails, so does the connection.
func (s *session) live(ctx context.Context, take func(Message), greet func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() { s.write(ctx) })
	helpers.Go(func() { s.keepAlive(ctx) })
	var greeting error
	helpers.Go(func() {
		if greeting = greet(ctx); greeting != nil {
			cancel()
		}
	})
	err := s.read(ctx, take)
	close(s.done)
	cancel()
	_ = s.conn.CloseNow()
	helpers.Wait()
	if greeting != nil && !errors.Is(greeting, errLost) && !errors.Is(greeting, context.Canceled) {
		return greeting
	}
	return err
}
