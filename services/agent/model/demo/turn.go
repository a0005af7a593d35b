package demo

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/agent/model"
)

// errWait says that a task cannot go on before the calls that it left have results.
var errWait = errors.New("waiting for a tool")

// task is one thing that the user asked for.
type task struct {
	effect bool // it may change something, so it keeps its place among the other tasks
	small  bool // politeness: not worth an answer beside other tasks
	other  bool // somebody else is to do it
	// do returns the answer, or errWait. It runs anew at each call of the model.
	do func(*turn) (string, error)
}

// say is a task that needs no tool.
func say(text string) *task {
	return &task{do: func(*turn) (string, error) { return text, nil }}
}

// outcome is the result of a tool call of this turn.
type outcome struct {
	key    string
	text   string
	failed bool
	taken  bool
}

// turn is the work on the user's last message.
type turn struct {
	req  model.Request
	user string
	now  time.Time
	past []model.Message // before the user's message

	outcomes []*outcome
	known    map[string]*outcome // what tasks may share: cleared by each effect
	calls    []event.ToolCall    // to be made
	own      []string            // the answers to what nobody else is to do
}

func newTurn(req model.Request) *turn {
	t := &turn{req: req, now: req.Now.UTC(), known: map[string]*outcome{}}
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
			byID[c.ID] = &outcome{key: key(c.Name, c.Arguments)}
		}
		if o := byID[m.ToolCallID]; o != nil && m.Role == model.RoleTool {
			o.text, o.failed = m.Content, m.IsError
			t.outcomes = append(t.outcomes, o)
		}
	}
	return t
}

// run returns the answer or the calls that have to be made first.
func (t *turn) run() (string, []event.ToolCall) {
	var answers []string
	waiting := false
	for _, k := range drop(tasks(t)) {
		if k.effect && waiting {
			break // effects keep their place
		}
		answer, err := k.do(t)
		if err != nil {
			waiting = true
			if k.effect {
				break
			}
			continue
		}
		answers = append(answers, answer)
		if !k.other {
			t.own = append(t.own, answer)
		}
	}
	if waiting {
		return "", t.calls
	}
	return strings.Join(answers, "\n\n"), nil
}

// drop leaves politeness out where there is anything else.
func drop(all []*task) []*task {
	rest := slices.DeleteFunc(slices.Clone(all), func(k *task) bool { return k.small })
	if len(rest) == 0 {
		return all[:min(1, len(all))]
	}
	return rest
}

// call returns the result of a tool, or errWait and leaves the call. Tasks share
// the results of equal calls, unless an effect lies between them.
func (t *turn) call(tool string, arguments any, effect bool) (*outcome, error) {
	raw, bad := json.Marshal(arguments)
	if bad != nil { // arguments in the user's own JSON may nest too deep
		return &outcome{text: bad.Error(), failed: true}, nil //nolint:nilerr // it is the outcome of the call.
	}
	k := key(tool, raw)
	if o := t.known[k]; o != nil && !effect {
		return o, nil
	}
	for _, o := range t.outcomes {
		if o.key != k || o.taken {
			continue
		}
		o.taken = true
		if effect {
			clear(t.known)
		} else {
			t.known[k] = o
		}
		return o, nil
	}
	if !slices.ContainsFunc(t.calls, func(c event.ToolCall) bool { return key(c.Name, c.Arguments) == k }) {
		t.calls = append(t.calls, event.ToolCall{ID: t.req.NewID(), Name: tool, Arguments: raw})
	}
	return nil, errWait
}

// key identifies a call by its tool and arguments, whatever their order and spacing.
func key(tool string, arguments json.RawMessage) string {
	var v any
	if json.Unmarshal(arguments, &v) == nil {
		if canonical, err := json.Marshal(v); err == nil {
			arguments = canonical
		}
	}
	return tool + " " + string(arguments)
}

// lastFile returns the file that the conversation was about before this message:
// the last one that a tool was called for or that the user named.
func (t *turn) lastFile() string {
	for _, m := range slices.Backward(t.past) {
		for _, c := range slices.Backward(m.ToolCalls) {
			var args map[string]any
			if json.Unmarshal(c.Arguments, &args) != nil {
				continue
			}
			for _, p := range pathNames {
				if s, ok := args[p].(string); ok && looksLikeFile(s) {
					return s
				}
			}
		}
		if m.Role != model.RoleUser {
			continue
		}
		for _, w := range slices.Backward(strings.Fields(m.Content)) {
			if w = trimName(w); looksLikeFile(w) {
				return w
			}
		}
	}
	return ""
}
