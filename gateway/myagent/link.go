package myagent

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// serverName is the name that the original server gives itself.
const serverName = "MyAgent WebSocket Server"

// Greet implements dialect.Codec. A socket of this dialect has no session when it
// opens: it is greeted once.
func (c *Codec) Greet(g dialect.Greeting) [][]byte {
	if g.Stage != dialect.Starting {
		return nil
	}
	return [][]byte{c.Connected(dialect.Link{Now: g.Now})}
}

// Fail implements dialect.Codec.
func (c *Codec) Fail(f *fault.Fault, now time.Time) []byte {
	return c.linked(dialect.Link{Now: now}, "", c.tell(trouble{Fault: f}))
}

// Truncated implements dialect.Codec.
func (c *Codec) Truncated(first uint64, now time.Time) []byte {
	return c.Expired(dialect.Link{Now: now}, "", first)
}

// Connected returns the frame that greets a socket.
func (c *Codec) Connected(at dialect.Link) []byte {
	return c.linked(at, "", wire.Frame{
		Event:   wire.SystemConnected,
		Content: wire.ConnectedContent{ServerName: serverName, ServerVersion: c.settings.ServerVersion},
		Metadata: wire.ConnectedMeta{
			Context: link(at), Capabilities: capabilities, HeartbeatSeconds: c.settings.Heartbeat.Seconds(),
			MaxTTLHours: c.settings.SessionTTL.Hours(), UptimeSeconds: int64(at.Uptime.Seconds()),
		},
		ShowContent: c.words.connected,
	})
}

// Heartbeat returns the frame that says that the server lives. session is empty for a socket without one; seq is the newest of
// the session.
func (c *Codec) Heartbeat(at dialect.Link, session string, seq uint64) []byte {
	m := wire.HeartbeatMeta{Context: link(at), UptimeSeconds: int64(at.Uptime.Seconds())}
	if session != "" {
		m.Seq = &seq
	}
	return c.linked(at, session, wire.Frame{
		Event: wire.SystemHeartbeat, Content: wire.HeartbeatContent{ServerTime: wire.Stamp(at.Now)}, Metadata: m, ShowContent: c.words.heartbeat,
	})
}

// Expired tells a returning client that what it asked for begins at first.
func (c *Codec) Expired(at dialect.Link, session string, first uint64) []byte {
	return c.linked(at, session, c.notice(fmt.Sprintf(c.words.historyExpired, first), wire.NoticeMeta{
		Work: wire.Work{Context: link(at)}, Type: "warning", Severity: mildFault, Action: wire.ActionHistoryExpired, FirstLeft: first,
	}))
}

// Replayed closes a replay: count events up to seq have been shown. matched says whether the client's hash of the state is right,
// nil if it sent none.
func (c *Codec) Replayed(at dialect.Link, session string, count int, seq uint64, cursor string, matched *bool) []byte {
	return c.linked(at, session, c.notice(c.words.replayed, wire.NoticeMeta{
		Work: wire.Work{Context: link(at)}, Action: wire.ActionReplay, Replayed: &count, LastSeq: seq, LastEventID: eventID(session, cursor), HashMatched: matched,
	}))
}

// Batch returns one frame that holds the frames of the events, in order. Events without a frame are passed over.
func (c *Codec) Batch(at dialect.Link, session string, events []event.Event) []byte {
	m := wire.NoticeMeta{Work: wire.Work{Context: link(at)}, Action: wire.ActionReplayBatch}
	list := make([]json.RawMessage, 0, len(events))
	for _, e := range events {
		for _, f := range c.Encode(e) {
			list = append(list, f)
		}
	}
	m.Count = len(list)
	if len(events) > 0 {
		first, last := events[0], events[len(events)-1]
		m.FirstSeq, m.LastSeq, m.LastEventID = first.Sequence, last.Sequence, eventID(sessionOf(last.Subject), cursor(ahead(last)))
		if first.From > 0 {
			m.FirstSeq = min(first.From, first.Sequence)
		}
	}
	f := c.notice(c.words.batch, m)
	f.Content = wire.NoticeContent{Message: c.words.batch, EventList: list}
	return c.linked(at, session, f)
}

// Exported returns the frame that holds the exported state of a session. An invalid state gives a system.error.
func (c *Codec) Exported(at dialect.Link, session string, state event.StateExportedData) []byte {
	f := stateExported(c, event.Event{}, state)
	if m, ok := f.Metadata.(wire.StateExportedMeta); ok {
		m.Context = link(at)
		f.Metadata = m
	}
	return c.linked(at, session, f)
}
