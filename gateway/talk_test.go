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

// talk is a dialect of sockets that hold several sessions, as small as can be: what
// the gateway says to its codec can be read off its frames.
type talk struct{}

func (talk) Name() string                           { return "talk" }
func (talk) Bind(url.Values) (dialect.Codec, error) { return talking("zh_CN"), nil }

func (talk) BindSessions(url.Values) (dialect.Sessions, error) { return talking("zh_CN"), nil }

// talking is its codec for a language.
type talking string

// asked is a frame of a client.
type asked struct {
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

// said is a frame of the gateway.
type said struct {
	Kind    string          `json:"kind"`
	Lang    string          `json:"lang,omitempty"`
	Link    string          `json:"link,omitempty"`
	Session string          `json:"session,omitempty"`
	Seq     uint64          `json:"seq,omitempty"`
	From    uint64          `json:"from,omitempty"`
	Type    string          `json:"type,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	Events  []said          `json:"events,omitempty"`
	Count   int             `json:"count,omitempty"`
	Cursor  string          `json:"cursor,omitempty"`
	Matched *bool           `json:"matched,omitempty"`
	Action  string          `json:"action,omitempty"`
	Code    string          `json:"code,omitempty"`
	Text    string          `json:"text,omitempty"`
}

func (c talking) say(at dialect.Link, s said) []byte {
	s.Lang, s.Link = string(c), at.ConnectionID
	b, _ := json.Marshal(s)
	return b
}

func (c talking) Name() string                  { return "talk+" + string(c) }
func (talking) Greet(dialect.Greeting) [][]byte { return nil }
func (c talking) Truncated(first uint64, _ time.Time) []byte {
	return c.Expired(dialect.Link{}, "", first)
}

func (c talking) Fail(f *fault.Fault, _ time.Time) []byte {
	return c.say(dialect.Link{}, said{Kind: "failed", Code: string(f.Code), Text: f.Public()})
}

func (c talking) In(language string) (dialect.Sessions, bool) {
	switch language {
	case "en_US", "en":
		return talking("en_US"), true
	case "zh_CN", "zh":
		return talking("zh_CN"), true
	}
	return c, false
}

func (talking) Gathers() func(event.MessageDeltaData) bool { return nil }

func (c talking) one(e event.Event) said {
	s := said{Kind: "event", Lang: string(c), Session: e.Subject, Seq: e.Sequence, Type: string(e.Type), Data: e.Data}
	if e.From != e.Sequence {
		s.From = e.From
	}
	return s
}

func (c talking) Encode(e event.Event) [][]byte {
	if e.Sequence == 0 {
		b, _ := json.Marshal(said{Kind: "aside", Lang: string(c), Session: e.Subject, Type: string(e.Type), Data: e.Data})
		return [][]byte{b}
	}
	b, _ := json.Marshal(c.one(e))
	return [][]byte{b}
}

func (c talking) Connected(at dialect.Link) []byte { return c.say(at, said{Kind: "connected"}) }

func (c talking) Heartbeat(at dialect.Link, session string, seq uint64) []byte {
	return c.say(at, said{Kind: "heartbeat", Session: session, Seq: seq})
}

func (c talking) Refuse(at dialect.Link, session string, action dialect.Action, f *fault.Fault) []byte {
	return c.say(at, said{Kind: "refused", Session: session, Action: string(action), Code: string(f.Code), Text: f.Public()})
}

func (c talking) Expired(at dialect.Link, session string, first uint64) []byte {
	return c.say(at, said{Kind: "expired", Session: session, Seq: first})
}

func (c talking) Replayed(at dialect.Link, session string, count int, seq uint64, cursor string, matched *bool) []byte {
	return c.say(at, said{Kind: "replayed", Session: session, Count: count, Seq: seq, Cursor: cursor, Matched: matched})
}

func (c talking) Batch(at dialect.Link, session string, events []event.Event) []byte {
	s := said{Kind: "batch", Session: session}
	for _, e := range events {
		s.Events = append(s.Events, c.one(e))
	}
	return c.say(at, s)
}

func (c talking) Restored(at dialect.Link, session string, d event.SessionRestoredData) []byte {
	return c.say(at, said{Kind: "restored", Session: session, Seq: d.ExportedSeq})
}

func (c talking) Exported(at dialect.Link, session string, state event.StateExportedData) []byte {
	return c.say(at, said{Kind: "exported", Session: session, Seq: state.Seq, Text: state.Hash, Data: state.State})
}

func (talking) Request(frame []byte) (dialect.Request, error) {
	var a asked
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

func (talking) Decode(frame []byte, in dialect.Inbound) ([]dialect.Intent, error) {
	var a asked
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
