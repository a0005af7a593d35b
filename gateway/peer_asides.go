package gateway

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/gateway/wire"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// confirmed is what the gateway answers when what it was handed is in the socket's
// queue. Without it, whoever has handed it over has to take it as not delivered.
var confirmed = []byte("+")

// aside shows a peer what is said to it, and confirms that to whoever wants to know.
func (p *peer) aside(m *nats.Msg) {
	log := p.c.s.dep.Logger
	var e event.Event
	if err := json.Unmarshal(m.Data, &e); err != nil {
		log.Warn().Err(err).Str("subject", m.Subject).Msg("an aside is no event")
		return
	}
	about, err := subject.ParseName(e.Subject)
	inLog := e.Sequence != 0 && p.codec.Kind() == command.PeerClient
	if err != nil || inLog || !p.c.who().Owns(about) {
		log.Warn().Err(err).Str("log", e.Subject).Uint64("seq", e.Sequence).Msg("an aside that is none is not shown")
		return
	}
	if !p.hand(about, e) || m.Reply == "" {
		return
	}
	if err := m.Respond(confirmed); err != nil {
		log.Debug().Err(err).Msg("an aside is not confirmed")
	}
}

// hand hands an event to the peer and reports whether it is in the socket's queue.
func (p *peer) hand(about subject.Log, e event.Event) bool {
	switch e.Type {
	case event.TaskAssigned:
		return p.handTask(about, e)
	case event.CallRequested:
		return p.handCall(about, e)
	case event.TaskFinished, event.TaskReleased:
		if p.work.release(about.Entity.String()) {
			p.loaded()
		}
	}
	return p.queue(about, e)
}

// handTask hands a task to an agent that is there for tasks.
func (p *peer) handTask(about subject.Log, e event.Event) bool {
	if !p.who().Online || !p.queue(about, e) {
		return false
	}
	p.work.assign(about.Entity.String())
	p.loaded()
	return true
}

// handCall hands a call to a service, unless it has as many as it may.
func (p *peer) handCall(about subject.Log, e event.Event) bool {
	c, err := event.As[event.CallRequestedData](e)
	if err != nil || c.CallID == "" || c.Inbox == "" {
		p.c.s.dep.Logger.Warn().Err(err).Stringer("log", about).Msg("a call that cannot be answered is not handed on")
		return false
	}
	if !p.who().Online || !p.work.add(c.CallID, c.Inbox, c.Deadline, p.c.s.dep.Clock()) {
		return false
	}
	if !p.queue(about, e) {
		p.work.drop(c.CallID)
		return false
	}
	p.loaded()
	return true
}

// queue queues what an event becomes. It reports false if that is nothing, or if not
// even the room for such frames can hold it.
func (p *peer) queue(about subject.Log, e event.Event) (ok bool) {
	p.c.safely(about, func() {
		frames := p.codec.Encode(e)
		for _, b := range frames {
			if !p.c.sock.Force(wire.Text(b)) {
				p.c.s.met.lost.Inc()
				return
			}
		}
		ok = len(frames) > 0
	})
	return ok
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
