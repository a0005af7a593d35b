package sessions

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Begin implements binding.Binding.
func (m *Multi) Begin() (err error) {
	after, err := m.resolveRun()
	if err != nil {
		return err
	}
	if err := m.readEcho(); err != nil {
		return err
	}
	if m.id, err = m.g.Recipients.Add(m); err != nil {
		return m.c.FaultOf(err)
	}
	m.of.add(m)
	m.reply = m.g.Recipients.ReplyTo(m.id)
	m.mu.Lock()
	m.beaten = m.g.Clock()
	m.mu.Unlock()
	m.c.Force(transport.Text(m.codec.Connected(m.g.Link(m.id))))
	m.c.Greeted()
	m.c.Settle()
	return m.showRun(after)
}

// Handle implements binding.Binding.
func (m *Multi) Handle(ctx context.Context, message []byte) error {
	req := myagent.Request{Action: myagent.Act}
	err := strictjson.Check(message)
	if err == nil {
		req, err = m.codec.Request(message)
	}
	if req.Action == myagent.Ack {
		m.acknowledge(ctx, req, err)
		return nil
	}
	if err == nil {
		err = m.do(ctx, req, message)
	}
	if err != nil {
		m.refuse(req, err)
	}
	return err
}

func (m *Multi) do(ctx context.Context, req myagent.Request, message []byte) error {
	switch req.Action {
	case myagent.Open:
		return m.open(req)
	case myagent.Import:
		return m.restore(ctx, req)
	}
	log, err := m.logOf(req.Session)
	if err != nil {
		return err
	}
	switch req.Action {
	case myagent.Resume:
		return m.resume(ctx, log, req, req.Resume)
	case myagent.Export:
		if a := m.find(log.Entity); a != nil {
			if err := m.ensure(ctx, a); err != nil {
				return err
			}
		}
		return m.export(ctx, log, req)
	default:
		return m.act(ctx, log, message)
	}
}

// act sends what a frame asks for to a session, and shows the session from then on.
func (m *Multi) act(ctx context.Context, log subject.Log, message []byte) error {
	if p := m.c.Client().Principal(); !p.Owns(log) {
		return fault.New(fault.SessionExpired)
	}
	intents, err := m.codecFor(log.Entity).Decode(message, dialect.Inbound{Kind: log.Kind, NewID: edge.NewID})
	if err != nil || len(intents) == 0 {
		return err
	}
	if !m.c.Client().MayAct() {
		return fault.New(fault.Forbidden)
	}
	cmds, err := binding.Commands(m.target, log, intents...)
	if err != nil {
		return err
	}
	a, err := m.attach(ctx, log)
	if err != nil {
		return err
	}
	if err := m.ensure(ctx, a, cmds...); err != nil {
		return err
	}
	m.noteOwn(cmds)
	for i := range cmds {
		cmds[i].Again = edge.NewID() // a repeat is answered as the first was
	}
	return m.c.Client().Do(ctx, m.reply, cmds...)
}

// Close implements binding.Binding.
func (m *Multi) Close() {
	for _, a := range m.shown() {
		a.stream.Close()
	}
	if m.id.IsZero() {
		return
	}
	m.g.Recipients.Remove(m.id)
	m.of.remove(m)
	ctx, cancel := context.WithTimeout(context.Background(), lastAcks)
	defer cancel()
	m.Flush(ctx)
}

// Receive implements edge.Recipient.
func (m *Multi) Receive(log subject.Log, e event.Event) []byte {
	if a := m.find(log.Entity); a != nil && a.unopened != nil && a.unopened.Refused(e) {
		return nil // the frame that it was opened for is refused
	}
	if m.ownEcho(e) {
		return nil
	}
	m.g.ShowDirect(m.c, m.codecFor(log.Entity), log, e)
	return nil
}
