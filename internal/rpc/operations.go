package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// defaultBeat is the interval of signs of life to a follower: a quarter of the silence after which it gives up, so that
// three may be lost.
const defaultBeat = 2 * time.Second

// Verbs name the requests of one kind of operation: Begin is sent to one replica, Attach and Cancel to all of them.
type Verbs struct {
	Begin, Attach, Cancel id.Name
}

// Running is an operation of this replica, in progress or ended.
type Running[Note, Out any] struct {
	Done    <-chan struct{}     // closed when the operation has an outcome
	Outcome func() (Out, error) // callable after Done; faults reach the followers
	Cancel  func()              // asks the operation to end; the followers get its outcome
	Notes   <-chan Note         // the progress for one follower; nil without
	Release func()              // ends Notes; nil without
}

// Operations answers requests that outlast any one message, such as calls of tools. A caller follows its operation: it gets
// signs of life, the progress if it asked for that, and the outcome; a caller that hears nothing attaches again by the key.
// An operation belongs to its owner, not to its callers: it continues when they leave, and when the server drains.
type Operations[In any, Key comparable, Note, Out any] struct {
	Verbs
	// Begin starts the operation of a request, or joins the one with the same key. ctx carries values only.
	Begin func(ctx context.Context, in In, progress bool) (Key, Running[Note, Out], error)
	// Find returns the operation with the key, if this replica has it.
	Find func(Key) (Running[Note, Out], bool)
	// Fit encodes an outcome in at most limit bytes. nil: an outcome that is too large becomes a fault.
	Fit func(out Out, limit int) ([]byte, error)

	Followers int           // callers that may follow operations of this replica at once; more are OVERLOADED
	Beat      time.Duration // interval of signs of life; 0: 2 s
}

// HandleOperations adds the verbs of a kind of operations to a server that is not started yet. The owner has to end all
// operations before it calls Stop, which waits until their followers have the outcomes.
func HandleOperations[In any, Key comparable, Note, Out any](s *Server, o Operations[In, Key, Note, Out]) {
	if o.Beat <= 0 {
		o.Beat = defaultBeat
	}
	h := &operations[In, Key, Note, Out]{
		Operations: o, s: s, slots: make(chan struct{}, o.Followers), followed: make(map[follower[Key]]bool),
	}
	e := s.endpoint(o.Verbs.Begin)
	e.call = func(ctx context.Context, r micro.Request) (reply, error) {
		var in In
		if err := e.decode(r.Data(), &in); err != nil {
			return reply{}, err
		}
		key, running, err := h.Begin(ctx, in, r.Headers().Get(headerNotes) != "")
		if err != nil {
			return reply{}, err
		}
		return reply{follow: func() { h.follow(key, running, r.Reply()) }}, nil
	}
	s.others = append(s.others,
		broadcast{subject.RPC(s.cfg.Service, o.Verbs.Attach), h.attach},
		broadcast{subject.RPC(s.cfg.Service, o.Verbs.Cancel), h.cancel})
}

// operations implements Operations on a server.
type operations[In any, Key comparable, Note, Out any] struct {
	Operations[In, Key, Note, Out]
	s     *Server
	slots chan struct{}

	mu       sync.Mutex
	followed map[follower[Key]]bool
}

// follower identifies a caller of an operation by its reply subject.
type follower[Key comparable] struct {
	key Key
	to  string
}

// attach lets a caller that has heard nothing for a while follow the operation again, if this replica has it.
func (h *operations[In, Key, Note, Out]) attach(m *nats.Msg) {
	if key, r, ok := h.find(m); ok && m.Reply != "" {
		h.follow(key, r, m.Reply)
	}
}

// cancel ends an operation if this replica has it.
func (h *operations[In, Key, Note, Out]) cancel(m *nats.Msg) {
	if _, r, ok := h.find(m); ok {
		r.Cancel()
	}
}

func (h *operations[In, Key, Note, Out]) find(m *nats.Msg) (key Key, r Running[Note, Out], ok bool) {
	if json.Unmarshal(m.Data, &key) != nil {
		return key, r, false
	}
	r, ok = h.Find(key)
	return key, r, ok
}

// follow sends a caller the signs of life and the progress of an operation, and then its outcome, in a goroutine.
func (h *operations[In, Key, Note, Out]) follow(key Key, r Running[Note, Out], to string) {
	release := func() {
		if r.Release != nil {
			r.Release()
		}
	}
	who := follower[Key]{key, to}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followed[who] {
		release()
		h.s.publish(sign(to))
		return
	}
	select {
	case h.slots <- struct{}{}:
	default:
		release()
		h.s.publish(h.failed(to, fault.New(fault.Overloaded)))
		return
	}
	done := func() {
		release()
		<-h.slots
	}
	started := h.s.follow(func() {
		defer done()
		defer h.forget(who)
		h.report(r, to)
	})
	if !started {
		done()
		return
	}
	h.followed[who] = true
}

func (h *operations[In, Key, Note, Out]) forget(who follower[Key]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.followed, who)
}

// report sends signs of life and progress until the operation ends, and then its outcome.
func (h *operations[In, Key, Note, Out]) report(r Running[Note, Out], to string) {
	h.s.publish(sign(to))
	tick := time.NewTicker(h.Beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.s.publish(sign(to))
		case n := <-r.Notes:
			h.note(to, n)
		case <-r.Done:
			h.rest(r.Notes, to)
			h.s.publish(h.outcome(r, to))
			return
		}
	}
}

// rest sends the progress that has been made until the end.
func (h *operations[In, Key, Note, Out]) rest(notes <-chan Note, to string) {
	for {
		select {
		case n := <-notes:
			h.note(to, n)
		default:
			return
		}
	}
}

func (h *operations[In, Key, Note, Out]) note(to string, n Note) {
	b, err := json.Marshal(n)
	if err != nil {
		h.s.log.Error().Err(err).Msg("failed to encode progress")
		return
	}
	m := stateMessage(to, stateNote)
	m.Data = b
	h.s.publish(m)
}

// outcome returns the last message about an operation.
func (h *operations[In, Key, Note, Out]) outcome(r Running[Note, Out], to string) *nats.Msg {
	out, err := r.Outcome()
	if err != nil {
		return h.failed(to, err)
	}
	m := stateMessage(to, stateDone)
	limit := int(h.s.conn.NATS().MaxPayload()) - m.Size()
	if h.Fit != nil {
		m.Data, err = h.Fit(out, limit)
	} else {
		m.Data, err = json.Marshal(out)
	}
	switch {
	case err != nil:
		return h.failed(to, fmt.Errorf("encode the outcome: %w", err))
	case len(m.Data) > limit:
		return h.failed(to, fault.Newf(fault.MessageTooBig, "The outcome has %d bytes, more than the message bus accepts (%d).", len(m.Data), limit))
	}
	return m
}

func (h *operations[In, Key, Note, Out]) failed(to string, err error) *nats.Msg {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		f = h.s.internal(h.s.label(h.Verbs.Begin), err)
	}
	m := stateMessage(to, stateDone)
	setFault(m, f)
	return m
}

// sign returns the sign of life of an operation.
func sign(to string) *nats.Msg { return stateMessage(to, stateRunning) }

func stateMessage(to, s string) *nats.Msg {
	m := nats.NewMsg(to)
	m.Header.Set(headerState, s)
	return m
}
