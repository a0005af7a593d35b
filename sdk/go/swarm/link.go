package swarm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// role is what a client, an agent and a service do differently.
type role interface {
	// query returns what the URL of the next connection says.
	query() url.Values
	// greet introduces the peer on a new connection. Its error ends the connection.
	greet(ctx context.Context, s *session) error
	// take is given every frame but pings and answers to calls, from one goroutine at a
	// time. It must not block.
	take(m Message)
}

// link is a connection that is made again when it breaks, and the calls that wait on
// it. Its methods are safe for concurrent use.
type link struct {
	opt  Options
	role role
	ctx  context.Context //nolint:containedctx // the life of the link
	stop context.CancelFunc

	leaving atomic.Bool // this side ends the connection

	mu      sync.Mutex
	conn    *session      // greeted; nil = there is none
	dialed  *session      // the last connection, greeted or not
	changed chan struct{} // closed when conn or err changes
	err     error         // why the link has ended for good
	waiting map[string]*waiter
	ended   chan struct{} // closed with err
}

// waiter waits for the answer to a frame.
type waiter struct {
	want  []string                      // types that answer it, beside error
	on    func(Message)                 // called with the answer, before anything that comes later is taken
	shrug func(e *Error, sent int) bool // errors that are no answer, if set
	sent  atomic.Int32                  // how often the frame was sent
	reply chan Message
}

func newLink(ctx context.Context, opt Options, r role) *link {
	l := &link{opt: opt, role: r, changed: make(chan struct{}), ended: make(chan struct{}), waiting: map[string]*waiter{}}
	l.ctx, l.stop = context.WithCancel(ctx)
	return l
}

// run makes connections until the link is stopped or coming back is pointless, and
// returns why. With hasty it gives up if the very first attempt fails.
func (l *link) run(hasty bool) error {
	pause := l.opt.MinBackoff
	for first := true; ; first = false {
		began := time.Now()
		greeted, err := l.once()
		if greeted {
			l.opt.OnDisconnect(l.lost(err))
		}
		switch {
		case l.ctx.Err() != nil:
			return l.end(ErrClosed)
		case final(err, greeted && l.opt.TokenSource != nil), hasty && first && !greeted:
			return l.end(plain(err))
		case time.Since(began) > l.opt.MaxBackoff:
			pause = l.opt.MinBackoff // it has been good for a while
		}
		if !l.rest(pause - rand.N(pause/2+1)) { //nolint:gosec // jitter is no secret
			return l.end(ErrClosed)
		}
		pause = min(2*pause, l.opt.MaxBackoff)
	}
}

// rest waits and reports whether the link goes on.
func (l *link) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// once lives through one connection and reports whether the server greeted.
func (l *link) once() (greeted bool, err error) {
	conn, err := l.opt.dial(l.ctx, l.role.query())
	if err != nil {
		return false, err
	}
	s := newSession(conn)
	l.mu.Lock()
	l.dialed = s
	l.mu.Unlock()
	err = s.live(l.ctx, l.take, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, greetTimeout)
		defer cancel()
		if err := l.role.greet(ctx, s); err != nil {
			return err
		}
		greeted = true
		l.opt.OnConnect()
		l.set(s, nil)
		return nil
	})
	l.set(nil, nil)
	return greeted, err
}

// set changes what calls see. An error stays.
func (l *link) set(s *session, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = s
	if l.err == nil && err != nil {
		l.err = err
		close(l.ended)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) end(err error) error {
	l.set(nil, err)
	return err
}

// failure returns why the link has ended for good, nil if it has not.
func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// up returns a connection on which the server has greeted, and waits for one.
func (l *link) up(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		s, err, changed := l.conn, l.err, l.changed
		l.mu.Unlock()
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// cut ends the connection of the moment; it is made again.
func (l *link) cut() {
	l.mu.Lock()
	s := l.dialed
	l.mu.Unlock()
	if s != nil {
		_ = s.conn.CloseNow()
	}
}

// bye ends the link with a goodbye to the server.
func (l *link) bye() {
	l.leaving.Store(true)
	l.mu.Lock()
	s := l.conn
	l.mu.Unlock()
	if s != nil {
		_ = s.conn.Close(websocket.StatusNormalClosure, "") // takes a few seconds at most
	}
	l.stop()
}

// lost returns why a connection has ended, nil if this side has closed it.
func (l *link) lost(err error) error {
	select {
	case <-l.ctx.Done():
		return nil
	default:
	}
	if l.leaving.Load() {
		return nil
	}
	return plain(err)
}

// take gives a frame to whoever waits for it.
func (l *link) take(m Message) {
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

// answers returns the id of the frame that a frame answers. That a child task was
// accepted is said in the content: see the protocol.
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

// What becomes of a call whose connection ends before the answer has come.
type onLoss int

const (
	again onLoss = iota // it is sent again: doing it twice changes nothing
	once                // it fails with ErrInterrupted
	await               // its answer is waited for on the next connection
)

// request is a call.
type request struct {
	kind     string
	content  any
	want     []string
	loss     onLoss
	patience time.Duration                 // of await, once there is a connection again; 0 = until the context ends
	on       func(Message)                 // see waiter
	shrug    func(e *Error, sent int) bool // see waiter
}

// call sends a frame and returns the answer to it. An answer of type error is returned
// as an *Error.
func (l *link) call(ctx context.Context, r request) (Message, error) {
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
		case !errors.Is(err, errLost):
			return Message{}, err
		case w.sent.Load() > 0 && r.loss == once:
			return Message{}, ErrInterrupted
		}
	}
}

func newWaiter(r request) *waiter {
	return &waiter{want: r.want, on: r.on, shrug: r.shrug, reply: make(chan Message, 1)}
}

// try sends the frame on the connection that there is, unless it has been sent and must
// not be sent again, and waits for the answer for as long as that connection lasts.
func (l *link) try(ctx context.Context, frame []byte, w *waiter, r request) (Message, error) {
	s, err := l.up(ctx)
	if err != nil {
		return Message{}, err
	}
	if w.sent.Load() > 0 && r.loss == await {
		return w.answer(ctx, s, r.patience)
	}
	w.sent.Add(1) // before: the answer may come at once
	if err := s.send(ctx, frame); err != nil {
		w.sent.Add(-1)
		return Message{}, err
	}
	return w.answer(ctx, s, 0)
}

func (l *link) expect(id string, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[id] = w
}

func (l *link) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// answer waits for the answer while a connection lasts, and no longer than patience if
// that is not 0.
func (w *waiter) answer(ctx context.Context, s *session, patience time.Duration) (Message, error) {
	var over <-chan time.Time
	if patience > 0 {
		t := time.NewTimer(patience)
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
	case <-s.done:
	}
	select {
	case m := <-w.reply: // it was the last that came
		return m, trouble(m)
	default:
		return Message{}, errLost
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
func (l *link) ask(ctx context.Context, s *session, r request) (Message, error) {
	id := newID()
	frame, err := encode(id, r.kind, r.content)
	if err != nil {
		return Message{}, err
	}
	w := newWaiter(r)
	l.expect(id, w)
	defer l.forget(id)
	if err := s.send(ctx, frame); err != nil {
		return Message{}, err
	}
	return w.answer(ctx, s, 0)
}

// register is ask for a peer's introduction: a refusal that would be the same the next
// time ends the link.
func (l *link) register(ctx context.Context, s *session, r request) (Message, error) {
	m, err := l.ask(ctx, s, r)
	if e, ok := errors.AsType[*Error](err); ok && !e.Retryable() {
		return m, &rejected{fmt.Errorf("swarm: the server does not take the registration: %w", err)}
	}
	return m, err
}

// tell sends a frame that has no answer on the connection of the moment, or the next.
// That the connection has it does not mean that the server has.
func (l *link) tell(ctx context.Context, kind string, content any) error {
	frame, err := encode(newID(), kind, content)
	if err != nil {
		return err
	}
	for {
		s, err := l.up(ctx)
		if err != nil {
			return err
		}
		if err = s.send(ctx, frame); !errors.Is(err, errLost) {
			return err
		}
	}
}
