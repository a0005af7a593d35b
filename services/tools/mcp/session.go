package mcp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stopGrace is how long a server gets to answer a call that was cancelled before
// it is held to be deaf. People wait for this after pressing cancel.
const stopGrace = 2 * time.Second

// session is one connection to a server: one life of a program, or one MCP
// session over HTTP.
type session struct {
	cs         *mcp.ClientSession
	proc       *process     // nil unless a program
	guard      *guard       // nil unless a program
	seen       bool         // its messages pass through a tap
	keep       bool         // Config.KeepOnCancel
	end        func()       // closes a connection that has no program
	background func(func()) // runs closings that no caller waits for
	done       chan struct{}

	mu      sync.Mutex
	running int  // calls in flight
	retired bool // takes no more calls; ends with the last one
	gone    chan struct{}
}

func newSession(cs *mcp.ClientSession) *session {
	s := &session{cs: cs, done: make(chan struct{}), gone: make(chan struct{})}
	go func() {
		defer close(s.done)
		_ = cs.Wait() // How it ended is told by the process, or does not matter.
	}()
	return s
}

// attempt follows one call on its way, as seen by the transport.
type attempt struct {
	sent     atomic.Bool   // the request may have reached the server
	refused  atomic.Bool   // the server's HTTP side turned it away
	accepted atomic.Bool   // the server's HTTP side took it
	answered chan struct{} // closed when the server has answered, even too late
	once     sync.Once
	forget   func() // removes the attempt from its tap; set before sent
}

func newAttempt() *attempt { return &attempt{answered: make(chan struct{})} }

func (a *attempt) answer() { a.once.Do(func() { close(a.answered) }) }

// ran reports whether the tool may have run.
func (a *attempt) ran() bool { return a.accepted.Load() || a.sent.Load() && !a.refused.Load() }

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// take reserves the session for a call. It reports false if the session is over.
func (s *session) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || closed(s.done) {
		return false
	}
	s.running++
	if s.guard != nil {
		s.guard.credit()
	}
	return true
}

// release is take's counterpart. The last call of a retired session ends it.
func (s *session) release() {
	s.mu.Lock()
	s.running--
	last := s.retired && s.running == 0
	s.mu.Unlock()
	if last {
		s.finish()
	}
}

// retire lets no more calls in. The session ends when no call is left on it, so
// that one call's trouble does not become another's.
func (s *session) retire() {
	s.mu.Lock()
	first := !s.retired
	s.retired = true
	last := first && s.running == 0
	s.mu.Unlock()
	if first {
		close(s.gone)
	}
	if last {
		s.finish()
	}
}

// finish ends a session that nobody uses. The end of a program is waited for,
// because it is what makes a cancelled call be over; an HTTP server is told
// goodbye in the background, for it may take its time.
func (s *session) finish() {
	if s.proc != nil {
		s.close(true)
		return
	}
	s.background(func() { s.close(true) })
}

// idle reports whether no call is in flight.
func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running == 0
}

// close ends the connection and returns when it has ended. With now, a program is
// not given the time to end by itself.
func (s *session) close(now bool) {
	if s.proc != nil {
		s.proc.stop(now)
		_ = s.proc.stdout.Close()
	}
	if s.end != nil {
		s.end()
	}
	_ = s.cs.Close() // Reports how the connection ended, which is known here.
	<-s.done
}

// ending tells why a session that is done has ended. A program that is still there
// is useless without its connection and ended as well.
func (s *session) ending() error {
	err := s.cs.Wait()
	if s.proc != nil {
		s.proc.stop(false)
		err = errors.Join(err, s.proc.ending())
	}
	return err
}

// call runs a tool. If ctx ends, the server is told; a program that does not
// react to that is retired. call returns when the tool has stopped, as far as
// that can be known, and with ctx's cause as the error if it was stopped.
func (s *session) call(ctx context.Context, a *attempt, p *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	type answer struct {
		res *mcp.CallToolResult
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		res, err := s.cs.CallTool(context.WithValue(ctx, attemptKey{}, a), p)
		answers <- answer{res, err}
	}()
	select {
	case r := <-answers:
		if r.err == nil || ctx.Err() == nil {
			return r.res, r.err
		}
	case <-ctx.Done():
	}
	s.settle(a)
	return nil, context.Cause(ctx)
}

// settle waits for a sign that a cancelled call has ended in the server.
func (s *session) settle(a *attempt) {
	if !s.seen || !a.sent.Load() {
		return // Nothing was sent, or nothing more can be done from here.
	}
	defer a.forget()
	t := time.NewTimer(stopGrace)
	defer t.Stop()
	select {
	case <-a.answered:
	case <-s.done:
	case <-t.C:
		if s.proc != nil && !s.keep {
			s.retire()
		}
	}
}

// tap watches the messages of a connection to a program, to know what became of
// calls that the protocol layer has given up.
type tap struct {
	mcp.Connection
	mu    sync.Mutex
	calls map[jsonrpc.ID]*attempt
}

// Write notes which attempt a request belongs to.
func (t *tap) Write(ctx context.Context, m jsonrpc.Message) error {
	if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() {
		if a := attemptOf(ctx); a != nil {
			t.add(req.ID, a)
		}
	}
	return t.Connection.Write(ctx, m)
}

func (t *tap) add(id jsonrpc.ID, a *attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[id] = a
	if a.sent.Load() {
		return // A second round of the same call.
	}
	a.forget = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.calls, id)
	}
	a.sent.Store(true)
}

// Read notes which attempt is answered.
func (t *tap) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := t.Connection.Read(ctx)
	if res, ok := m.(*jsonrpc.Response); ok {
		t.mu.Lock()
		a := t.calls[res.ID]
		delete(t.calls, res.ID)
		t.mu.Unlock()
		if a != nil {
			a.answer()
		}
	}
	return m, err
}

// tapped is a transport whose connection is watched.
type tapped struct{ mcp.Transport }

func (t tapped) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tap{Connection: c, calls: make(map[jsonrpc.ID]*attempt)}, nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
