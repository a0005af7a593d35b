// Package myagent translates between the MyAgent session protocol and the canonical
// commands and events of a session.
//
// One canonical event gives at most one frame, so that the seq of any frame is a safe
// place to resume. All but parts of texts and details of the work give one: what the protocol
// has no word for is a system.notice.
//
// A piece of a text ends at the end of a sentence, 250 ms after it began by the times of the events, or at any other event
// that the client sees. The log alone decides, so that a replay has the pieces that live viewers saw, in every gateway.
//
// Only frames for one connection have metadata.connection_id: all viewers of a log share the bytes of the others.
package myagent

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// paramLanguage is the query parameter that chooses the language of texts for people
// until a session says its own.
const paramLanguage = "language"

// paramDeltas is the query parameter that chooses how texts are shown while they are
// written.
const paramDeltas = "deltas"

// The values of paramDeltas.
const (
	none   = "none"   // when they are complete
	merged = "merged" // answers in pieces; the work after them is not shown
	every  = "all"    // everything that is written, as it comes
)

// The languages that texts for people exist in.
const (
	chinese = "zh" // the protocol's own
	english = "en"
)

// Settings are what frames say of the server. All gateways of an installation have the
// same, or one event would not give the same frame everywhere.
type Settings struct {
	ServerVersion      string
	SessionTTL         time.Duration // how long a session lives after its last event
	Heartbeat          time.Duration // between two heartbeats
	MaxConcurrentTasks int           // tasks of a run that are solved at once
	Language           string        // of texts for people where a client says none; empty = the protocol's own
}

// Dialect is the protocol: its codecs for each way in which texts are shown, in the language of the installation.
type Dialect map[string]*Codec

// Name implements dialect.Dialect.
func (Dialect) Name() string { return "myagent" }

// Bind implements dialect.Dialect.
func (d Dialect) Bind(query url.Values) (dialect.Codec, error) {
	c, err := d.Codec(query)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Codec returns the codec for a socket opened with the query, as Bind does. The query's language is Chinese or English; the values
// of deltas: none, merged (the default), all.
func (d Dialect) Codec(query url.Values) (*Codec, error) {
	c := d[first(query.Get(paramDeltas), merged)]
	if c == nil {
		return nil, fault.Newf(fault.InvalidField, "deltas must be %s, %s or %s.", none, merged, every).At(paramDeltas)
	}
	language := query.Get(paramLanguage)
	if language != "" && base(language) != english && base(language) != chinese {
		return nil, fault.Newf(fault.InvalidField, "language must be %s_CN or %s_US.", chinese, english).At(paramLanguage)
	}
	return c.in(language), nil
}

// Codec is one variant of the dialect: the language of its texts for people, and how
// much of what models write it shows before it is complete.
//
// One socket holds several sessions, and every frame names its own. The gateway makes no session when a socket opens; frames ask
// for one. Events with sequence 0 are direct messages: their frames carry no seq and no event_id.
type Codec struct {
	name      string
	words     *words
	settings  Settings
	frames    frames
	texts     string
	languages map[string]*Codec // the same in all languages
}

// Name implements dialect.Codec.
func (c *Codec) Name() string { return c.name }

// In returns the variant for texts in the language (zh_CN, en, en-GB), or the codec itself and false without texts. The variants
// are a fixed set.
func (c *Codec) In(language string) (*Codec, bool) {
	_, ok := c.languages[base(language)]
	return c.in(language), ok
}

func (c *Codec) in(language string) *Codec {
	if in := c.languages[base(language)]; in != nil {
		return in
	}
	return c
}

// base returns the language in a tag (en_US, zh-Hans-CN) without script and region.
func base(tag string) string {
	language, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	return strings.ToLower(language)
}

// frames maps the types of events to what makes their frame, but for the members that
// all frames have.
type frames map[event.Type]func(*Codec, event.Event) (wire.Frame, error)

// judged returns how to tell of a code that an event carries: error_code and error_type,
// what to do, and whether the same may work later. A code that is in no catalogue is
// told as an internal error of that type.
func judged(code string) (v verdict, kind string, retryable bool) {
	v, ok := verdicts[fault.Code(code)]
	if !ok {
		v = verdicts[notInTable]
	}
	return v, first(code, string(notInTable)), fault.Lookup(fault.Code(code)).Retryable
}

// said returns the text of an error that an event tells of.
func said(code, message string) string {
	return first(message, fault.Lookup(fault.Code(code)).Message)
}

// tell returns the frame about a fault outside of the log.
func (c *Codec) tell(t trouble) wire.Frame {
	v, kind, retryable := judged(string(t.Code))
	text := t.Public()
	f := wire.Frame{Event: v.event, Content: text}
	switch v.event {
	case wire.ErrorValidation:
		provided := t.Provided
		if t.Constraint != "" && len(provided) == 0 {
			provided = json.RawMessage("null") // a member that is missing
		}
		f.ShowContent = fmt.Sprintf(c.words.invalid, c.words.people(kind, text))
		f.Metadata = wire.ValidationMeta{
			Context: t.where, ErrorCode: v.code, ErrorType: kind, Recoverable: true, Strategy: v.recovery,
			Field: t.Field, Constraint: t.Constraint, Provided: provided, Operation: t.operation, Details: t.details,
		}
	case wire.ErrorRateLimited:
		f.Metadata = wire.RateLimitedMeta{
			Context: t.where, ErrorCode: v.code, ErrorType: kind, Recoverable: true, Strategy: v.recovery, Operation: t.operation,
		}
	case wire.ErrorRecoveryFailed:
		f.ShowContent = fmt.Sprintf(c.words.recoveryFailed, c.words.people(kind, text))
		f.Metadata = wire.RecoveryFailedMeta{
			Context: t.where, ErrorCode: v.code, ErrorType: kind, Strategy: v.recovery, Operation: t.operation,
		}
	case wire.AgentError:
		f.ShowContent = fmt.Sprintf(c.words.agentError, c.words.people(kind, text))
		f.Metadata = wire.ErrorMeta{
			Context: t.where, ErrorCode: v.code, ErrorType: kind, Recovery: v.recovery, Recoverable: retryable,
			Operation: t.operation, Field: t.Field, Details: t.details,
		}
	default:
		f.ShowContent = fmt.Sprintf(c.words.systemError, c.words.people(kind, text))
		f.Metadata = wire.SystemErrorMeta{
			Context: t.where, ErrorCode: v.code, ErrorType: kind, Severity: severity(t.Code), Recovery: v.recovery, Operation: t.operation,
		}
	}
	return f
}

// Refuse returns the frame that tells the client of a fault of one of its frames. session is what the frame named, if anything;
// asked says what for. Of a bad position it speaks in the words of this
// protocol: the catalogue's are those of another one.
func (c *Codec) Refuse(at dialect.Link, session string, asked Action, f *fault.Fault) []byte {
	if f.Code == fault.CursorInvalid && f.Field == "" {
		said := *f
		said.Field, said.Constraint = "content.last_seq", "the seq of a frame of this session"
		if f.Message == fault.Lookup(f.Code).Message {
			said.Message = "This is not a position in the session. Use the seq or the event_id of the last frame that you received."
		}
		f = &said
	}
	return c.linked(at, session, c.tell(trouble{Fault: f, where: link(at), operation: operations[asked]}))
}

// commandRefused is the direct message about a command without effect. The answer that
// counted is part of the text, because not every client shows metadata.
func commandRefused(c *Codec, _ event.Event, d event.CommandRefusedData) wire.Frame {
	field := d.Field
	if field == "arguments" { // of an answer to a question about a call
		field = "content.tool_args"
	}
	f := fault.Newf(fault.Code(first(d.Code, string(notInTable))), "%s", said(d.Code, d.Message)).At(field)
	if f.Code == fault.InputNotFound && d.InputID != "" {
		if id, err := json.Marshal(d.InputID); err == nil {
			f = f.Unlike("the step_id of a question of this session", id)
		}
	}
	if d.AnsweredBy != "" {
		who := d.AnsweredBy
		if d.AnsweredOn != "" {
			who += " on " + d.AnsweredOn
		}
		f.Message += " (answered by " + who + ": " + d.Decision + ")"
	}
	return c.tell(trouble{Fault: f, details: &wire.ErrorContext{
		CommandID: d.CommandID, StepID: d.InputID, AnsweredBy: d.AnsweredBy, Client: d.AnsweredOn, Decision: d.Decision,
	}})
}

// agentError fills in what follows from the code, which is in m.ErrorType.
func (c *Codec) agentError(message string, m wire.ErrorMeta) wire.Frame {
	text := said(m.ErrorType, message)
	v, kind, retryable := judged(m.ErrorType)
	m.ErrorCode, m.ErrorType, m.Recoverable = v.code, kind, retryable
	if m.Recovery == "" {
		m.Recovery = recoveryAction(v.recovery)
	}
	return wire.Frame{Event: wire.AgentError, Content: text, Metadata: m, ShowContent: fmt.Sprintf(c.words.agentError, c.words.people(kind, text))}
}

// link names the connection in a frame that is made for it alone.
func link(at dialect.Link) wire.Context { return wire.Context{ConnectionID: at.ConnectionID} }

// linked fills in what frames for one connection have and encodes the frame. Such a
// frame is in no log. It names no session that could not be one.
func (c *Codec) linked(at dialect.Link, session string, f wire.Frame) []byte {
	f.Timestamp = wire.Stamp(at.Now)
	if idForm.MatchString(session) {
		f.SessionID = session
	}
	b, err := f.Encode()
	if err == nil {
		return b
	}
	f = c.tell(trouble{Fault: fault.New(fault.Internal), where: link(at)})
	f.Timestamp, f.SessionID = wire.Stamp(at.Now), ""
	if b, err = f.Encode(); err != nil {
		panic("myagent: " + err.Error()) // A frame without raw members can always be encoded.
	}
	return b
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
