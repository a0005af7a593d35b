package asp

import (
	"encoding/json"
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// answerType is the type of a message that answers a question.
const answerType = "input_response"

// ofWatched returns what a task of the watched run is called there, and false if the
// frame is about a task of the client's own.
func (f *frame) ofWatched(task string) (string, bool) {
	if f.in.Watched.Entity.IsZero() {
		return "", false
	}
	return strings.CutPrefix(task, watchedPrefix)
}

// order asks something of the watched run, and says that it was sent: what becomes of
// it is told to all who watch.
func (f *frame) order(member string, data dialect.IntentData, kind string, content any) []Order {
	if f.Fault != nil {
		return nil
	}
	i := &dialect.Intent{ID: first(f.request(), f.in.NewID()), Data: data}
	if f.in.Watched.Kind == id.KindTeam {
		i.Member = member
	}
	return append(one(Order{Intent: i}), f.say(kind, content)...)
}

// messageWatched answers a question of the watched run, or says something to it. Of a
// task of the swarm the agent gets the message as it is.
func (f *frame) messageWatched(task, name, input, member string) []Order {
	kind, message := f.word(f.content, "messageType"), f.need(f.content, "message")
	sent := wire.TaskMessageSentContent{TaskID: task, Status: statusSent, InputID: input}
	if f.in.Watched.Kind == id.KindTask {
		orders := f.tell("", dialect.MessageTask{TaskID: name, MessageType: first(kind, fromClient), Message: message})
		return append(orders, f.say(wire.TaskMessageSent, sent)...)
	}
	if asked := first(input, name); strings.HasPrefix(asked, event.AgentInput) { // the agent gets it as it is
		sent.InputID = asked
		return f.order(member, dialect.Answer{InputID: asked, Approved: true, Message: message}, wire.TaskMessageSent, sent)
	}
	approved, feedback, decided := decision(message)
	if input == "" && kind != answerType && !decided {
		return f.order(member, dialect.SendMessage{Content: narrate.Plain(message)}, wire.TaskMessageSent, sent)
	}
	if !decided {
		f.Wrong("content.message", "approve or reject, true or false, or an object with approved", message)
	}
	if m, isObject := strict.Members(message); isObject {
		if bad := strict.OnlyAnswer("content.message", m, "approved", "decision", "text", "feedback"); f.Fault == nil {
			f.Fault = bad
		}
	}
	sent.InputID = first(input, name)
	return f.order(member, dialect.Answer{InputID: sent.InputID, Approved: approved, Feedback: feedback}, wire.TaskMessageSent, sent)
}

// decision reads an answer: true, false, one of the words that the question offers, or
// an object that has one of them as its text, decision or approved.
func decision(raw json.RawMessage) (approved bool, feedback string, ok bool) {
	switch string(raw) {
	case "true":
		return true, "", true
	case "false":
		return false, "", true
	}
	if s, isText := strict.Text(raw); isText {
		switch strings.ToLower(strings.TrimSpace(s)) {
		case event.DecisionApprove, "approved":
			return true, "", true
		case event.DecisionReject, "rejected":
			return false, "", true
		}
		return false, "", false
	}
	m, isObject := strict.Members(raw)
	if !isObject {
		return false, "", false
	}
	feedback, _ = strict.Text(m["feedback"])
	for _, name := range []string{"approved", "decision", "text"} {
		if _, deeper := strict.Members(m[name]); len(m[name]) == 0 || deeper {
			continue
		}
		if approved, _, ok = decision(m[name]); ok {
			return approved, feedback, true
		}
	}
	return false, "", false
}

// cancelWatched stops the run, or all that is on where the id is the watched log's own.
func (f *frame) cancelWatched(task, name, member string) []Order {
	reason := f.text(f.content, "reason", 0, wire.MaxText)
	content := wire.TaskCancelContent{TaskID: task, Status: statusAccepted, Message: "The run is being stopped"}
	stop := dialect.Cancel{RunID: name, Reason: reason}
	if f.in.Watched.Kind == id.KindTask || id.EntityFromExternal(name) == f.in.Watched.Entity {
		stop.RunID, stop.All = "", true
	}
	return f.order(member, stop, wire.TaskCancelResponse, content)
}
