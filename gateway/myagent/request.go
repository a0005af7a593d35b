package myagent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// maxNote bounds short texts about a client: a user's name, a language, a hash.
const maxNote = 128

// Action is what a frame asks of the gateway.
type Action string

// The actions.
const (
	Act    Action = "act"    // carry out the intents that Decode makes of it
	Open   Action = "open"   // make a session and show it
	Resume Action = "resume" // show a session from where the client left it
	Ack    Action = "ack"    // note how far the client has read
	Export Action = "export" // show the state of the session
	Import Action = "import" // restore a session from a signed state and show it
)

// Request is a frame as the gateway sees it. Session is the id as the client wrote
// it, which may be no legal one; empty if the frame names none.
type Request struct {
	Action  Action
	Session string

	Open    command.OpenSession // Open
	Resume  Position            // Resume, Import: where the client left
	Batch   bool                // Resume, Import: many missed events in one frame
	Merge   bool                // Resume, Import: consecutive pieces of a text as one
	Acked   Position            // Ack
	History bool                // Export: with the newest events
	Max     int                 // Export: how many; 0 = the server's choice
	Signed  json.RawMessage     // Import
}

// In reports whether the position is one in the session with the id.
func (p Position) In(session string) bool { return p.Session == "" || p.Session == session }

// Position is where a client stands in a session. EventID wins over Seq; without
// either it is the client's last acknowledged position.
type Position struct {
	Seq      *uint64
	EventID  string // the cursor in it: <seq> or <seq>.<stream seq>
	Session  string // that the event_id names; empty if it names none
	ClientID string
	Hash     string
}

// Request says which session a frame is about and what it asks of the gateway. The rules for frame and error are those of Decode,
// which is called afterwards for an Act, with the session's log in dialect.Inbound. With an error it returns the action and the
// session as far as they are known: an Ack that cannot be read is dropped, anything else refused.
func (*Codec) Request(frame []byte) (Request, error) {
	var f form
	kind, top := f.envelope(frame)
	if f.Fault != nil {
		return Request{}, f.Fault
	}
	var r Request
	switch kind {
	case wire.UserCreateSession:
		r = Request{Action: Open, Open: f.open(top)}
	case wire.UserAck:
		r = f.ack(top)
	case wire.UserReconnect, wire.UserReconnectWithState:
		r = f.reconnect(top)
	case wire.UserRequestState:
		r = f.export(top)
	default:
		r = Request{Action: Act, Session: f.needID(top, "session_id")}
	}
	return r, f.Err()
}

// envelope reads what all frames have: an event, which is one of ours.
func (f *form) envelope(frame []byte) (string, object) {
	m, ok := strict.Members(frame)
	if !ok {
		f.Wrong("", strict.AnObject, frame)
		return "", object{}
	}
	top := object{Members: m}
	kind, ok := strict.Text(top.Get("event"))
	if !ok {
		f.Wrong("event", "the name of an event", top.Get("event"))
		return "", top
	}
	if !slices.Contains(wire.Inbound, kind) && f.Fault == nil {
		f.Fault = fault.New(fault.UnknownType).
			At("event").Unlike("one of "+strings.Join(wire.Inbound, ", "), strict.Sample(top.Get("event")))
	}
	return kind, top
}

// open reads a user.create_session. Members without a meaning here stay as they are.
func (f *form) open(top object) command.OpenSession {
	content, meta := f.Object(top, "content"), f.Object(top, "metadata")
	likes := f.Object(content, "preferences")
	p := event.Preferences{
		ClientID: first(f.id(content, "client_id"), f.id(meta, "client_id")),
		UserID:   deref(f.text(content, "user_id", maxNote)), Language: deref(f.text(likes, "language", maxNote)),
		ConfirmPlan: f.boolean(meta, "confirm_plan"), OnBusy: f.onBusy(meta),
	}
	extra := content.Rest("client_id", "user_id", "preferences")
	if more := likes.Rest("language"); more != nil {
		extra = set(extra, "preferences", more)
	}
	if more := meta.Rest("client_id", "confirm_plan", "on_busy"); more != nil {
		extra = set(extra, "metadata", more)
	}
	p.Extra = encoded(extra)
	return command.OpenSession{Dialect: "myagent", Preferences: p}
}

func (f *form) onBusy(meta object) string {
	return f.oneOf(meta, "on_busy", event.OnBusyReject, event.OnBusyEnqueue, event.OnBusyInterrupt)
}

// ack reads a user.ack in all the shapes that clients give it.
func (f *form) ack(top object) Request {
	meta := f.Object(top, "metadata")
	content := object{Path: "content"}
	var bare *int64
	switch raw := top.Get("content"); {
	case raw == nil:
	case raw[0] == '{':
		content = f.Object(top, "content")
	default:
		bare = f.integer(top, "content", 0, wire.MaxSeq)
	}
	r := Request{Action: Ack, Acked: Position{
		Seq:      pick(f.seq(meta, "last_seq"), f.seq(content, "last_seq"), bare, f.seq(top, "seq"), f.seq(top, "last_seq")),
		ClientID: first(f.id(meta, "client_id"), f.id(content, "client_id")),
	}}
	r.Acked.Session, r.Acked.EventID = f.place(content, meta, top)
	r.Session = first(f.id(top, "session_id"), r.Acked.Session)
	if r.Acked.Seq == nil && r.Acked.EventID == "" {
		f.Wrong("metadata.last_seq", aPosition, nil)
	}
	return r
}

// reconnect reads a user.reconnect or user.reconnect_with_state. A signed state is
// imported; without one the session is resumed.
func (f *form) reconnect(top object) Request {
	content, meta := f.Object(top, "content"), f.Object(top, "metadata")
	r := Request{
		Action: Resume,
		Resume: Position{
			Seq:      pick(f.seq(content, "last_seq"), f.seq(top, "last_seq"), f.seq(meta, "last_seq")),
			ClientID: first(f.id(content, "client_id"), f.id(meta, "client_id"), f.id(top, "client_id")),
			Hash:     deref(f.text(content, "client_state_hash", maxNote)),
		},
		Batch: truth(f.boolean(content, "batch")), Merge: truth(f.boolean(content, "merge")),
	}
	for _, o := range []object{content, top} {
		if o.Get("signed_state") != nil && f.Object(o, "signed_state").Members != nil {
			r.Action, r.Signed = Import, o.Get("signed_state")
		}
	}
	r.Resume.Session, r.Resume.EventID = f.place(content, top, meta)
	r.Session = first(f.id(top, "session_id"), f.id(content, "session_id"), r.Resume.Session)
	if r.Session == "" && r.Action == Resume {
		f.Wrong("session_id", aSessionID, nil)
	}
	return r
}

func (f *form) export(top object) Request {
	meta := f.Object(top, "metadata")
	r := Request{Action: Export, Session: f.needID(top, "session_id"), History: truth(f.boolean(meta, "include_history"))}
	if n := f.integer(meta, "max_history_events", 0, wire.MaxHistory); n != nil {
		r.Max = int(*n)
	}
	return r
}

func (f *form) seq(o object, name string) *int64 { return f.integer(o, name, 0, wire.MaxSeq) }

// place reads the event_id that a client saw last, from the first object that has one:
// the position in it, and the session that it names.
func (f *form) place(in ...object) (session, position string) {
	for _, o := range in {
		raw := o.Get("last_event_id")
		if raw == nil {
			continue
		}
		s, _ := strict.Text(raw)
		m := eventIDForm.FindStringSubmatch(s)
		if m == nil {
			f.Wrong(o.At("last_event_id"), anEventID, raw)
			continue
		}
		session, position = first(session, m[1]), first(position, m[2])
	}
	return session, position
}

// pick returns the first number that is there.
func pick(numbers ...*int64) *uint64 {
	for _, n := range numbers {
		if n != nil {
			u := uint64(max(*n, 0)) // A negative one is a fault already.
			return &u
		}
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func truth(b *bool) bool { return b != nil && *b }

// set adds members of an inner object to an outer one.
func set(outer map[string]json.RawMessage, name string, inner map[string]json.RawMessage) map[string]json.RawMessage {
	if outer == nil {
		outer = map[string]json.RawMessage{}
	}
	outer[name] = encoded(inner)
	return outer
}

// encoded returns an object as JSON, nil without members. They are values of a
// frame, which has been read as JSON before.
func encoded(m map[string]json.RawMessage) json.RawMessage {
	if m == nil {
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return b
}
