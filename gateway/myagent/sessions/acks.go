package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// maxAcks bounds the acknowledgements that wait on one connection: four devices for
	// each of 64 sessions.
	maxAcks = 256
	// lastAcks bounds how long a socket that ends stays for its acknowledgements: a
	// bus that does not answer within it costs the client what it has seen already.
	lastAcks = 3 * time.Second
	// maxAck is far more than an acknowledgement has to say. A longer message is handled
	// as any other.
	maxAck = 4 << 10
	// strangeFor is for how long a session that could not be attached is not asked for
	// again because of an acknowledgement: clients repeat theirs every 200 ms.
	strangeFor = 30 * time.Second
)

// ackWord is in every acknowledgement: only messages with it are read twice.
var ackWord = []byte("ack")

// Unmetered handles a message that is an acknowledgement, and reports whether it was one.
// Clients send several a second for ever, so they use up neither the rate of messages nor
// a quota. Those over a rate of their own are dropped without a word.
func (m *Multi) Unmetered(ctx context.Context, message []byte) bool {
	if len(message) > maxAck || !bytes.Contains(message, ackWord) || strictjson.Check(message) != nil {
		return false
	}
	req, err := m.codec.Request(message)
	if req.Action != myagent.Ack {
		return false
	}
	if !m.c.Await() {
		return true
	}
	if !m.ackRate.Allow() {
		m.g.Metrics.DroppedAcks.Inc()
		m.c.Rated(false)
		return true
	}
	m.c.Rated(true)
	m.acknowledge(ctx, req, err)
	return true
}

// acknowledge notes how far a client has read. An acknowledgement is never answered: one
// that cannot be read or placed is dropped.
func (m *Multi) acknowledge(ctx context.Context, req myagent.Request, err error) {
	var a *attached
	if err == nil {
		a = m.placed(ctx, req)
	}
	if a == nil {
		m.g.Metrics.DroppedAcks.Inc()
		return
	}
	m.ack(a, req.Acked)
}

// placed returns the session that an acknowledgement is about: the one that it names,
// else the only one of the socket. A session that the socket does not show is shown from
// behind what the client has; nil if it cannot be.
func (m *Multi) placed(ctx context.Context, req myagent.Request) *attached {
	if req.Session == "" {
		if all := m.shown(); len(all) == 1 {
			return all[0]
		}
		return nil
	}
	log, err := m.logOf(req.Session)
	if err != nil || !req.Acked.In(log.Entity.String()) {
		return nil
	}
	if a := m.find(log.Entity); a != nil {
		return a
	}
	now := m.g.Clock()
	if now.Before(m.strange[log]) {
		return nil
	}
	a, err := m.goOn(ctx, log, req.Acked)
	if err != nil {
		m.g.Logger.Debug().Err(err).Stringer("log", log).Msg("acknowledgement dropped")
		if len(m.strange) >= maxAcks {
			clear(m.strange)
		}
		m.strange[log] = now.Add(strangeFor)
	}
	return a
}

// ack notes a position. It ignores one after the events that this connection has sent,
// because the client would lose events when it resumes, and the position of a client without
// a name, which no resume finds. Runs of other kinds keep no positions, and a connection
// that may only watch moves none.
func (m *Multi) ack(a *attached, at myagent.Position) {
	client := at.ClientID
	if client == "" {
		client = a.client
	}
	if a.log.Kind != id.KindSession || !m.c.Client().MayAct() {
		return
	}
	seq := ackedSeq(at)
	if client == "" || seq == 0 || seq > max(a.head, a.stream.Position()) {
		return
	}
	m.note(ackKey{a.log, client}, seq)
}

// ackedSeq returns the position that a client names, 0 for an invalid one.
func ackedSeq(at myagent.Position) uint64 {
	if at.EventID == "" {
		if at.Seq == nil {
			return 0
		}
		return *at.Seq
	}
	c, err := eventlog.ParseCursor(at.EventID)
	if err != nil {
		return 0
	}
	return c.Seq
}

// note keeps the highest of what a client has acknowledged.
func (m *Multi) note(k ackKey, seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, known := m.acks[k]
	if known || len(m.acks) < maxAcks {
		m.acks[k] = max(old, seq)
	}
}

// Flush sends the acknowledgements since the last call. Those that it cannot send wait for
// the next.
func (m *Multi) Flush(ctx context.Context) {
	m.mu.Lock()
	waiting := m.acks
	m.acks = map[ackKey]uint64{}
	m.mu.Unlock()
	for k, seq := range waiting {
		if err := m.sendAck(ctx, k, seq); err != nil {
			m.g.Logger.Debug().Err(err).Stringer("log", k.log).Msg("acknowledgement will be retried")
			break
		}
		m.g.Metrics.Acks.Inc()
		delete(waiting, k)
	}
	for k, seq := range waiting {
		m.note(k, seq)
	}
}

func (m *Multi) sendAck(ctx context.Context, k ackKey, seq uint64) error {
	data, err := json.Marshal(command.AckEvents{ClientID: k.client, Seq: seq})
	if err != nil {
		return fmt.Errorf("encode %s: %w", command.Ack, err)
	}
	p := m.c.Client().Principal()
	return m.c.Client().Do(ctx, "", command.Command{
		ID: edge.NewID(), Service: command.Session, Verb: command.Ack, Tenant: k.log.Tenant, Key: k.log.Entity,
		Principal: p.Subject, Time: m.g.Clock().UTC(), Data: data,
	})
}
