package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// defaultSilence is the longest gap between messages about an operation before its replica counts as dead: four signs
	// of life. Time without a connection to the bus does not count.
	defaultSilence = 8 * time.Second
	// defaultLook is the interval at which a caller checks the clock. After two missed signs of life it attaches again every
	// time: the outcome may have been lost.
	defaultLook = time.Second
	// defaultCancelWait is the longest wait for the outcome of a cancelled operation.
	defaultCancelWait = 10 * time.Second
	// inboxSize is far more than the messages about one operation that can wait here, since the reader has little else to
	// do. Further messages are dropped; the caller attaches again for a dropped outcome.
	inboxSize = 256
)

var (
	// ErrLost means that an operation began, or may have begun, and that its outcome is unknown: its replica fell silent,
	// or the connection closed.
	ErrLost = errors.New("the outcome of the operation is lost")
	// ErrNotStopped means that a cancelled operation did not confirm its end: its outcome is unknown.
	ErrNotStopped = errors.New("the operation did not confirm that it ended")
)

// Caller begins and follows operations of a service (HandleOperations). The zero durations stand for defaults.
type Caller struct {
	Conn    *bus.Conn
	Service id.Name
	Verbs   Verbs

	Silence    time.Duration // longest gap between signs of life; 0: 8 s
	Look       time.Duration // interval of the checks for that; 0: 1 s
	CancelWait time.Duration // longest wait for the outcome after ctx's end; 0: 10 s
}

// Operate begins an operation and follows it to its outcome; told, which may be nil, gets its progress. key identifies the
// operation for Attach and Cancel. When ctx ends, Operate cancels the operation and returns its outcome. Its own errors are
// faults as those of Call where nothing was done, ErrLost and ErrNotStopped.
func Operate[Note, Out any](ctx context.Context, c Caller, key, in any, told func(Note)) (out Out, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return out, fmt.Errorf("encode the request: %w", err)
	}
	ref, err := json.Marshal(key)
	if err != nil {
		return out, fmt.Errorf("encode the key: %w", err)
	}
	p := &pending{c: c.withDefaults(), body: body, key: ref, pauses: handoverPauses}
	if told != nil {
		p.note = func(b []byte) {
			var n Note
			if json.Unmarshal(b, &n) == nil {
				told(n)
			}
		}
	}
	answer, err := p.run(ctx)
	if err != nil {
		return out, err
	}
	if f := faultOf(answer); f != nil {
		return out, f
	}
	if err := json.Unmarshal(answer.Data, &out); err != nil {
		return out, fmt.Errorf("%w: decode the outcome: %w", ErrLost, err)
	}
	return out, nil
}

func (c Caller) withDefaults() Caller {
	c.Silence = cmp.Or(c.Silence, defaultSilence)
	c.Look = cmp.Or(c.Look, defaultLook)
	c.CancelWait = cmp.Or(c.CancelWait, defaultCancelWait)
	return c
}

// pending is an operation that a caller follows.
type pending struct {
	c         Caller
	body, key []byte
	note      func([]byte)

	inbox     string
	msgs      chan *nats.Msg
	asked     int             // requests to begin
	pauses    []time.Duration // waits before further requests to begin while the bus names no replica
	heard     time.Time       // the last sign of the replica, or the last time that it could not send one
	cancelled time.Time       // the end of ctx; zero before
}

// Subjects distinguish the answers to the two kinds of request.
const (
	toBegin  = ".begin"
	toAttach = ".attach"
)

// run begins the operation and returns its last message.
func (p *pending) run(ctx context.Context) (*nats.Msg, error) {
	nc := p.c.Conn.NATS()
	p.inbox, p.msgs = nc.NewInbox(), make(chan *nats.Msg, inboxSize)
	sub, err := nc.ChanSubscribe(p.inbox+".*", p.msgs)
	if err != nil {
		return nil, fault.New(fault.BusUnavailable).Wrap(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only with a closed connection, which has no subscriptions
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	return p.follow(ctx)
}

// begin asks one replica to begin.
func (p *pending) begin(ctx context.Context) error {
	p.asked++
	p.heard = time.Now()
	m := request(ctx, p.c.Service, p.c.Verbs.Begin, p.body)
	m.Reply = p.inbox + toBegin
	if p.note != nil {
		m.Header.Set(headerNotes, "1")
	}
	if err := p.c.Conn.NATS().PublishMsg(m); err != nil {
		return unanswered(ctx, p.c.Conn, p.c.Service, len(p.body), err)
	}
	return nil
}

// again asks to begin once more after an answer that nothing was done: by a replica that leaves, or because the bus names
// none for a moment.
func (p *pending) again(ctx context.Context, m *nats.Msg) error {
	switch {
	case !bus.NoResponders(m):
		if p.asked >= maxAsks {
			return faultOf(m)
		}
	case len(p.pauses) == 0:
		return unanswered(ctx, p.c.Conn, p.c.Service, len(p.body), nats.ErrNoResponders)
	default:
		if err := wait(ctx, p.pauses[0]); err != nil {
			return unanswered(ctx, p.c.Conn, p.c.Service, len(p.body), nats.ErrNoResponders)
		}
		p.pauses = p.pauses[1:]
	}
	return p.begin(ctx)
}

// follow follows the operation to its end.
func (p *pending) follow(ctx context.Context) (*nats.Msg, error) {
	tick := time.NewTicker(p.c.Look)
	defer tick.Stop()
	done := ctx.Done()
	for {
		select {
		case m := <-p.msgs:
			final, err := p.hear(ctx, m)
			if final || err != nil {
				return m, err
			}
		case <-p.c.Conn.Closed(): // closed permanently: no message will arrive
			return nil, fmt.Errorf("%w: %w", ErrLost, nats.ErrConnectionClosed)
		case <-done:
			done = nil
			p.cancelled = time.Now()
			p.tell(p.c.Verbs.Cancel, "")
		case <-tick.C:
			if err := p.tick(); err != nil {
				return nil, err
			}
		}
	}
}

// hear handles a message about the operation. It reports whether the message is the last one.
func (p *pending) hear(ctx context.Context, m *nats.Msg) (final bool, err error) {
	unheard := bus.NoResponders(m)
	switch {
	case unheard && m.Subject != p.inbox+toBegin:
		return false, nil // no replica has the operation: the silence continues
	case unheard, m.Header.Get(headerAgain) != "":
		return false, p.again(ctx, m)
	}
	p.heard = time.Now()
	switch m.Header.Get(headerState) {
	case stateRunning:
		return false, nil
	case stateNote:
		if p.note != nil {
			p.note(m.Data)
			p.heard = time.Now() // the silence was on this side
		}
		return false, nil
	}
	return true, nil // the outcome, or the fault of a request that began nothing
}

// tick checks the clock. It returns an error when the caller has to give up the operation.
func (p *pending) tick() error {
	if !p.cancelled.IsZero() {
		if time.Since(p.cancelled) > p.c.CancelWait {
			return ErrNotStopped
		}
		p.tell(p.c.Verbs.Cancel, "")
		p.tell(p.c.Verbs.Attach, p.inbox+toAttach)
		return nil
	}
	if !p.c.Conn.Up() {
		p.heard = time.Now()
		return nil
	}
	quiet := time.Since(p.heard)
	switch {
	case quiet > p.c.Silence:
		return ErrLost
	case quiet > p.c.Silence/2:
		p.tell(p.c.Verbs.Attach, p.inbox+toAttach)
	}
	return nil
}

// tell sends the operation's key to all replicas. The next look repeats a lost message.
func (p *pending) tell(verb id.Name, replyTo string) {
	m := nats.NewMsg(subject.RPC(p.c.Service, verb))
	m.Reply, m.Data = replyTo, p.key
	_ = p.c.Conn.NATS().PublishMsg(m)
}
