package fold

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Kind says what a request is.
type Kind int

// The kinds.
const (
	Repeat   Kind = iota // the chat has the message: its run is shown, and nothing is sent
	Speak                // a new message of the user
	Continue             // the client continues the newest message of the assistant, perhaps with answers
)

// Meaning is what a request means in a chat.
type Meaning struct {
	Kind    Kind
	Intents []dialect.Intent // to be sent, in this order
	Command string           // of Repeat and Speak: the id of the command with the message
	Stretch int              // of Continue: the newest stretch that the client has to its end
	Known   bool             // of Continue: the client's message is the chat's newest
}

// commandID returns the id of the command for what a client says.
func commandID(parts ...string) string {
	all := ""
	for i, p := range parts {
		if i > 0 {
			all += "~"
		}
		all += p
	}
	return id.EntityFromExternal(all).String()
}

// Means returns what the request means in the chat, which is not a copy. The error is a *fault.Fault.
func (t *Chat) Means(q *Request) (Meaning, error) {
	if m, _ := q.newest(); m.Role == RoleAssistant {
		return t.continues(q, m)
	}
	return t.speaks(q)
}

// speaks returns the meaning of a message of the user.
func (t *Chat) speaks(q *Request) (Meaning, error) {
	one, field := q.newest()
	c, err := one.content(field)
	if err != nil {
		return Meaning{}, err
	}
	out := Meaning{Kind: Repeat, Command: t.commandOf(q, one, c.Text)}
	if _, known := t.past.runs[out.Command]; known {
		return out, nil
	}
	if d, refused := t.past.refused[out.Command]; refused {
		return out, fault.Newf(fault.Code(d.Code), "%s", d.Message)
	}
	before, err := t.unanswered()
	if err != nil {
		return out, err
	}
	d := dialect.SendMessage{Content: c.Text, RunSpec: q.spec(one.ID)}
	d.ImageURLs, d.ContextFiles, d.Facts, d.Files = c.Images, c.Files, c.Facts, c.Inline
	if !t.past.asked {
		d.History = earlier(q.Messages[:len(q.Messages)-1])
	}
	out.Kind, out.Intents = Speak, append(before, dialect.Intent{ID: out.Command, Data: d})
	return out, nil
}

// commandOf returns the id of the command with a message. A message that is said again, or whose text the client has changed, is
// another one.
func (t *Chat) commandOf(q *Request, m *UIMessage, text string) string {
	plain := commandID(m.ID)
	switch said, known := t.past.texts[plain]; {
	case q.Trigger == Regenerate:
		again := first(q.Attempt, q.MessageID)
		if again == "" && t.run != nil {
			again = t.run.id
		}
		return commandID(m.ID, again)
	case known && said != textDigest(text):
		return commandID(m.ID, strconv.FormatUint(textDigest(text), 16)) //nolint:mnd // hex
	}
	return plain
}

// unanswered refuses the open calls of the page, which has said something else. Questions to people have to be answered first.
func (t *Chat) unanswered() (out []dialect.Intent, err error) {
	if t.run == nil || t.run.over {
		return nil, nil
	}
	for _, q := range t.run.questions {
		switch {
		case q.over:
		case q.scope == event.ScopeClientTool:
			out = append(out, t.intent(q, dialect.Answer{Feedback: "not answered"}))
		case !t.run.open:
			return nil, fault.New(fault.InputRequired)
		}
	}
	return out, nil
}

// maxHistory bounds the conversation that a client brings to a new chat.
const maxHistory = 64 << 10

// earlier returns the newest of earlier messages, up to 64 KiB. The model knows nothing of them otherwise.
func earlier(list []UIMessage) (out []event.Said) {
	size := 0
	for _, m := range slices.Backward(list) {
		text := ""
		for _, p := range m.Parts {
			if p.Type == partText {
				text += p.Text
			}
		}
		if text == "" {
			continue
		}
		if size += len(text); size > maxHistory {
			break
		}
		role := event.RoleUser
		if m.Role == RoleAssistant {
			role = event.RoleAssistant
		}
		out = append(out, event.Said{Role: role, Content: text})
	}
	slices.Reverse(out)
	return out
}

// continues returns the meaning of a request that ends with a message of the assistant: its parts answer questions.
func (t *Chat) continues(q *Request, m *UIMessage) (Meaning, error) {
	out := Meaning{Kind: Continue, Stretch: m.Metadata.Stretch, Known: t.run != nil && t.run.message.ID == m.ID}
	if !out.Known {
		return out, nil
	}
	out.Stretch = min(out.Stretch, t.run.stretch)
	for _, ask := range t.run.questions {
		i := slices.IndexFunc(m.Parts, func(p UIPart) bool { return p.ToolCallID == ask.call })
		if i < 0 {
			continue
		}
		out.Stretch = max(out.Stretch, ask.stretch)
		if ask.over {
			continue
		}
		_, field := q.newest()
		d, answers, err := ask.answer(m.Parts[i], fmt.Sprintf("%s.parts[%d]", field, i))
		if err != nil {
			return out, err
		}
		if answers {
			d.ClientID = q.ClientID
			out.Intents = append(out.Intents, t.intent(ask, d))
		}
	}
	return out, nil
}

// intent is that of an answer. A repeat of the same answer has the same id.
func (t *Chat) intent(q question, d dialect.Answer) dialect.Intent {
	d.InputID = q.id
	if q.scope == event.ScopeTool || q.scope == event.ScopeClientTool {
		d.CallID, d.Digest = q.call, t.run.calls[q.call].digest // the call that was shown, whatever the question says
	}
	return dialect.Intent{ID: commandID(t.run.id, q.id, strconv.FormatUint(textDigest(string(raw(d))), 16)), Data: d} //nolint:mnd // hex
}

// answer returns the answer that a part is. It returns false for one that answers nothing yet.
func (q question) answer(p UIPart, field string) (d dialect.Answer, answers bool, err error) {
	switch {
	case q.scope == event.ScopeClientTool && p.State == stateOutput:
		result := text(p.Output)
		return dialect.Answer{Approved: true, Result: &result}, true, nil
	case q.scope == event.ScopeAgent && p.State == stateOutput:
		if !q.takes(p.Output) {
			return d, false, strict.Wrong(field+".output", "one of the options of the question")
		}
		return dialect.Answer{Approved: true, Message: p.Output}, true, nil
	case (q.scope == event.ScopeClientTool || q.scope == event.ScopeAgent) && p.State == stateError:
		return dialect.Answer{Feedback: p.ErrorText}, true, nil
	case p.Approval != nil && p.Approval.Approved != nil && p.Approval.ID == q.id && (p.State == stateAnswered || p.State == stateDenied):
		return dialect.Answer{Approved: *p.Approval.Approved, Feedback: p.Approval.Reason}, true, nil
	}
	return d, false, nil
}

// takes reports whether an agent takes the answer.
func (q question) takes(answer json.RawMessage) bool {
	var options []any
	var one any
	if json.Unmarshal(answer, &one) != nil {
		return false
	}
	if json.Unmarshal(q.options, &options) != nil || len(options) == 0 { // any answer is allowed, or the question has its own form
		return true
	}
	return slices.ContainsFunc(options, func(o any) bool { return reflect.DeepEqual(o, one) })
}

// text returns a string of JSON as its text, and other JSON as it is.
func text(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// Stops returns the intent of a request that stops the run, or the active one for an empty id. The error is a *fault.Fault.
func (t *Chat) Stops(runID string) (dialect.Intent, error) {
	newest, active := t.Run()
	if _, waits := t.waiting[runID]; !waits && (!active || runID != "" && runID != newest) {
		return dialect.Intent{}, fault.New(fault.RunOver)
	}
	runID = first(runID, newest)
	return dialect.Intent{ID: commandID("cancel", runID), Data: dialect.Cancel{RunID: runID, Reason: "user_request"}}, nil
}
