package myagent_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// asks writes what a frame asks of the gateway on one line, without what it leaves out.
func asks(t testing.TB, c dialect.Codec, frame []byte) (string, error) {
	t.Helper()
	r, err := own(c).Request(frame)
	if err != nil || r.Action == myagent.Act {
		return "", err
	}
	v := map[string]any{"session": r.Session}
	switch r.Action {
	case myagent.Open:
		v = map[string]any{"open": r.Open}
	case myagent.Ack:
		v["acked"] = position(r.Acked)
	case myagent.Export:
		v["history"], v["max"] = r.History, r.Max
	default:
		v["from"], v["batch"], v["merge"] = position(r.Resume), r.Batch, r.Merge
		if r.Signed != nil {
			v["signed"] = r.Signed
		}
	}
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(r.Action) + " " + string(b), nil
}

func position(p myagent.Position) map[string]any {
	v := map[string]any{}
	if p.Seq != nil {
		v["seq"] = *p.Seq
	}
	for name, s := range map[string]string{"event_id": p.EventID, "client_id": p.ClientID, "hash": p.Hash} {
		if s != "" {
			v[name] = s
		}
	}
	return v
}

// refuse returns the frame that refuses another one.
func refuse(c dialect.Codec, frame []byte, f *fault.Fault) []byte {
	r, _ := own(c).Request(frame) // with an error it is known as far as it can be read
	return own(c).Refuse(dialecttest.Link, r.Session, r.Action, f)
}

// own returns the codec, which is one of this protocol.
func own(c dialect.Codec) *myagent.Codec {
	codec, ok := c.(*myagent.Codec)
	if !ok {
		panic("a codec of another protocol: " + c.Name())
	}
	return codec
}

// linked returns the frame that a gateway makes for one connection. Transcripts may hold !connected, !heartbeat N, !expired N,
// !replayed COUNT SEQ [true|false], !batch FROM TO (of the events before it), !refuse ACTION CODE, !exported JSON and !merged FROM
// (the event before it, as one that stands for those from FROM on).
func linked(t *testing.T, c dialect.Codec, events []event.Event, word, arg string) [][]byte {
	t.Helper()
	s, session := own(c), dialecttest.Session.Entity.String()
	args := append(strings.Fields(arg), "", "", "")
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(args[i], 10, 64)
		require.NoError(t, err, "!%s %s", word, arg)
		return n
	}
	switch word {
	case "connected":
		return [][]byte{s.Connected(dialecttest.Link)}
	case "heartbeat":
		return [][]byte{s.Heartbeat(dialecttest.Link, session, number(0))}
	case "expired":
		return [][]byte{s.Expired(dialecttest.Link, session, number(0))}
	case "replayed":
		var matched *bool
		if b, err := strconv.ParseBool(args[2]); err == nil {
			matched = &b
		}
		return [][]byte{s.Replayed(dialecttest.Link, session, int(number(0)), number(1), args[1], matched)}
	case "batch":
		begin := events[0].Sequence
		return [][]byte{s.Batch(dialecttest.Link, session, events[number(0)-begin:number(1)-begin+1])}
	case "refuse":
		return [][]byte{s.Refuse(dialecttest.Link, session, myagent.Action(args[0]), fault.New(fault.Code(args[1])))}
	case "exported":
		var d event.StateExportedData
		require.NoError(t, json.Unmarshal([]byte(arg), &d))
		return [][]byte{s.Exported(dialecttest.Link, session, d)}
	case "merged":
		e := events[len(events)-1]
		e.From = number(0)
		return s.Encode(e)
	}
	require.Fail(t, "unknown line in the bus section", "!%s", word)
	return nil
}

// links checks the frames that are made for one connection.
type links struct {
	messages *dialecttest.Messages
	*myagent.Codec
}

// TestFramesForOneConnection: they fit their schemas, name the connection and the session, and use up no seq.
func TestFramesForOneConnection(t *testing.T) {
	messages, session := suite(t).Messages(t), dialecttest.Session.Entity.String()
	names := map[string]bool{}
	for _, query := range variants() {
		names[bound(t, query).Name()] = true
	}
	for _, query := range variants() {
		s := links{messages, bound(t, query)}
		yes, events := true, sampleEvents(t)
		for name, f := range map[string][]byte{
			"heartbeat": s.Heartbeat(dialecttest.Link, session, 41), "expired": s.Expired(dialecttest.Link, session, 18),
			"replayed": s.Replayed(dialecttest.Link, session, 3, 41, "41.97", nil), "replayed nothing": s.Replayed(dialecttest.Link, session, 0, 41, "41", &yes),
			"batch": s.Batch(dialecttest.Link, session, events), "batch of none": s.Batch(dialecttest.Link, session, nil),
		} {
			s.check(t, f, session, name)
		}
		restored := event.SessionRestoredData{Stage: "idle", ExportedAt: dialecttest.Now, ExportedSeq: 3, Warnings: []string{"lost"}}
		s.check(t, s.Restored(dialecttest.Link, session, restored), session, "restored")
		s.check(t, s.Connected(dialecttest.Link), "", "connected")
		s.check(t, s.Heartbeat(dialecttest.Link, "", 0), "", "heartbeat without a session")
		require.Contains(t, string(s.Heartbeat(dialecttest.Link, session, 41)), `41`)
		for _, action := range []myagent.Action{"", myagent.Act, myagent.Open, myagent.Resume, myagent.Ack, myagent.Export, myagent.Import} {
			for _, entry := range fault.Catalogue {
				s.check(t, s.Refuse(dialecttest.Link, session, action, fault.New(entry.Code)), session, "refused")
			}
		}
		s.batched(t, events)
		s.exported(t)
		s.inLanguages(t, names)
	}
}

func (l links) check(t *testing.T, f []byte, session, name string) {
	t.Helper()
	l.messages.Frame(t, f)
	var v struct {
		Seq       uint64 `json:"seq"`
		EventID   string `json:"event_id"`
		SessionID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal(f, &v), name)
	require.Zero(t, v.Seq, "%s: a frame for one connection uses up no seq", name)
	require.Empty(t, v.EventID, name)
	require.Equal(t, session, v.SessionID, name)
	require.Contains(t, string(f), dialecttest.Link.ConnectionID, name)
}

// sampleEvents is one event of every type.
func sampleEvents(t *testing.T) (out []event.Event) {
	for i, info := range event.Catalogue {
		out = append(out, event.Event{
			Type: info.Type, Subject: dialecttest.Session.Name(), Time: dialecttest.Now, Sequence: uint64(i + 1),
			Data: dialecttest.Filled(t, info, "text", `{"a":1}`, i),
		})
	}
	return out
}

// batched checks that a batch holds the very frames that would be sent one by one.
func (l links) batched(t *testing.T, events []event.Event) {
	var v struct {
		Content struct {
			EventList []json.RawMessage `json:"event_list"`
		} `json:"content"`
	}
	require.NoError(t, json.Unmarshal(l.Batch(dialecttest.Link, dialecttest.Session.Entity.String(), events), &v))
	var want []string
	for _, e := range events {
		for _, f := range l.Encode(e) {
			want = append(want, string(f))
		}
	}
	require.Len(t, v.Content.EventList, len(want))
	for i, f := range want {
		require.Equal(t, f, string(v.Content.EventList[i]))
	}
}

// exported checks states of every kind, and one without JSON.
func (l links) exported(t *testing.T) {
	info, session := event.DirectMessages[0], dialecttest.Session.Entity.String()
	require.Equal(t, event.StateExported, info.Type)
	for i, raw := range dialecttest.Raws {
		var d event.StateExportedData
		require.NoError(t, json.Unmarshal(dialecttest.Filled(t, info, "text", raw, i), &d))
		l.check(t, l.Exported(dialecttest.Link, session, d), session, raw)
	}
	f := l.Exported(dialecttest.Link, session, event.StateExportedData{State: json.RawMessage(`{`)})
	l.messages.Frame(t, f)
	require.NotContains(t, string(f), "INVALID_FIELD", "a broken state is the server's mistake")
}

// inLanguages checks that the variants of a codec are those of the suite.
func (l links) inLanguages(t *testing.T, names map[string]bool) {
	for _, language := range []string{"zh_CN", "en_US", "", "tlh", "en"} {
		v, ok := l.In(language)
		require.True(t, names[v.Name()], "the suite has no variant %s", v.Name())
		require.Equal(t, language != "" && language != "tlh", ok)
		again, _ := v.In(language)
		require.Equal(t, v.Name(), again.Name())
	}
	require.NotEqual(t, in(t, l.Codec, "zh_CN").Name(), in(t, l.Codec, "en_US").Name())
	require.Equal(t, l.Name(), in(t, l.Codec, "tlh").Name(), "a language without texts changes nothing")
}
