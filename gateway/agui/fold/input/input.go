// Package input checks and reads what clients of AG-UI send: the input of a run, the contents of its messages, and answers
// to questions. It knows no thread.
package input

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Limits of the input of a run.
const (
	maxRunID      = 200 // bytes
	maxThreadID   = 1024
	maxStateBytes = 64 << 10
	maxTimeout    = 24 * 60 * 60 // seconds
)

// Consequences for a run whose last viewer has gone.
const (
	OnDisconnectContinue = "continue"
	OnDisconnectCancel   = "cancel"
)

// Request is a valid input of a run.
type Request struct {
	wire.Input
	Options
	Extra json.RawMessage // for the log, with the message
	Older bool            // the client speaks a version before 1.0
	To
}

// To says who answers the messages of a thread. The zero value is the model.
type To struct {
	Agent string // the agent of the swarm with the name
	Team  bool   // the team whose log the thread shows
}

// Options are the members of forwardedProps.waggle.
type Options struct {
	Mode           string        `json:"mode"` // chat, plan
	ConfirmPlan    *bool         `json:"confirmPlan"`
	OnBusy         string        `json:"onBusy"` // reject, enqueue (absent), interrupt
	Budget         *event.Budget `json:"budget"`
	MaxConcurrent  int           `json:"maxConcurrent"`
	TimeoutSeconds int           `json:"timeoutSeconds"`
	ClientID       string        `json:"clientId"`
	Language       string        `json:"language"`
	OnDisconnect   string        `json:"onDisconnect"` // continue (absent), cancel
	TargetMember   string        `json:"targetMember"`
}

// Extra is what a client of AG-UI says about a thread or a message, and what is kept with it.
type Extra struct {
	ThreadID    string          `json:"thread_id,omitempty"`
	RunID       string          `json:"run_id,omitempty"` // as the client wrote it
	MessageID   string          `json:"message_id,omitempty"`
	ParentRunID string          `json:"parent_run_id,omitempty"`
	Forwarded   json.RawMessage `json:"forwarded,omitempty"`
	State       json.RawMessage `json:"state,omitempty"`
}

// kept is the form in which a log has it, beside what other protocols keep.
type kept struct {
	AGUI Extra `json:"agui"`
}

// ExtraOf returns the part of a log's extra that is about AG-UI, the zero value without one.
func ExtraOf(extra json.RawMessage) Extra {
	var d kept
	_ = json.Unmarshal(extra, &d) // not of this protocol
	return d.AGUI
}

// Check returns the request that an input makes. The input has passed strictjson.Decode. The error is a *fault.Fault that names
// the member.
func Check(in wire.Input, to To) (Request, error) {
	q := Request{Input: in, Older: in.ProtocolVersion == "", To: to}
	if err := CheckRunID(in.RunID); err != nil {
		return q, err
	}
	switch {
	case in.ThreadID == "" || len(in.ThreadID) > maxThreadID:
		return q, strict.Wrong("threadId", "a string of 1 to 1024 bytes")
	case in.Messages == nil:
		return q, strict.Wrong("messages", "a list")
	case q.Older || strings.HasPrefix(in.ProtocolVersion, "1."):
	default:
		return q, strict.Wrong("protocolVersion", "1.0")
	}
	if err := checkMessages(in.Messages); err != nil {
		return q, err
	}
	if err := q.bounds(); err != nil {
		return q, err
	}
	return q, q.options()
}

// CheckRunID returns why a text is not the id of a run.
func CheckRunID(s string) error {
	if s == "" || len(s) > maxRunID || !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strict.Wrong("runId", "a string of 1 to 200 printable bytes")
	}
	return nil
}

// ClientTools are the client's tools as the model is offered them.
func (q Request) ClientTools() (out []event.ClientTool) {
	for _, t := range q.Tools {
		out = append(out, event.ClientTool{Name: t.Name, Description: t.Description, InputSchema: t.Parameters})
	}
	return out
}

// Facts are what the client tells the model before the message.
func (q Request) Facts() (out []event.Fact) {
	for _, f := range q.Context {
		out = append(out, event.Fact{Description: f.Description, Value: f.Value})
	}
	return out
}

// bounds checks the sizes of what the client hands to the model.
func (q *Request) bounds() error {
	if err := content.CheckTools(q.ClientTools()); err != nil {
		return err
	}
	if err := content.CheckContext(q.Facts()); err != nil {
		return err
	}
	if len(q.State) > maxStateBytes {
		return strict.Wrong("state", "at most 64 KiB")
	}
	return CheckResume(q.Resume)
}

// CheckResume returns why a list does not answer interrupts.
func CheckResume(list []wire.ResumeEntry) error {
	for i, e := range list {
		if e.InterruptID == "" || e.Status != wire.ResumeResolved && e.Status != wire.ResumeCancelled {
			return strict.Wrong("resume", "a list of {interruptId, status: resolved or cancelled, payload}")
		}
		if slices.ContainsFunc(list[:i], func(o wire.ResumeEntry) bool { return o.InterruptID == e.InterruptID }) {
			return strict.Wrong("resume", "a list with one answer for each interrupt")
		}
	}
	return nil
}

// options reads forwardedProps. Members that are not Waggle's are kept with the message.
func (q *Request) options() error {
	props := map[string]json.RawMessage{}
	if p := q.ForwardedProps; len(p) > 0 && string(p) != "null" && json.Unmarshal(p, &props) != nil {
		return strict.Wrong("forwardedProps", "an object")
	}
	if own := props["waggle"]; own != nil {
		if err := json.Unmarshal(own, &q.Options); err != nil {
			field := "forwardedProps.waggle"
			if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				field += "." + bad.Field
			}
			return strict.Wrong(field, "as the documentation of AG-UI says")
		}
	}
	delete(props, "waggle")
	x := Extra{ParentRunID: q.ParentRunID, State: q.State}
	var err error
	if len(props) > 0 {
		if x.Forwarded, err = plainjson.Marshal(props); err != nil {
			return strict.Wrong("forwardedProps", "an object").Wrap(err)
		}
	}
	if string(x.State) == "null" {
		x.State = nil
	}
	if n := q.User(); n >= 0 {
		x.MessageID = q.Messages[n].ID
	}
	x.RunID = q.RunID
	if q.Extra, err = plainjson.Marshal(kept{x}); err != nil {
		return strict.Wrong("state", "a value of JSON").Wrap(err)
	}
	return q.allowed()
}

func (q *Request) allowed() error {
	o := q.Options
	switch {
	case !slices.Contains([]string{"", "chat", event.ModePlan}, o.Mode):
		return strict.Wrong("forwardedProps.waggle.mode", "chat or plan")
	case !slices.Contains([]string{"", event.OnBusyReject, event.OnBusyEnqueue, event.OnBusyInterrupt}, o.OnBusy):
		return strict.Wrong("forwardedProps.waggle.onBusy", "reject, enqueue or interrupt")
	case !slices.Contains([]string{"", OnDisconnectContinue, OnDisconnectCancel}, o.OnDisconnect):
		return strict.Wrong("forwardedProps.waggle.onDisconnect", "continue or cancel")
	case q.To != To{} && o.Mode == event.ModePlan:
		return strict.Wrong("forwardedProps.waggle.mode", "chat: an agent of the swarm and a team answer as they like")
	case q.Team && (o.Budget != nil || o.MaxConcurrent != 0 || o.TimeoutSeconds != 0):
		return strict.Wrong("forwardedProps.waggle", "without budget, maxConcurrent and timeoutSeconds: a team has its own")
	case !q.Team && o.TargetMember != "":
		return strict.Wrong("forwardedProps.waggle.targetMember", "absent: a thread has no members")
	case o.MaxConcurrent < 0, o.TimeoutSeconds < 0, o.TimeoutSeconds > maxTimeout:
		return strict.Wrong("forwardedProps.waggle", "without negative numbers")
	}
	return nil
}

// User returns the place of the newest message of a user, -1 if the input has none.
func (q *Request) User() int {
	for i := range slices.Backward(q.Messages) {
		if q.Messages[i].Role == wire.RoleUser {
			return i
		}
	}
	return -1
}
