package asp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Kinds of the tools that participants call.
const (
	kindService = "service"
	kindMCP     = "mcp"
)

// one is what most frames ask: one thing.
func one(o Order) []Order { return []Order{o} }

// ask asks for something that has an answer.
func ask(q dialect.Inquiry) []Order { return one(Order{Ask: q}) }

// tell returns an intent about a task; empty = about the watched run, which is a task.
func (f *frame) tell(task string, data dialect.IntentData) []Order {
	if f.Fault != nil {
		return nil
	}
	return one(Order{Intent: &dialect.Intent{ID: f.intentID(), Request: f.request(), Data: data}, Task: task})
}

// intentID returns the id of the intent of the frame. It carries the id of the frame if
// something may answer that.
func (f *frame) intentID() string {
	if f.quiet {
		return f.in.NewID()
	}
	return commandID(f.in.NewID(), f.id)
}

// say answers at once.
func (f *frame) say(kind string, content any) []Order {
	return one(Order{Frames: [][]byte{linked(dialect.Link{Now: f.in.Now}, f.reply(kind, content))}})
}

// reply is a frame that answers this one.
func (f *frame) reply(kind string, content any) wire.Frame {
	out := wire.Frame{Type: kind, RequestID: f.id, Content: content}
	if f.id == "" {
		out.ID = "re." + f.in.NewID()
	}
	return out
}

// ping answers a ping.
func ping(f *frame) []Order {
	orders := f.say(wire.Pong, wire.PulseContent{Timestamp: wire.Stamp(f.in.Now)})
	orders[0].Heartbeat = true
	return orders
}

// pong is a sign of life, which any frame is.
func pong(*frame) []Order { return nil }

// filter reads content.filters.
func (f *frame) filter(types ...string) command.ParticipantFilter {
	o := f.Object(f.content, "filters")
	p := command.ParticipantFilter{Capabilities: f.list(o, "capabilities"), Name: f.text(o, "name", 0, wire.MaxID), Status: f.word(o, "status")}
	p.After, p.Limit = f.text(f.content, "after", 0, maxPlace), f.limit(f.content, "limit")
	f.words = cmp.Or(command.VocabularyOf(p.Status), f.words)
	for _, name := range types {
		p.Type = first(p.Type, f.word(o, name))
	}
	return p
}

// tool reads a call of a tool: server and name are where they may be named, params where
// its arguments may be.
func (f *frame) tool(kind string, server, name []place, params ...string) command.ToolRequest {
	r := command.ToolRequest{RequestID: f.id, Kind: kind, Server: f.needName(server...), Tool: f.needName(name...)}
	r.TimeoutMS, r.Priority = f.wait(f.content, "timeout"), f.word(f.content, "priority")
	for _, p := range params {
		if o := f.Object(f.content, p); o.Members != nil && r.Arguments == nil {
			r.Arguments = f.content.Get(p)
		}
	}
	return r
}

// run asks for a tool outside of a task that is known.
func (f *frame) run(r command.ToolRequest) []Order {
	r.CallID = f.stable("call " + f.request())
	return ask(dialect.RunTool(r))
}

// participant returns the sender with what the frame says of it. A participant that is registered
// keeps its id.
func (f *frame) participant(kind string, ids ...string) command.Participant {
	p := f.in.Participant
	p.Kind = kind
	if p.ID == "" || !f.in.Participant.Online {
		p.ID = first(ids...)
	}
	p.Capabilities = f.list(f.content, "capabilities")
	p.Description = f.text(f.content, "description", 0, wire.MaxText)
	p.Status = first(f.status(f.content, "status"), command.StatusActive)
	return p
}

// typed returns what else a participant says of itself with its type under the name by which
// lists are narrowed: type. It may say it under another one.
func typed(extra json.RawMessage, name string) json.RawMessage {
	m, ok := strict.Members(extra)
	if !ok || m[name] == nil || m["type"] != nil {
		return extra
	}
	m["type"] = m[name]
	return strict.Encoded(m)
}

// withStatus returns the sender with another status.
func (f *frame) withStatus() []Order {
	p := f.in.Participant
	p.Status = f.status(f.content, "status")
	if p.Status == "" {
		f.Wrong("content.status", aStatus, nil)
	}
	f.text(f.content, "message", 0, wire.MaxText)
	return one(Order{Register: &p})
}

// leave says goodbye, also once more.
func (f *frame) leave(kind string) []Order {
	if f.in.Participant.ID == "" {
		f.Fault = fault.New(fault.NotRegistered)
		return nil
	}
	bye := f.say(kind, wire.UnregisteredContent{ID: f.in.Participant.ID, Message: "Goodbye"})
	return append([]Order{{Leave: true}}, bye...) // nothing is handed over after the goodbye
}

// notificationTypes are the types of notifications that the protocol names.
var notificationTypes = []string{"progress", "info", "warning", "error", "debug", "step", "status"}

// typeIn returns the type that a message says of itself, if it is one of the protocol.
func typeIn(message json.RawMessage) string {
	m, ok := strict.Members(message)
	if !ok {
		return ""
	}
	if s, _ := strict.Text(m["type"]); slices.Contains(notificationTypes, s) {
		return s
	}
	return ""
}

// failure is an error as agents and services tell of it.
type failure struct {
	text, code string
	details    json.RawMessage
}

// failureOf returns the error that a result stands for: SDKs report a handler that
// failed as a result that is an object with nothing but an error and what explains it.
func failureOf(result json.RawMessage) (failure, bool) {
	m, ok := strict.Members(result)
	if !ok || !truthy(m["error"]) {
		return failure{}, false
	}
	for name := range m {
		if !slices.Contains([]string{"error", "code", "details", "stack", "status", "message", "timestamp", "metadata"}, name) {
			return failure{}, false
		}
	}
	return failureIn(m), true
}

// failureIn reads the error of an object. A stack stays where it came from.
func failureIn(m map[string]json.RawMessage) failure {
	out := failure{text: errorText(m["error"])}
	if s, _ := strict.Text(m["code"]); isCode(s) {
		out.code = s
	}
	if d := m["details"]; len(d) > 0 && string(d) != "null" {
		out.details = d
	}
	if inner, ok := strict.Members(m["error"]); ok && out.code == "" {
		if s, _ := strict.Text(inner["code"]); isCode(s) {
			out.code = s
		}
	}
	return out
}

// errorText returns what an error says: a text, the message of an object, or its JSON.
func errorText(raw json.RawMessage) string {
	s, ok := strict.Text(raw)
	if m, isObject := strict.Members(raw); isObject {
		for _, name := range []string{"message", "error"} {
			if inner, there := strict.Text(m[name]); there && !ok {
				s, ok = inner, true
			}
		}
	}
	if !ok {
		s = string(raw)
	}
	return strict.Cut(s, wire.MaxText)
}

// isCode reports whether s has the form of a code: A-Z, 0-9 and _.
func isCode(s string) bool {
	return s != "" && len(s) <= wire.MaxWord && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// truthy reports whether a value is true for the SDKs.
func truthy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", `""`:
		return false
	}
	return true
}

// reader makes orders of one type of frame.
type reader struct {
	means   string  // for Table
	member  bool    // only of a registered participant
	ends    bool    // a task or a call, which fails if the frame is too large
	telling telling // when the sender is told that it has no effect
	read    func(*frame) []Order
}

const (
	usual   telling = iota // clients always, agents and services as asked
	asked                  // if it has an id
	dropped                // never: the SDK waits for no answer
)

// fromClient is the type of a message to an agent that says none. It is the SDK's.
const fromClient = "client.message"

// watchedPrefix marks the ids of tasks that frames of a watched log are about: a client
// shows such a log beside its own tasks, and what it says of a task names no more than
// its id.
const watchedPrefix = "watched/"
