package dialecttest

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Link is the socket that frames of the suite go to.
var Link = dialect.Link{ConnectionID: "conn-1", Now: Now, Uptime: 90 * time.Second}

// actions are all that a frame can ask of the gateway.
var actions = []dialect.Action{"", dialect.Act, dialect.Open, dialect.Resume, dialect.Ack, dialect.Export, dialect.Import}

// links checks the frames that are made for one connection: they fit their schemas,
// name the connection and the session, and use up no seq.
func (c *checker) links(t *testing.T) {
	session := Session.Entity.String()
	for _, codec := range c.bound {
		s, ok := codec.(dialect.Sessions)
		if !ok {
			continue
		}
		yes, events := true, c.sampleEvents(t)
		for name, f := range map[string][]byte{
			"heartbeat": s.Heartbeat(Link, session, 41), "expired": s.Expired(Link, session, 18),
			"replayed": s.Replayed(Link, session, 3, 41, "41.97", nil), "replayed nothing": s.Replayed(Link, session, 0, 41, "41", &yes),
			"batch": s.Batch(Link, session, events), "batch of none": s.Batch(Link, session, nil),
		} {
			c.linked(t, f, session, name)
		}
		c.linked(t, s.Restored(Link, session, event.SessionRestoredData{Stage: "idle", ExportedAt: Now, ExportedSeq: 3, Warnings: []string{"lost"}}), session, "restored")
		c.linked(t, s.Connected(Link), "", "connected")
		c.linked(t, s.Heartbeat(Link, "", 0), "", "heartbeat without a session")
		require.Contains(t, string(s.Heartbeat(Link, session, 41)), `41`)
		c.batched(t, s, events)
		c.exported(t, s)
		c.languages(t, s)
	}
}

func (c *checker) linked(t *testing.T, f []byte, session, name string) {
	t.Helper()
	c.frame(t, f)
	require.Zero(t, seqOf(f), "%s: a frame for one connection uses up no seq", name)
	require.Empty(t, member(f, "event_id"), name)
	require.Equal(t, session, member(f, "session_id"), name)
	require.Contains(t, string(f), Link.ConnectionID, name)
}

// sampleEvents is one event of every type.
func (c *checker) sampleEvents(t *testing.T) []event.Event {
	var out []event.Event
	for i, info := range event.Catalogue {
		out = append(out, event.Event{
			Type: info.Type, Subject: Session.Name(), Time: Now, Sequence: uint64(i + 1), Data: fill(t, info, "text", `{"a":1}`, i),
		})
	}
	return out
}

// batched checks that a batch holds the very frames that would be sent one by one.
func (c *checker) batched(t *testing.T, s dialect.Sessions, events []event.Event) {
	var v struct {
		Content struct {
			EventList []json.RawMessage `json:"event_list"`
		} `json:"content"`
	}
	require.NoError(t, json.Unmarshal(s.Batch(Link, Session.Entity.String(), events), &v))
	var want []string
	for _, e := range events {
		for _, f := range s.Encode(e) {
			want = append(want, string(f))
		}
	}
	require.Len(t, v.Content.EventList, len(want))
	for i, f := range want {
		require.Equal(t, f, string(v.Content.EventList[i]))
	}
}

// exported checks states of every kind, and one without JSON.
func (c *checker) exported(t *testing.T, s dialect.Sessions) {
	info := event.DirectMessages[0]
	require.Equal(t, event.StateExported, info.Type)
	for i, raw := range Raws {
		var d event.StateExportedData
		require.NoError(t, json.Unmarshal(fill(t, info, "text", raw, i), &d))
		c.linked(t, s.Exported(Link, Session.Entity.String(), d), Session.Entity.String(), raw)
	}
	f := s.Exported(Link, Session.Entity.String(), event.StateExportedData{State: json.RawMessage(`{`)})
	c.frame(t, f)
	require.NotContains(t, string(f), "INVALID_FIELD", "a broken state is the server's mistake")
}

// languages checks that the variants of a codec are those of the suite.
func (c *checker) languages(t *testing.T, s dialect.Sessions) {
	names := map[string]bool{}
	for _, codec := range c.bound {
		names[codec.Name()] = true
	}
	for _, language := range []string{"zh_CN", "en_US", "", "tlh", "en"} {
		v, ok := s.In(language)
		require.True(t, names[v.Name()], "the suite has no variant %s", v.Name())
		require.Equal(t, language != "" && language != "tlh", ok)
		again, _ := v.In(language)
		require.Equal(t, v.Name(), again.Name())
	}
	zh, _ := s.In("zh_CN")
	en, _ := s.In("en_US")
	require.NotEqual(t, zh.Name(), en.Name())
	same, _ := s.In("tlh")
	require.Equal(t, s.Name(), same.Name(), "a language without Texts changes nothing")
}

// cursor is the form of event ids.
func cursor(e event.Event) string {
	s := strconv.FormatUint(e.Sequence, 10)
	if e.Stream != 0 {
		s += "." + strconv.FormatUint(e.Stream, 10)
	}
	return s
}

// Raws are JSON that comes from elsewhere: arguments, contexts, states.
var Raws = []string{`{}`, `{"a":{"b":[1,2]}}`, `[1,"x"]`, `"x"`, `null`, `1e999`}

func seqOf(frame []byte) uint64 {
	var v struct {
		Seq uint64 `json:"seq"`
	}
	_ = json.Unmarshal(frame, &v) // A frame without a seq has seq 0.
	return v.Seq
}
