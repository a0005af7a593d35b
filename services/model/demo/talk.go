package demo

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
)

// errWait stops an action until its calls have results.
var errWait = errors.New("waiting for a tool")

// action carries out one of the user's requests.
type action struct {
	effect bool // may have an effect, so it keeps its place among the others
	other  bool // a colleague carries it out
	// do returns the answer, or errWait. Every request runs it anew.
	do func(*talk) (string, error)
}

// say returns an action that needs no tool.
func say(text string) *action {
	return &action{do: func(*talk) (string, error) { return text, nil }}
}

// outcome is the result of a call that the model made for the user's last message.
type outcome struct {
	key     string
	tool    string
	text    string
	failed  bool
	changed bool // a person has changed its arguments
	taken   bool
}

// talk answers the user's last message.
type talk struct {
	req  model.Request
	user string
	now  time.Time
	past []model.Message // before the user's message

	capabilities []string // planning: capabilities of the agents that accept steps

	outcomes []*outcome
	calls    []event.ToolCall // calls to make
	own      []string         // answers to requests that no colleague carries out
}

func newTalk(req model.Request) *talk {
	t := &talk{req: req, now: req.Now.UTC()}
	last := len(req.Messages) - 1
	for last >= 0 && req.Messages[last].Role != model.RoleUser {
		last--
	}
	if last < 0 {
		return t
	}
	t.user, t.past = req.Messages[last].Content, req.Messages[:last]
	byID := map[string]*outcome{}
	for _, m := range req.Messages[last+1:] {
		for _, c := range m.ToolCalls {
			byID[c.ID] = &outcome{key: key(c.Name, c.Arguments), tool: c.Name}
		}
		if o := byID[m.ToolCallID]; o != nil && m.Role == model.RoleTool {
			o.text, o.changed = strings.CutPrefix(m.Content, event.CallChanged)
			o.failed = m.IsError
			t.outcomes = append(t.outcomes, o)
		}
	}
	return t
}

// run returns the answer, or the calls that come first.
func (t *talk) run() (string, []event.ToolCall) {
	var answers []string
	waiting := false
	for _, c := range t.clauses() {
		a := c.action
		if a.effect && waiting {
			break // effects keep their place
		}
		answer, err := a.do(t)
		if err != nil {
			waiting = true
			if a.effect {
				break
			}
			continue
		}
		answers = append(answers, answer)
		if !a.other {
			t.own = append(t.own, answer)
		}
	}
	if waiting {
		return "", t.calls
	}
	return strings.Join(answers, "\n\n"), nil
}

// call returns the result of a tool, or adds the call and returns errWait. Each action consumes its own results, in the
// order of the calls.
func (t *talk) call(tool string, arguments any) (*outcome, error) {
	raw, bad := json.Marshal(arguments)
	if bad != nil { // arguments in the user's own JSON may nest too deep
		return &outcome{text: bad.Error(), failed: true}, nil //nolint:nilerr // it is the outcome of the call.
	}
	k := key(tool, raw)
	for _, o := range t.outcomes {
		if !o.taken && (o.key == k || o.changed && o.tool == tool) {
			o.taken = true
			return o, nil
		}
	}
	t.calls = append(t.calls, event.ToolCall{ID: t.req.NewID(), Name: tool, Arguments: raw})
	return nil, errWait
}

// key identifies a call by its tool and arguments, regardless of their order and spacing.
func key(tool string, arguments json.RawMessage) string {
	var v any
	if json.Unmarshal(arguments, &v) == nil {
		if canonical, err := json.Marshal(v); err == nil {
			arguments = canonical
		}
	}
	return tool + " " + string(arguments)
}

// lastFile returns the file that the user named last, before this message.
func (t *talk) lastFile() string {
	for _, m := range slices.Backward(t.past) {
		if files := filesIn(m.Content); m.Role == model.RoleUser && len(files) > 0 {
			return files[len(files)-1]
		}
	}
	return ""
}
