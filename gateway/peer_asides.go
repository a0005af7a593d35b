package gateway

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// What the gateway answers to whoever has handed something to a connection and wants to
// know what became of it: a call is confirmed with the load (command.CallTaken). No
// answer means that this is not known.
var (
	confirmed = []byte("+") // it is in the socket's queue, or there was nothing to be said
	refused   = []byte("-") // it is not, and will not be
)

// reply answers whoever wants to know.
func (s *Server) reply(m *nats.Msg, answer []byte) {
	if m.Reply == "" || answer == nil {
		return
	}
	if err := m.Respond(answer); err != nil {
		s.dep.Logger.Debug().Err(err).Msg("fail to confirm direct message")
	}
}

// understand reads what is said to a peer.
func (p *peer) understand(m *nats.Msg) (about subject.Log, e event.Event, ok bool) {
	log := p.c.s.dep.Logger
	if err := json.Unmarshal(m.Data, &e); err != nil {
		log.Warn().Err(err).Str("subject", m.Subject).Msg("drop undecodable direct message")
		return about, e, false
	}
	about, err := subject.ParseName(e.Subject)
	if err != nil || e.Sequence != 0 || !p.c.who().Owns(about) {
		log.Warn().Err(err).Str("log", e.Subject).Uint64("seq", e.Sequence).Msg("drop unknown direct message")
		return about, e, false
	}
	return about, e, true
}

// aside shows a peer what is said to it, and returns the answer.
func (p *peer) aside(about subject.Log, e event.Event) []byte {
	switch e.Type {
	case event.TaskAssigned:
		return p.handTask(about, e)
	case event.CallRequested:
		return p.handCall(about, e)
	}
	p.note(about, e)
	frames, answer := p.queue(about, e)
	if e.Type == event.CommandRefused && frames == 0 && answer != nil {
		p.untold(e)
	}
	return answer
}

// note notes what an event says of the agent's tasks.
func (p *peer) note(about subject.Log, e event.Event) {
	switch e.Type {
	case event.TaskFinished, event.TaskReleased:
		if p.work.release(about.Entity.String()) {
			p.loaded()
		}
	default:
		p.work.heard(about.Entity.String())
	}
}

// untold counts a frame that the service has refused and that has no answer.
func (p *peer) untold(e event.Event) {
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
func (p *peer) handTask(about subject.Log, e event.Event) []byte {
	if !p.who().Online {
		return refused
	}
	frames, answer := p.queue(about, e)
	if frames == 0 {
		return refused
	}
	p.work.assign(about.Entity.String())
	p.loaded()
	return answer
}

// handCall hands a call to a service, unless it has as many as it may. One that it has
// already it is not asked for twice.
func (p *peer) handCall(about subject.Log, e event.Event) []byte {
	c, err := event.As[event.CallRequestedData](e)
	if err != nil || c.CallID == "" || c.Inbox == "" {
		p.c.s.dep.Logger.Warn().Err(err).Stringer("log", about).Msg("drop call without reply subject")
		return refused
	}
	if !p.who().Online {
		return refused
	}
	switch p.work.add(c.CallID, c.Inbox, c.Deadline, p.c.s.dep.Clock()) {
	case full:
		return refused
	case known:
		return command.CallTaken(p.work.load())
	}
	frames, answer := p.queue(about, e)
	if frames == 0 {
		p.work.drop(c.CallID)
		return refused
	}
	p.loaded()
	if answer != nil {
		answer = command.CallTaken(p.work.load())
	}
	return answer
}

// queue queues what an event becomes and returns how many frames that is. The answer is
// nil if the queue, with the room that there is for such frames behind a full one, could
// not hold all of them: then it is not known what the peer will make of it.
func (p *peer) queue(about subject.Log, e event.Event) (queued int, answer []byte) {
	stream.Safely(p.c.s.dep.Logger, about, func() {
		for _, b := range p.codec.Encode(e) {
			if !p.c.sock.Force(transport.Text(b)) {
				p.c.s.met.lost.Inc()
				return
			}
			queued++
		}
		answer = confirmed
	})
	if answer == nil && queued == 0 {
		answer = refused
	}
	return queued, answer
}

// meet gives the connection of a peer an id, under which asides find it.
func (s *Server) meet(p *peer) (id.Name, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		name, err := id.ParseName("c" + strings.ToLower(rand.Text()[:linkBytes]))
		if err != nil {
			return id.Name{}, err
		}
		if key := name.String(); s.links[key] == nil && s.peers[key] == nil {
			s.peers[key] = p
			return name, nil
		}
	}
}

// part forgets the connection of a peer.
func (s *Server) part(name id.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, name.String())
}
