package gateway_test

import (
	"encoding/json"
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// multiDialect is a minimal dialect of sockets that hold several sessions. Its frames show every
// call of its codec.
type multiDialect struct{}

func (multiDialect) Name() string                           { return "multi" }
func (multiDialect) Bind(url.Values) (dialect.Codec, error) { return multiCodec("zh_CN"), nil }

func (multiDialect) BindSessions(url.Values) (dialect.Sessions, error) {
	return multiCodec("zh_CN"), nil
}

// multiCodec is its codec for a language.
type multiCodec string

// multiRequest is a frame of a client.
type multiRequest struct {
	Ask     string          `json:"ask"`
	Session string          `json:"session"`
	Client  string          `json:"client"`
	Lang    string          `json:"lang"`
	Text    string          `json:"text"`
	After   *uint64         `json:"after"`
	EventID string          `json:"event_id"`
	Hash    string          `json:"hash"`
	Batch   bool            `json:"batch"`
	Merge   bool            `json:"merge"`
	Max     int             `json:"max"`
	Signed  json.RawMessage `json:"signed"`
}

// multiFrame is a frame of the gateway.
type multiFrame struct {
	Kind    string          `json:"kind"`
	Lang    string          `json:"lang,omitempty"`
	Link    string          `json:"link,omitempty"`
	Session string          `json:"session,omitempty"`
	Seq     uint64          `json:"seq,omitempty"`
	From    uint64          `json:"from,omitempty"`
	Type    string          `json:"type,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Events  []multiFrame    `json:"events,omitempty"`
	Count   int             `json:"count,omitempty"`
	Cursor  string          `json:"cursor,omitempty"`
	Matched *bool           `json:"matched,omitempty"`
	Action  string          `json:"action,omitempty"`
	Code    string          `json:"code,omitempty"`
	Text    string          `json:"text,omitempty"`
}

func (c multiCodec) say(at dialect.Link, s multiFrame) []byte {
	s.Lang, s.Link = string(c), at.ConnectionID
	b, _ := json.Marshal(s)
	return b
}

func (c multiCodec) Name() string                  { return "multi+" + string(c) }
func (multiCodec) Greet(dialect.Greeting) [][]byte { return nil }
func (c multiCodec) Truncated(first uint64, _ time.Time) []byte {
	return c.Expired(dialect.Link{}, "", first)
}

func (c multiCodec) Fail(f *fault.Fault, _ time.Time) []byte {
	return c.say(dialect.Link{}, multiFrame{Kind: "failed", Code: string(f.Code), Text: f.Public()})
}

func (c multiCodec) In(language string) (dialect.Sessions, bool) {
	switch language {
	case "en_US", "en":
		return multiCodec("en_US"), true
	case "zh_CN", "zh":
		return multiCodec("zh_CN"), true
	}
	return c, false
}

func (multiCodec) Gathers() func(event.MessageDeltaData) bool { return nil }

func (c multiCodec) one(e event.Event) multiFrame {
	s := multiFrame{Kind: "event", Lang: string(c), Session: e.Subject, Seq: e.Sequence, Type: string(e.Type), Data: e.Data}
	if e.From != e.Sequence {
		s.From = e.From
	}
	return s
}

func (c multiCodec) Encode(e event.Event) [][]byte {
	if e.Sequence == 0 {
		b, _ := json.Marshal(multiFrame{Kind: "direct", Lang: string(c), Session: e.Subject, Type: string(e.Type), Data: e.Data})
		return [][]byte{b}
	}
	b, _ := json.Marshal(c.one(e))
	return [][]byte{b}
}

func (c multiCodec) Connected(at dialect.Link) []byte {
	return c.say(at, multiFrame{Kind: "connected"})
}

func (c multiCodec) Heartbeat(at dialect.Link, session string, seq uint64) []byte {
	return c.say(at, multiFrame{Kind: "heartbeat", Session: session, Seq: seq})
}

func (c multiCodec) Refuse(at dialect.Link, session string, action dialect.Action, f *fault.Fault) []byte {
	return c.say(at, multiFrame{Kind: "refused", Session: session, Action: string(action), Code: string(f.Code), Text: f.Public()})
}

func (c multiCodec) Expired(at dialect.Link, session string, first uint64) []byte {
	return c.say(at, multiFrame{Kind: "expired", Session: session, Seq: first})
}

func (c multiCodec) Replayed(at dialect.Link, session string, count int, seq uint64, cursor string, matched *bool) []byte {
	return c.say(at, multiFrame{Kind: "replayed", Session: session, Count: count, Seq: seq, Cursor: cursor, Matched: matched})
}

func (c multiCodec) Batch(at dialect.Link, session string, events []event.Event) []byte {
	s := multiFrame{Kind: "batch", Session: session}
	for _, e := range events {
		s.Events = append(s.Events, c.one(e))
	}
	return c.say(at, s)
}

func (c multiCodec) Restored(at dialect.Link, session string, d event.SessionRestoredData) []byte {
	return c.say(at, multiFrame{Kind: "restored", Session: session, Seq: d.ExportedSeq})
}

func (c multiCodec) Exported(at dialect.Link, session string, state event.StateExportedData) []byte {
	return c.say(at, multiFrame{Kind: "exported", Session: session, Seq: state.Seq, Text: state.Hash, Data: state.State})
}

func (multiCodec) Request(frame []byte) (dialect.Request, error) {
	var a multiRequest
	if err := json.Unmarshal(frame, &a); err != nil {
		return dialect.Request{Action: dialect.Act}, fault.New(fault.InvalidField).Wrap(err)
	}
	at := dialect.Position{Seq: a.After, EventID: a.EventID, ClientID: a.Client, Hash: a.Hash}
	req := dialect.Request{
		Action: dialect.Action(a.Ask), Session: a.Session, Resume: at, Acked: at,
		Batch: a.Batch, Merge: a.Merge, Max: a.Max, History: a.Max > 0, Signed: a.Signed,
		Open: wirecmd.OpenSession{Preferences: event.Preferences{ClientID: a.Client, Language: a.Lang}},
	}
	switch req.Action {
	case dialect.Act, dialect.Open, dialect.Resume, dialect.Ack, dialect.Export, dialect.Import:
		return req, nil
	}
	return dialect.Request{Action: dialect.Act, Session: a.Session}, fault.New(fault.UnknownType)
}

func (multiCodec) Decode(frame []byte, in dialect.Inbound) ([]dialect.Intent, error) {
	var a multiRequest
	if err := json.Unmarshal(frame, &a); err != nil {
		return nil, fault.New(fault.InvalidField).Wrap(err)
	}
	switch a.Text {
	case "":
		return nil, nil
	case "bad":
		return nil, fault.New(fault.InvalidField).At("text")
	}
	return []dialect.Intent{{ID: in.NewID(), Data: dialect.SendMessage{Content: a.Text}}}, nil
}
