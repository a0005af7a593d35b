package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stopGrace is the time in which a server may answer a cancelled call; after it the session counts the server as
// unresponsive. People wait for this after pressing cancel.
const stopGrace = 2 * time.Second

// session is one connection to a server: one life of a program, or one MCP session over HTTP.
type session struct {
	cs         *mcp.ClientSession
	proc       *process     // nil for HTTP servers
	budget     *budget      // of the one stream of all answers; nil without such
	seen       bool         // a tap watches its messages
	keep       bool         // Config.KeepOnCancel
	end        func()       // closes a connection without a program
	background func(func()) // runs closings in the background
	done       chan struct{}

	mu      sync.Mutex
	running int  // calls in flight
	retired bool // accepts no more calls; ends with the last one
	gone    chan struct{}
}

func newSession(cs *mcp.ClientSession) *session {
	s := &session{cs: cs, done: make(chan struct{}), gone: make(chan struct{})}
	go func() {
		defer close(s.done)
		_ = cs.Wait()  // The process reports its end; other ends do not matter.
		_ = cs.Close() // Ends the subscription to changes of the tools, which outlives its connection.
	}()
	return s
}

// attempt tracks one call, as seen by the transport.
type attempt struct {
	sent     atomic.Bool   // the request may have reached the server
	refused  atomic.Bool   // the server's HTTP side refused it
	accepted atomic.Bool   // the server's HTTP side accepted it
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

// take reserves the session for a call. It reports false if the session has ended.
func (s *session) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || closed(s.done) {
		return false
	}
	s.running++
	if s.budget != nil {
		s.budget.credit()
	}
	return true
}

// release releases a reservation of take. The last call of a retired session ends it.
func (s *session) release() {
	s.mu.Lock()
	s.running--
	last := s.retired && s.running == 0
	s.mu.Unlock()
	if last {
		s.finish()
	}
}

// retire refuses further calls. The session ends with its last call, so that one call's failure does not affect another.
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

// finish ends an unused session. It waits for the end of a program, because that end completes a cancelled call; it closes
// an HTTP session in the background, since the server may be slow.
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

// close ends the connection and returns when it has ended. With now, a program gets no time to end by itself.
func (s *session) close(now bool) {
	if s.proc != nil {
		s.proc.stop(now)
		_ = s.proc.stdout.Close()
	}
	if s.end != nil {
		s.end()
	}
	_ = s.cs.Close() // Returns the reason of the end, which is known here.
	<-s.done
}

// ending returns why a finished session has ended. It also ends a program that still runs, which is useless without its
// connection.
func (s *session) ending() error {
	err := s.cs.Wait()
	if s.proc == nil {
		return err
	}
	s.proc.stop(false)
	if onlyEnd(err) {
		return s.proc.ending()
	}
	return fmt.Errorf("%w; %w", err, s.proc.ending())
}

// onlyEnd reports whether an error of a program's session says no more than that its pipes are closed. Which one it is depends
// on who notices the end of the program first: the reader, a writer, or the process' own wait, which closes the input.
func onlyEnd(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE)
}

// explain adds to an error of a program's session what the program said.
func (s *session) explain(err error) error {
	switch {
	case s.proc == nil:
		return err
	case closed(s.proc.exited):
		return s.proc.ending()
	}
	return &endError{err.Error(), s.proc.words.said()}
}

// call runs a tool. If ctx ends, call notifies the server; it retires a program that does not react. call returns when the
// tool has stopped, as far as the session can see, and with ctx's cause as the error if it was stopped.
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

// answerOf returns the JSON-RPC error of the server's answer, or nil for an error of this side: the SDK marks those with
// codes of its own.
func answerOf(err error) *jsonrpc.Error {
	const clientClosing, serverClosing, notSent = -32003, -32004, -32005
	je, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	switch je.Code {
	case clientClosing, serverClosing, notSent:
		return nil
	}
	return je
}

// settle waits for a sign that a cancelled call has ended in the server.
func (s *session) settle(a *attempt) {
	if !s.seen || !a.sent.Load() {
		return // Nothing was sent, or the session can do no more.
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

// tap watches the messages of a connection to a program, to track calls that the protocol layer has given up.
type tap struct {
	mcp.Connection
	mu    sync.Mutex
	calls map[jsonrpc.ID]*attempt
}

// Write records the attempt of a request.
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

// Read records the attempt of a response, and mends its result.
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
		if err == nil && res.Error == nil {
			res.Result = mend(res.Result)
		}
	}
	return m, err
}

// tapped is a transport with watched connections.
type tapped struct{ mcp.Transport }

func (t tapped) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tap{Connection: c, calls: make(map[jsonrpc.ID]*attempt)}, nil
}
