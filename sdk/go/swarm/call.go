package swarm

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

// role holds the differences between a client, an agent and a service.
type role interface {
	// query returns the query of the next connection's URL.
	query() url.Values
	// greet introduces the peer on a new connection. Its error ends the connection.
	greet(ctx context.Context, c *link.Conn) error
	// take is given every frame but pings and answers to calls, from one goroutine at a
	// time. It must not block.
	take(m Message)
}

// caller is a link and the calls that wait on it. Its methods are safe for concurrent use.
type caller struct {
	*link.Link[Message]
	role role
	ctx  context.Context //nolint:containedctx // the life of the link
	stop context.CancelFunc

	mu      sync.Mutex
	waiting map[string]*waiter
}

// waiter waits for the answer to a frame.
type waiter struct {
	want  []string                      // types that answer it, beside error
	on    func(Message)                 // called with the answer, before anything that comes later is taken
	shrug func(e *Error, sent int) bool // errors that do not count as the answer; may be nil
	sent  atomic.Int32                  // how often the frame was sent
	reply chan Message
}

func newCaller(ctx context.Context, opt Options, r role) *caller {
	c := &caller{role: r, waiting: map[string]*waiter{}}
	c.ctx, c.stop = context.WithCancel(ctx)
	c.Link = link.New(opt.link(), link.Protocol[Message]{
		Decode: parse,
		Resume: func() (url.Values, error) { return r.query(), nil },
		Begin:  c.begin,
		Take:   c.hear,
	})
	return c
}

// run makes connections until the link is stopped or coming back is pointless, and
// returns why.
func (l *caller) run() error { return plain(l.Run(l.ctx)) }

// begin introduces the peer.
func (l *caller) begin(ctx context.Context, c *link.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	if err := l.role.greet(ctx, c); err != nil {
		return err
	}
	c.Ready()
	return nil
}

// hear handles a frame. It answers a ping, unless enough frames wait to be written to show life.
func (l *caller) hear(c *link.Conn, m Message) error {
	if m.Type != asp.Ping {
		l.take(m)
	} else if frame, err := encode(newID(), asp.Pong, nil); err == nil {
		c.TrySend(frame)
	}
	return nil
}

// failure returns why the link has ended, nil if it has not.
func (l *caller) failure() error { return plain(l.Err()) }

// up returns a connection on which the server has greeted, and waits for one.
func (l *caller) up(ctx context.Context) (*link.Conn, error) {
	c, err := l.Up(ctx)
	return c, plain(err)
}

// bye ends the link with a goodbye to the server.
func (l *caller) bye() {
	l.Close()
	l.stop()
}

// take hands a frame to the request that it answers.
func (l *caller) take(m Message) {
	to := answers(m)
	l.mu.Lock()
	w := l.waiting[to]
	if w != nil && w.settledBy(m) {
		delete(l.waiting, to)
	} else if w != nil && m.Type == asp.Error {
		l.mu.Unlock()
		return
	} else {
		w = nil
	}
	l.mu.Unlock()
	if w == nil {
		l.role.take(m)
		return
	}
	if w.on != nil {
		w.on(m)
	}
	w.reply <- m // has room for the one answer that it gets
	if m.Type != asp.Error {
		l.role.take(m)
	}
}

// settledBy reports whether a frame that refers to the waiter's is the answer to it.
func (w *waiter) settledBy(m Message) bool {
	if m.Type != asp.Error {
		return slices.Contains(w.want, m.Type)
	}
	return w.shrug == nil || !w.shrug(errorOf(m), int(w.sent.Load()))
}

// answers returns the id of the frame that a frame answers. The answer to a child task has it in
// its content: see the protocol.
func answers(m Message) string {
	if m.Type != asp.ChildAccepted || m.RequestID != "" {
		return m.RequestID
	}
	d, err := as[asp.ChildAcceptedContent](m)
	if err != nil {
		return ""
	}
	return d.InReplyTo
}

// Behaviours of a call whose connection ends before the answer arrives.
type onLoss int

const (
	again onLoss = iota // it is sent again: doing it twice changes nothing
	once                // it fails with ErrInterrupted
	await               // its answer is waited for on the next connection
)

// request is a call.
type request struct {
	kind    string
	content any
	want    []string
	loss    onLoss
	maxWait time.Duration                 // of await, from the next connection on; 0 = until the context ends
	on      func(Message)                 // see waiter
	shrug   func(e *Error, sent int) bool // see waiter
}

// call sends a frame and returns the answer to it. An answer of type error is returned
// as an *Error.
func (l *caller) call(ctx context.Context, r request) (Message, error) {
	id := newID()
	frame, err := encode(id, r.kind, r.content)
	if err != nil {
		return Message{}, err
	}
	w := newWaiter(r)
	l.expect(id, w)
	defer l.forget(id)
	for {
		m, err := l.try(ctx, frame, w, r)
		switch {
		case err == nil:
			return m, nil
		case !errors.Is(err, link.ErrLost):
			return Message{}, err
		case w.sent.Load() > 0 && r.loss == once:
			return Message{}, ErrInterrupted
		}
	}
}

func newWaiter(r request) *waiter {
	return &waiter{want: r.want, on: r.on, shrug: r.shrug, reply: make(chan Message, 1)}
}

// try sends the frame on the ready connection, unless it was sent and must not be repeated, and
// waits for the answer until that connection ends.
func (l *caller) try(ctx context.Context, frame []byte, w *waiter, r request) (Message, error) {
	s, err := l.up(ctx)
	if err != nil {
		return Message{}, err
	}
	if w.sent.Load() > 0 && r.loss == await {
		return w.answer(ctx, s, r.maxWait)
	}
	w.sent.Add(1) // before: the answer may come at once
	if err := s.Send(ctx, frame); err != nil {
		w.sent.Add(-1)
		return Message{}, err
	}
	return w.answer(ctx, s, 0)
}

func (l *caller) expect(id string, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[id] = w
}

func (l *caller) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// answer waits for the answer while a connection lasts, and no longer than maxWait if
// that is not 0.
func (w *waiter) answer(ctx context.Context, s *link.Conn, maxWait time.Duration) (Message, error) {
	var over <-chan time.Time
	if maxWait > 0 {
		t := time.NewTimer(maxWait)
		defer t.Stop()
		over = t.C
	}
	select {
	case m := <-w.reply:
		return m, trouble(m)
	case <-ctx.Done():
		return Message{}, ctx.Err()
	case <-over:
		return Message{}, ErrInterrupted
	case <-s.Done():
	}
	select {
	case m := <-w.reply: // it was the last that came
		return m, trouble(m)
	default:
		return Message{}, link.ErrLost
	}
}

// trouble returns the error that an answer of type error is.
func trouble(m Message) error {
	if m.Type != asp.Error {
		return nil
	}
	return errorOf(m)
}

// ask is call on a connection on which the server has not greeted yet.
func (l *caller) ask(ctx context.Context, s *link.Conn, r request) (Message, error) {
	id := newID()
	frame, err := encode(id, r.kind, r.content)
	if err != nil {
		return Message{}, err
	}
	w := newWaiter(r)
	l.expect(id, w)
	defer l.forget(id)
	if err := s.Send(ctx, frame); err != nil {
		return Message{}, err
	}
	return w.answer(ctx, s, 0)
}

// register is ask for a peer's introduction: a refusal that would be the same the next
// time ends the link.
func (l *caller) register(ctx context.Context, s *link.Conn, r request) (Message, error) {
	m, err := l.ask(ctx, s, r)
	if e, ok := errors.AsType[*Error](err); ok && !e.Retryable() {
		return m, link.Final(fmt.Errorf("swarm: the server does not take the registration: %w", err))
	}
	return m, err
}

// tell queues a frame without an answer on the ready connection, or the next one. A queued frame
// may still get lost.
func (l *caller) tell(ctx context.Context, kind string, content any) error {
	frame, err := encode(newID(), kind, content)
	if err != nil {
		return err
	}
	for {
		s, err := l.up(ctx)
		if err != nil {
			return err
		}
		if err = s.Send(ctx, frame); !errors.Is(err, link.ErrLost) {
			return err
		}
	}
}
