package participants

import (
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// showDirect shows a direct message, and returns the answer.
func (p *Participant) showDirect(about subject.Log, e event.Event) []byte {
	switch e.Type {
	case event.TaskAssigned:
		return p.handTask(about, e)
	case event.CallRequested:
		return p.handCall(about, e)
	}
	p.note(about, e)
	frames, answer := p.queue(about, e)
	if e.Type == event.CommandRefused && frames == 0 && answer != nil {
		p.countRefusal(e)
	}
	return answer
}

// note notes what an event says of the agent's tasks.
func (p *Participant) note(about subject.Log, e event.Event) {
	switch e.Type {
	case event.TaskFinished, event.TaskReleased:
		if p.work.release(about.Entity.String()) {
			p.loaded()
		}
	default:
		p.work.heard(about.Entity.String())
	}
}

// countRefusal counts a frame that the service has refused and that has no answer.
func (p *Participant) countRefusal(e event.Event) {
	d, err := event.As[event.CommandRefusedData](e)
	if err != nil {
		return
	}
	code := fault.Code(d.Code)
	if fault.Lookup(code).Code != code {
		code = fault.Internal
	}
	_ = p.drop(fault.New(code))
}

// handTask hands a task to an agent that is there for tasks.
func (p *Participant) handTask(about subject.Log, e event.Event) []byte {
	if !p.registered().Online {
		return edge.Refused
	}
	frames, answer := p.queue(about, e)
	if frames == 0 {
		return edge.Refused
	}
	p.work.assign(about.Entity.String())
	p.loaded()
	return answer
}

// handCall hands a call to a service, unless it has as many as it may. One that it has
// already it is not asked for twice.
func (p *Participant) handCall(about subject.Log, e event.Event) []byte {
	c, err := event.As[event.CallRequestedData](e)
	if err != nil || c.CallID == "" || c.Inbox == "" {
		p.g.Logger.Warn().Err(err).Stringer("log", about).Msg("tool call dropped: no reply subject")
		return edge.Refused
	}
	if !p.registered().Online {
		return edge.Refused
	}
	switch p.work.add(c.CallID, c.Inbox, c.Deadline, p.g.Clock()) {
	case full:
		return edge.Refused
	case known:
		return command.CallTaken(p.work.load())
	}
	frames, answer := p.queue(about, e)
	if frames == 0 {
		p.work.drop(c.CallID)
		return edge.Refused
	}
	p.loaded()
	if answer != nil {
		answer = command.CallTaken(p.work.load())
	}
	return answer
}

// queue queues the frames of an event and returns their number. The answer is nil if the
// queue, with the room for such frames after a full one, cannot hold all of them: the
// outcome at the participant is unknown then.
func (p *Participant) queue(about subject.Log, e event.Event) (queued int, answer []byte) {
	stream.Safely(p.g.Logger, about, func() {
		for _, b := range p.codec.Encode(e) {
			if !p.c.Force(transport.Text(b)) {
				p.g.Metrics.Lost.Inc()
				return
			}
			queued++
		}
		answer = edge.Confirmed
	})
	if answer == nil && queued == 0 {
		answer = edge.Refused
	}
	return queued, answer
}
