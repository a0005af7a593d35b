package participants

import (
	"context"
	"errors"
	"fmt"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxMail and maxMailBytes bound the direct messages that wait for one participant after
// data that is being loaded: hundreds of references, or the data of a full queue. A message
// without room comes later, or its task goes to another agent.
const (
	maxMail      = 256
	maxMailBytes = 1 << 20
)

// idle reports whether nothing waits.
func (m *mail) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.busy
}

// add queues a letter if it has room, and begins to handle the queue.
func (m *mail) add(l letter, begin func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := len(l.event.Data)
	if m.over || len(m.waiting) >= maxMail || m.bytes > 0 && m.bytes+size > maxMailBytes {
		return false
	}
	m.waiting, m.bytes = append(m.waiting, l), m.bytes+size
	if !m.busy {
		m.busy = true
		begin()
	}
	return true
}

// next returns the next letter, or false if none waits.
func (m *mail) next() (letter, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || len(m.waiting) == 0 {
		m.waiting, m.bytes, m.busy = nil, 0, false
		return letter{}, false
	}
	l := m.waiting[0]
	m.waiting[0] = letter{}
	m.waiting, m.bytes = m.waiting[1:], m.bytes-len(l.event.Data)
	return l, true
}

// Receive implements edge.Recipient. A message that refers to stored data, and those behind
// it, are confirmed before the client has them: if the client goes away first, it is told
// again as after any other loss of its connection.
func (p *Participant) Receive(about subject.Log, e event.Event) []byte {
	if u := p.unopened(about); u != nil && u.Refused(e) {
		return edge.Confirmed
	}
	if !p.refers(e) && p.mail.idle() {
		return p.showDirect(about, e)
	}
	if e.Type != event.TaskAssigned || p.registered().Online {
		if p.mail.add(letter{about, e}, func() { p.wg.Go(p.deliver) }) {
			return edge.Confirmed
		}
	}
	return edge.Refused
}

// refers reports whether the participant is to be told something that is stored. Of the end of its
// task an agent is told no more than that.
func (p *Participant) refers(e event.Event) bool {
	if e.Type == event.TaskFinished && p.codec.Kind() == command.ParticipantAgent {
		return false
	}
	data, err := event.Refers(e)
	return err == nil && data != nil
}

// deliver tells the participant what waits for it.
func (p *Participant) deliver() {
	for {
		l, ok := p.mail.next()
		if !ok {
			return
		}
		if err := p.convey(l); err != nil {
			p.g.Logger.Debug().Err(err).Str("participant", p.registered().ID).Str("event", l.event.ID).Msg("event for participant dropped")
		}
	}
}

// convey tells the participant of one event, with its data, and waits until its queue has room.
func (p *Participant) convey(l letter) error {
	release, err := p.c.Slot().Hold(p.ctx, p.c.Done())
	if err != nil {
		return err
	}
	defer release()
	if l.event.Type == event.TaskAssigned {
		return p.conveyTask(l)
	}
	whole := l.event
	if p.refers(l.event) {
		if whole, err = p.g.Streams.Loader.Event(p.ctx, l.about, l.event); err != nil {
			return err
		}
	}
	p.note(l.about, l.event)
	stream.Safely(p.g.Logger, l.about, func() { p.put(p.codec.Encode(whole)) })
	return nil
}

// conveyTask hands a task to the agent. One whose data is lost fails: no agent could do it.
func (p *Participant) conveyTask(l letter) error {
	d, err := event.As[event.TaskAssignedData](l.event)
	if err != nil {
		return err
	}
	p.work.assign(l.about.Entity.String())
	p.loaded()
	err = p.g.Streams.Loader.Insist(p.ctx, l.about, func() error { return p.g.Payloads.Fill(p.ctx, l.about.Tenant, &d) })
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.PayloadLost {
		p.g.Logger.Error().Err(err).Stringer("log", l.about).Msg("stored data lost")
		return p.failTask(p.ctx, l.about, d, f)
	}
	if err != nil {
		return err
	}
	e, err := l.event.With(&d)
	if err != nil {
		return err
	}
	stream.Safely(p.g.Logger, l.about, func() { p.put(p.codec.Encode(e)) })
	return nil
}

// failTask ends the agent's task for a fault of ours.
func (p *Participant) failTask(ctx context.Context, about subject.Log, d event.TaskAssignedData, f *fault.Fault) error {
	return p.act(ctx, about, dialect.Intent{
		ID:   fmt.Sprintf("failed.%d", d.Attempt),
		Data: dialect.FinishTask{TaskID: d.TaskID, AgentID: d.AgentID, Failed: true, Code: string(f.Code), Error: f.Public()},
	})
}
