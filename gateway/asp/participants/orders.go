package participants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// longMaxWait is longer than any tool may run. A tool has limits of its own; this one
// is for services that have lost the call.
const longMaxWait = 15 * time.Minute

// permit returns why the participant may not ask for something.
func (p *Participant) permit(o asp.Order) error {
	needsPresence := o.Intent != nil || o.Forward != nil || o.Ask != nil && binding.RequestOf(o.Ask).Long
	switch {
	case needsPresence && !p.registered().Online:
		return fault.New(fault.NotRegistered)
	case changes(o) && !p.c.Client().MayAct():
		return fault.New(fault.Forbidden)
	}
	return nil
}

// changes reports whether an order is for those only who may act.
func changes(o asp.Order) bool {
	switch {
	case o.Ask != nil:
		return !binding.RequestOf(o.Ask).Looks
	case o.Intent != nil, o.Register != nil, o.Forward != nil:
		return true
	}
	return false
}

// act sends the command of an intent.
func (p *Participant) act(ctx context.Context, log subject.Log, i dialect.Intent) error {
	cmds, err := binding.Commands(p.target, log, i)
	if err != nil {
		return err
	}
	cmd := cmds[0]
	_, ends := i.Data.(dialect.FinishTask)
	err = p.shrink(ctx, &cmd)
	full := errors.Is(err, fault.New(fault.MessageTooBig))
	if err != nil && (!full || !ends) {
		return err
	}
	if ends && (full || len(cmd.Data) > edge.MaxCommand) {
		cmd.Data = tooLong(cmd.Data, err)
	}
	if u := p.unopened(log); u != nil {
		if err := u.Open(ctx, p.c, p.g.ReadyTimeout, p.reply); err != nil {
			return err
		}
	}
	if err := p.c.Client().Do(ctx, p.reply, cmd); err != nil {
		return err
	}
	switch {
	case p.codec.Kind() != command.ParticipantAgent:
	case !ends:
		p.work.said(cmd.Key.String())
	case p.work.release(cmd.Key.String()):
		p.loaded()
	}
	return nil
}

// tooLong makes a result that is too long a failure: the agent is not told, and its task
// must not wait for another. Why says the reason if that is another one than its length. A failure stays the one that it is, without what explains it.
func tooLong(data json.RawMessage, why error) json.RawMessage {
	var r command.TaskResult
	if json.Unmarshal(data, &r) != nil {
		return data
	}
	if !r.Failed {
		f := fault.Newf(fault.MessageTooBig, "The result is too large: it has %d bytes; the limit is %d. Ask for less at a time.", len(r.Result), edge.MaxCommand)
		if why != nil {
			f = fault.From(why, "")
		}
		r.Failed, r.Code, r.Error = true, string(f.Code), f.Public()
	}
	r.Result, r.Details = nil, nil
	short, err := json.Marshal(r)
	if err != nil {
		return data
	}
	return short
}

// inquire asks a service and returns what it says. The answer is at least as new as what
// this gateway has of the directory, and as the confirmed presence of the participant.
func (p *Participant) inquire(ctx context.Context, o asp.Order) (reply json.RawMessage, err error) {
	to := binding.RequestOf(o.Ask)
	data, err := json.Marshal(o.Ask)
	if err != nil {
		return nil, fmt.Errorf("encode the data of %s: %w", to.Verb, err)
	}
	p.mu.Lock()
	presence := p.presence
	p.mu.Unlock()
	if presence != nil {
		if err := presence.shown(ctx); err != nil {
			return nil, err
		}
	}
	self := p.registered()
	ask := command.ParticipantRequest{
		Tenant: self.Tenant, Principal: self.Principal, All: p.c.Client().SeesAll(), Kind: self.Kind, ID: self.ID, Name: self.Name,
		ReplyTo: p.reply, RequestID: o.RequestID, Data: data,
	}
	if r, ok := o.Ask.(dialect.RunTool); ok {
		if err := p.decided(&ask, r); err != nil {
			return nil, err
		}
	}
	ctx = directory.Seen(ctx, p.g.Directory.Revision())
	q := edge.Request{
		Service: to.Service, Verb: to.Verb, In: ask, Changes: changes(o), Data: data,
		Repeats: to.Looks || o.RequestID != "", // a service carries out a request with an id once
	}
	if to.Long {
		q.Within = longMaxWait
	}
	err = p.c.Client().Ask(ctx, q, &reply)
	return reply, err
}

// decided adds the proof to a person's request to run a tool: the client that names a tool and its arguments has
// decided about the call. Agents and services have not.
func (p *Participant) decided(ask *command.ParticipantRequest, r dialect.RunTool) (err error) {
	if ask.Kind != command.ParticipantClient || !p.c.Client().MayAct() {
		return nil
	}
	call := command.ToolRequest(r)
	if call.CallID == "" {
		call.CallID = edge.NewID()
	}
	if ask.Data, err = json.Marshal(call); err != nil {
		return fmt.Errorf("encode the data of %s: %w", command.RunTool, err)
	}
	ask.Proof, err = p.g.Signer.Call(ask.Tenant, ask.Principal, call)
	return err
}

// askLong asks without keeping later frames waiting. Such requests end with the socket.
func (p *Participant) askLong(o asp.Order) error {
	select {
	case p.asks <- struct{}{}:
	default:
		return fault.Newf(fault.RateLimited, "This connection is waiting for %d tool calls, which is the limit. Wait for one to finish.", cap(p.asks))
	}
	p.c.Underway(1)
	p.wg.Go(func() {
		defer p.c.Underway(-1)
		reply, err := p.inquire(p.ctx, o)
		p.answering.Lock() // one answer at a time waits for room in the queue
		defer p.answering.Unlock()
		<-p.asks // before the answer: a participant that has it may ask again
		log := subject.Log{Tenant: p.c.Client().Principal().Tenant}
		stream.Safely(p.g.Logger, log, func() { p.answerLong(o, reply, err) })
	})
	return nil
}

// answerLong answers a long request, unless the socket has ended with it.
func (p *Participant) answerLong(o asp.Order, reply json.RawMessage, err error) {
	_, draining := errors.AsType[*fault.Fault](context.Cause(p.ctx))
	switch {
	case err == nil:
		p.put(p.codec.Answer(p.g.Link(p.id), o, reply))
	case draining || p.ctx.Err() == nil:
		p.refuse(o, err)
	}
}

// forward hands on what a service says about a call that came on this connection.
func (p *Participant) forward(f asp.Forward) error {
	self, now := p.registered(), p.g.Clock()
	inbox, err := p.work.inbox(f.CallID, f.Final, now)
	if err != nil {
		return err
	}
	if !p.work.first(f.CallID, f.Request) {
		return nil
	}
	news := command.CallNews{CallID: f.CallID, ServiceID: self.ID, Final: f.Final, Result: f.Result}
	if n := f.Notification; n != nil {
		said := *n
		said.CallID, said.Server, said.ServerName = f.CallID, self.ID, self.Name
		if said.At.IsZero() {
			said.At = now.UTC()
		}
		news.Notification = &said
	}
	if f.Failure != nil {
		news.Code, news.Error, news.Details = string(f.Failure.Code), f.Failure.Public(), f.Failure.Details
	}
	p.tellCaller(inbox, news)
	if f.Final {
		p.loaded()
	}
	return nil
}
