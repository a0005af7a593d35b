package gateway

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// linkBytes is how long the id of a connection is: 60 random bits, of which no two
// of a gateway's connections have the same.
const linkBytes = 12

// hearing is the subscription to what services say to single connections.
type hearing struct {
	sub   *nats.Subscription
	ended chan struct{}
}

// hear takes what is said to the connections of this gateway.
func (s *Server) hear() (*hearing, error) {
	h := &hearing{ended: make(chan struct{})}
	var err error
	if h.sub, err = s.dep.Conn.NATS().Subscribe(subject.DirectFilter(s.name), s.aside); err != nil {
		return nil, fmt.Errorf("subscribe to asides: %w", err)
	}
	h.sub.SetClosedHandler(func(string) { close(h.ended) })
	return h, nil
}

// end returns when no aside is being shown.
func (h *hearing) end() {
	if h == nil {
		return
	}
	if err := h.sub.Unsubscribe(); err == nil {
		<-h.ended
	}
}

// aside shows one connection what is said to it.
func (s *Server) aside(m *nats.Msg) {
	_, link, err := subject.ParseDirect(m.Subject)
	if err != nil {
		return
	}
	s.mu.Lock()
	to, peer := s.links[link.String()], s.peers[link.String()]
	s.mu.Unlock()
	if peer != nil {
		peer.hear(m)
		return
	}
	if to == nil { // it has left
		s.reply(m, refused)
		return
	}
	var e event.Event
	if err := json.Unmarshal(m.Data, &e); err != nil {
		s.dep.Logger.Warn().Err(err).Str("subject", m.Subject).Msg("drop undecodable direct message")
		return
	}
	log, err := subject.ParseName(e.Subject)
	if err != nil || e.Sequence != 0 || !to.who().Owns(log) {
		s.dep.Logger.Warn().Err(err).Str("log", e.Subject).Uint64("seq", e.Sequence).Msg("drop unknown direct message")
		return
	}
	to.whisper(log, e)
}

// whisper shows an aside. One that not even the room for such frames can hold, of a
// client that does not read, is dropped: whoever reads again sees the log's end.
func (m *many) whisper(log subject.Log, e event.Event) {
	m.c.whisper(m.codecFor(log.Entity), log, e)
}

// whisper shows an aside in the codec. A refusal for which it has no frame is shown as
// the fault that it is.
func (c *conn) whisper(codec dialect.Codec, log subject.Log, e event.Event) {
	stream.Safely(c.s.dep.Logger, log, func() {
		frames := codec.Encode(e)
		if d, err := event.As[event.CommandRefusedData](e); len(frames) == 0 && e.Type == event.CommandRefused && err == nil {
			f := fault.Newf(fault.Code(d.Code), "%s", d.Message).At(d.Field)
			frames = [][]byte{codec.Fail(f, c.s.dep.Clock())}
		}
		for _, p := range frames {
			if !c.sock.Force(transport.Text(p)) {
				c.s.met.lost.Inc()
			}
		}
	})
}

// notice tells the client something that is in no log.
func (c *conn) notice(codec dialect.Codec, log subject.Log, d event.NoticeData) {
	e, err := event.New(log, newID(), c.s.source, c.s.dep.Clock(), d)
	if err != nil {
		c.s.dep.Logger.Error().Err(err).Msg("encode a notice about workers")
		return
	}
	c.whisper(codec, log, e)
}

// hearer is a socket to which services say things.
type hearer interface {
	who() auth.Principal
	// whisper shows an aside, which is about a log of the principal's tenant. It does
	// not block.
	whisper(log subject.Log, e event.Event)
}

// who implements hearer.
func (m *many) who() auth.Principal { return m.c.who() }

// link gives the connection an id, under which asides find it.
func (s *Server) link(m hearer) (id.Name, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		name, err := id.ParseName("c" + strings.ToLower(rand.Text()[:linkBytes]))
		if err != nil {
			return id.Name{}, err
		}
		if key := name.String(); s.links[key] == nil && s.peers[key] == nil {
			s.links[key] = m
			return name, nil
		}
	}
}

func (s *Server) unlink(name id.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, name.String())
}
