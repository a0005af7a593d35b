package remote

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
)

const (
	// silence is the longest gap between messages about a call before the service counts as dead: four heartbeats. Time
	// without a connection to the bus does not count.
	silence = 8 * time.Second
	// look is the interval at which the client checks the clock. After two missed heartbeats it asks for the call by its key
	// every time: the answer may have been lost.
	look = time.Second
	// cancelWait is the longest wait for a cancelled call's outcome: an unresponsive server is killed after 2 s and gets 1 s
	// to end.
	cancelWait = 10 * time.Second
	// listTimeout bounds one page of the list.
	listTimeout = 5 * time.Second
)

type client struct {
	conn                      *bus.Conn
	silence, look, cancelWait time.Duration
}

// NewClient returns a Toolbox that asks any instance of the tool service on the bus. It is safe for concurrent use and needs
// no closing.
func NewClient(c *bus.Conn) tools.Toolbox {
	return &client{conn: c, silence: silence, look: look, cancelWait: cancelWait}
}

// List returns the tools on offer. See tools.Caller.
func (c *client) List(ctx context.Context, tenant id.Tenant) ([]tools.Tool, error) {
	_, all, err := c.tools(ctx, listRequest{Tenant: tenant})
	return all, err
}

// ToolsOf returns a server and its tools. See tools.Toolbox.
func (c *client) ToolsOf(ctx context.Context, tenant id.Tenant, kind, server string) (tools.Server, []tools.Tool, error) {
	if kind == "" {
		return tools.Server{}, nil, tools.BadKind()
	}
	of, all, err := c.tools(ctx, listRequest{Tenant: tenant, Kind: kind, Server: server})
	switch {
	case err != nil:
		return tools.Server{}, nil, err
	case of == nil:
		return tools.Server{}, nil, fault.Newf(fault.Internal, "The tool service sent an empty answer.")
	}
	return *of, all, nil
}

func (c *client) tools(ctx context.Context, req listRequest) (*tools.Server, []tools.Tool, error) {
	all := []tools.Tool{}
	for {
		got, err := c.ask(ctx, listSubject, req)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, got.Tools...)
		if !got.More || len(got.Tools) == 0 {
			return got.Server, all, nil
		}
		req.After = got.Tools[len(got.Tools)-1].Name
	}
}

// Servers returns the servers that the tenant may see. See tools.Toolbox.
func (c *client) Servers(ctx context.Context, tenant id.Tenant, kind string) ([]tools.Server, error) {
	all := []tools.Server{}
	req := listRequest{Tenant: tenant, Kind: kind}
	for {
		got, err := c.ask(ctx, seekSubject, req)
		if err != nil {
			return nil, err
		}
		all = append(all, got.Servers...)
		if !got.More || len(got.Servers) == 0 {
			return all, nil
		}
		req.After = got.Servers[len(got.Servers)-1].Order()
	}
}

func (c *client) ask(ctx context.Context, subj string, in listRequest) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fault.New(fault.Internal).Wrap(err)
	}
	question := nats.NewMsg(subj)
	question.Data = body
	directory.Inject(ctx, question.Header)
	m, err := c.conn.NATS().RequestMsgWithContext(ctx, question)
	if err != nil {
		return nil, fault.New(fault.ToolsDown).Wrap(err)
	}
	out, err := decodeReply(m)
	if err != nil {
		return nil, err
	}
	if out.Fault != nil {
		return nil, out.Fault.fault()
	}
	return out, nil
}

func decodeReply(m *nats.Msg) (*reply, error) {
	var out reply
	if err := json.Unmarshal(m.Data, &out); err != nil {
		return nil, fault.New(fault.Internal).Wrap(err)
	}
	return &out, nil
}

// pending is an unfinished call.
type pending struct {
	c     *client
	call  tools.Call
	inbox string
	msgs  chan *nats.Msg
	ref   []byte // the encoded callRef
	told  func(tools.Notification)

	heard     time.Time // the last sign of the service, or the last time that it could not send one
	cancelled time.Time // the end of ctx; zero before
}

// Subjects distinguish the answers to the two kinds of request.
const (
	toCall   = ".call"
	toAttach = ".attach"
)

// inboxSize is far more than the messages about one call that can wait here, since the reader has little else to do. Further
// messages are dropped; the client asks again for a dropped outcome.
const inboxSize = 4 * calls.Waiting

// Call runs a tool. See tools.Caller.
func (c *client) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	return c.CallWith(ctx, call, nil)
}

// CallWith runs a tool and passes on its notifications. See tools.Toolbox.
func (c *client) CallWith(ctx context.Context, call tools.Call, told func(tools.Notification)) (tools.Result, error) {
	if err := ctx.Err(); err != nil {
		return tools.Result{}, fault.New(fault.ToolCancelled).Wrap(err)
	}
	body, err := json.Marshal(call)
	if err != nil {
		return tools.Result{}, fault.New(fault.ToolBadInput).Wrap(err)
	}
	ref, err := json.Marshal(callRef{call.ID, call.Scope, call.Tenant})
	if err != nil {
		return tools.Result{}, fault.New(fault.ToolBadInput).Wrap(err)
	}
	nc := c.conn.NATS()
	p := &pending{
		c: c, call: call, inbox: nc.NewInbox(), msgs: make(chan *nats.Msg, inboxSize),
		ref: ref, told: told, heard: time.Now(),
	}
	sub, err := nc.ChanSubscribe(p.inbox+".*", p.msgs)
	if err != nil {
		return tools.Result{}, fault.New(fault.ToolsDown).Wrap(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // Fails only with a closed connection, which has no subscriptions.
	m := nats.NewMsg(callSubject)
	m.Reply, m.Data = p.inbox+toCall, body
	if told != nil {
		m.Header.Set(headerNotify, "1")
	}
	directory.Inject(ctx, m.Header)
	if parent := telemetry.Inject(ctx); parent != "" {
		m.Header.Set(headerTrace, parent)
	}
	switch err := nc.PublishMsg(m); {
	case errors.Is(err, nats.ErrMaxPayload):
		return tools.Result{}, fault.Newf(fault.ToolBadInput, "The arguments are larger than a message may be.").Wrap(err)
	case err != nil:
		return tools.Result{}, fault.New(fault.ToolsDown).Wrap(err)
	}
	return p.wait(ctx)
}

// wait follows the call to its end.
func (p *pending) wait(ctx context.Context) (tools.Result, error) {
	tick := time.NewTicker(p.c.look)
	defer tick.Stop()
	done := ctx.Done()
	for {
		select {
		case m := <-p.msgs:
			if noResponders(m) {
				if m.Subject == p.inbox+toCall {
					return tools.Result{}, fault.New(fault.ToolsDown)
				}
				continue // No instance answers the repeated request: the silence continues.
			}
			p.heard = time.Now()
			switch m.Header.Get(headerState) {
			case stateDone:
				return p.outcome(m)
			case stateTold:
				p.note(m)
			}
		case <-p.c.conn.Closed(): // closed for good: no message will arrive
			return tools.Result{}, fault.New(fault.ToolLost).Wrap(nats.ErrConnectionClosed)
		case <-done:
			done = nil
			p.cancelled = time.Now()
			p.tell(cancelSubject, "")
		case <-tick.C:
			if err := p.tick(); err != nil {
				return tools.Result{}, err
			}
		}
	}
}

// tick checks the clock. It returns an error when the client must give up the call.
func (p *pending) tick() error {
	if !p.cancelled.IsZero() {
		if time.Since(p.cancelled) > p.c.cancelWait {
			return fault.Newf(fault.ToolLost, "The tool was told to stop, but nothing was heard of it. Whether it had its effect is not known.")
		}
		p.tell(cancelSubject, "")
		p.tell(attachSubject, p.inbox+toAttach)
		return nil
	}
	if !p.c.conn.Up() {
		p.heard = time.Now()
		return nil
	}
	quiet := time.Since(p.heard)
	switch {
	case quiet > p.c.silence:
		return fault.New(fault.ToolLost)
	case quiet > p.c.silence/2:
		p.tell(attachSubject, p.inbox+toAttach)
	}
	return nil
}

// tell sends the call's key to all instances. The client repeats lost messages.
func (p *pending) tell(subj, replyTo string) {
	m := nats.NewMsg(subj)
	m.Reply, m.Data = replyTo, p.ref
	_ = p.c.conn.NATS().PublishMsg(m) // The next look repeats it.
}

// note passes a notification on.
func (p *pending) note(m *nats.Msg) {
	var n tools.Notification
	if p.told != nil && json.Unmarshal(m.Data, &n) == nil {
		p.told(n)
		p.heard = time.Now() // The silence was on this side.
	}
}

func (p *pending) outcome(m *nats.Msg) (tools.Result, error) {
	out, err := decodeReply(m)
	switch {
	case err != nil:
		return tools.Result{}, err
	case out.Fault != nil:
		return tools.Result{}, out.Fault.fault()
	case out.Result == nil:
		return tools.Result{}, fault.Newf(fault.ToolLost, "The tool service sent an empty answer. Whether the tool had its effect is not known.")
	}
	return *out.Result, nil
}
