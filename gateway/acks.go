package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// maxAcks bounds what waits to be acknowledged on one socket: four devices for
	// each of its sessions.
	maxAcks = 4 * defaultSessions
	// lastAcks bounds how long a socket that ends stays for its acknowledgements: a
	// bus that does not answer within it costs the client what it has seen already.
	lastAcks = 3 * time.Second
)

// ackKey is who has read what.
type ackKey struct {
	log    subject.Log
	client string
}

// ack notes how far a client has read. What it says of events that this socket has
// not heard of is ignored: it would lose them when it comes back. So is what nobody
// says who has not named itself: it could not be found again. Runs of other kinds keep
// no positions, and whoever only watches moves nobody's.
func (m *many) ack(a *attached, at dialect.Position) error {
	seq, err := ackedSeq(at)
	if err != nil {
		return err
	}
	client := at.ClientID
	if client == "" {
		client = a.client
	}
	if a.log.Kind != id.KindSession || !m.c.mayAct() {
		return nil
	}
	if client == "" || seq == 0 || seq > max(a.head, a.feed.position()) {
		return nil
	}
	m.note(ackKey{a.log, client}, seq)
	return nil
}

// ackOnly notes an acknowledgement that names no session: it is for the only one of
// the socket.
func (m *many) ackOnly(at dialect.Position) error {
	if all := m.shown(); len(all) == 1 {
		return m.ack(all[0], at)
	}
	return fault.Newf(fault.InvalidField, "This connection does not hold exactly one session. Say which one you mean.").At("session_id")
}

// ackedSeq returns the position that a client names.
func ackedSeq(at dialect.Position) (uint64, error) {
	switch {
	case at.EventID != "":
		c, err := eventlog.ParseCursor(at.EventID)
		if err != nil {
			return 0, fault.Newf(fault.CursorInvalid, "This is not the event_id of an event. Send one that you received.").At("last_event_id").Wrap(err)
		}
		return c.Seq, nil
	case at.Seq != nil:
		return *at.Seq, nil
	}
	return 0, nil
}

// note keeps the highest of what a client has acknowledged.
func (m *many) note(k ackKey, seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, known := m.acks[k]
	if known || len(m.acks) < maxAcks {
		m.acks[k] = max(old, seq)
	}
}

// flushAcks sends what has been acknowledged since the last time. What cannot be
// sent waits for the next.
func (m *many) flushAcks(ctx context.Context) {
	m.mu.Lock()
	waiting := m.acks
	m.acks = map[ackKey]uint64{}
	m.mu.Unlock()
	for k, seq := range waiting {
		if err := m.sendAck(ctx, k, seq); err != nil {
			m.c.s.dep.Logger.Debug().Err(err).Stringer("log", k.log).Msg("an acknowledgement waits")
			break
		}
		m.c.s.met.acks.Inc()
		delete(waiting, k)
	}
	for k, seq := range waiting {
		m.note(k, seq)
	}
}

func (m *many) sendAck(ctx context.Context, k ackKey, seq uint64) error {
	data, err := json.Marshal(command.AckEvents{ClientID: k.client, Seq: seq})
	if err != nil {
		return fmt.Errorf("encode %s: %w", command.Ack, err)
	}
	p := m.c.who()
	return m.c.send(ctx, p, "", command.Command{
		ID: newID(), Service: command.Session, Verb: command.Ack, Tenant: k.log.Tenant, Key: k.log.Entity,
		Principal: p.Subject, Time: m.c.s.dep.Clock().UTC(), Data: data,
	})
}

// sendAcks sends the acknowledgements of all sockets now and then, until the gateway
// stops.
func (s *Server) sendAcks() {
	t := time.NewTicker(s.cfg.AckInterval)
	defer t.Stop()
	var all []interface{ flushAcks(ctx context.Context) }
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
		}
		s.mu.Lock()
		for _, to := range s.links {
			if m, ok := to.(*many); ok {
				all = append(all, m)
			}
		}
		for _, p := range s.peers {
			all = append(all, p)
		}
		s.mu.Unlock()
		for _, m := range all {
			m.flushAcks(s.ctx)
		}
		clear(all)
		all = all[:0]
	}
}
