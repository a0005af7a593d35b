package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/agent/model"
)

// The names of the tools of teams.
const (
	toolSend   = "send_message_to"
	toolCreate = "create_tasks"
	toolUpdate = "update_task_status"
)

// answerMark begins what a member reports to whoever asked it. A message that begins
// with it asks for nothing.
const answerMark = "Answer: "

// How messages begin that are not a user's, and what they hold.
var (
	fromColleague = regexp.MustCompile(`(?s)^Message from ([^\n]+?)(?: \(role: [^\n]*\))?:\n\n(.*)$`)
	fromBoard     = regexp.MustCompile(`(?s)^Notification from the system:\n\nThe task (\S+) \([^\n]*\) is yours and can be started\.\n\n(.*)\n\nSet its status with `)
)

// What asks for something of a colleague, whose name follows.
var (
	asksOther  = re(`(?:ask|tell) (?:the )?(.+)`)
	givesOther = re(`(?:give|assign) (?:the )?(.+)`)
	toDo       = re(`["']?(?: the task)?(?:: ?|,? )(?:to )?(.+)`)
)

// member is the work on a message to a member of a team: one of a colleague is answered
// with a message, a task of the board is completed, and an answer that somebody else
// waits for is handed on. Any other message is answered as in a chat.
func (t *turn) member() (string, []event.ToolCall) {
	if m := fromBoard.FindStringSubmatch(t.user); m != nil && t.offers(toolUpdate) {
		t.user = m[2]
		text, calls := t.run()
		if len(calls) > 0 {
			return "", calls
		}
		return t.after(text, toolUpdate, map[string]string{"task_id": m[1], "new_status": "completed"})
	}
	m := fromColleague.FindStringSubmatch(t.user)
	if m == nil || !t.offers(toolSend) {
		return t.run()
	}
	from, said := m[1], m[2]
	if answer, ok := strings.CutPrefix(said, answerMark); ok {
		text := from + " answers: " + answer
		if to := t.waits(from); to != "" {
			return t.send(text, to, text)
		}
		return text, nil
	}
	t.user = said
	text, calls := t.run()
	if len(calls) > 0 || len(t.own) == 0 {
		return text, calls
	}
	return t.send(text, from, strings.Join(t.own, "\n\n"))
}

// send reports to a colleague and then says text.
func (t *turn) send(text, to, answer string) (string, []event.ToolCall) {
	return t.after(text, toolSend, map[string]string{"recipient_name": to, "content": answerMark + answer, "message_type": "answer"})
}

// after says text once the call has been made.
func (t *turn) after(text, tool string, arguments any) (string, []event.ToolCall) {
	if _, err := t.call(tool, arguments, true); err != nil {
		return "", t.calls
	}
	return text, nil
}

func (t *turn) offers(name string) bool {
	return slices.ContainsFunc(t.req.Tools, func(s model.ToolSpec) bool { return s.Name == name })
}

// waits returns the colleague for whose request this member has asked the other one;
// empty if it was a user's.
func (t *turn) waits(other string) string {
	asked := false
	for _, m := range slices.Backward(t.past) {
		for _, c := range m.ToolCalls {
			var a struct {
				To      string `json:"recipient_name"`
				Content string `json:"content"`
			}
			asked = asked || c.Name == toolSend && json.Unmarshal(c.Arguments, &a) == nil && a.To == other && !strings.HasPrefix(a.Content, answerMark)
		}
		if !asked || m.Role != model.RoleUser {
			continue
		}
		if from := fromColleague.FindStringSubmatch(m.Content); from != nil && !strings.HasPrefix(from[2], answerMark) {
			return from[1]
		}
		return ""
	}
	return ""
}

// colleague returns the name of the colleague that the text begins with, and the rest.
func (t *turn) colleague(tool, argument, text string) (name, rest string, ok bool) {
	text = strings.TrimLeft(text, `"'`)
	for _, s := range t.req.Tools {
		if s.Name != tool {
			continue
		}
		for _, known := range choices(s.InputSchema, argument) {
			if len(text) < len(known) || !strings.EqualFold(text[:len(known)], known) || len(known) < len(name) {
				continue
			}
			if m := match(text[len(known):], toDo); m != nil {
				name, rest, ok = known, m[0], true
			}
		}
	}
	return name, rest, ok
}

// choices returns the values that a schema allows for a property, wherever it stands.
func choices(schema json.RawMessage, property string) []string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
		Enum       []string                   `json:"enum"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	if p, ok := s.Properties[property]; ok {
		return choices(p, "")
	}
	for _, p := range s.Properties {
		if found := choices(p, property); len(found) > 0 && property != "" {
			return found
		}
	}
	if len(s.Items) > 0 {
		return choices(s.Items, property)
	}
	if property != "" {
		return nil
	}
	return s.Enum
}

// parseTeam recognises what colleagues are to do.
func parseTeam(c *clause) *task {
	if m := match(c.raw, givesOther); m != nil {
		if to, what, ok := c.turn.colleague(toolCreate, "assignee_name", m[0]); ok {
			return give(to, what)
		}
	}
	if m := match(c.raw, asksOther); m != nil {
		if to, what, ok := c.turn.colleague(toolSend, "recipient_name", m[0]); ok {
			return ask(to, what)
		}
	}
	return nil
}

func ask(to, what string) *task {
	return &task{effect: true, other: true, do: func(t *turn) (string, error) {
		o, err := t.call(toolSend, map[string]string{"recipient_name": to, "content": unquote(what)}, true)
		if err != nil {
			return "", err
		}
		if o.failed {
			return fmt.Sprintf("%s could not be asked: %s", to, o.text), nil
		}
		return "I have asked " + to + ".", nil
	}}
}

func give(to, what string) *task {
	return &task{effect: true, other: true, do: func(t *turn) (string, error) {
		o, err := t.call(toolCreate, map[string]any{"tasks": []map[string]string{
			{"task_name": shorten(unquote(what)), "assignee_name": to, "description": unquote(what)},
		}}, true)
		if err != nil {
			return "", err
		}
		if o.failed {
			return fmt.Sprintf("%s could not be given the task: %s", to, o.text), nil
		}
		return "I have given the task to " + to + ".", nil
	}}
}
