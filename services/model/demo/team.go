package demo

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
)

// The names of the tools of teams.
const (
	toolSend   = "send_message_to"
	toolCreate = "create_tasks"
	toolUpdate = "update_task_status"
)

// answerMark begins a member's answer to a colleague. Such a message requests nothing.
const answerMark = "Answer: "

// Patterns of messages from colleagues and the board.
var (
	fromColleague = regexp.MustCompile(`(?s)^Message from ([^\n]+?)(?: \(role: [^\n]*\))?:\n\n(.*)$`)
	fromBoard     = regexp.MustCompile(`(?s)^Notification from the system:\n\nThe task (\S+) \([^\n]*\) is yours and can be started\.\n\n(.*)\n\nSet its status with `)
)

// member answers a message to a member of a team: it answers a colleague with a message, and the board with the completion
// of the task. It passes an answer on to the colleague that waits for it, and answers any other message as in a chat.
func (t *talk) member() (string, []event.ToolCall) {
	if m := fromBoard.FindStringSubmatch(t.user); m != nil && len(t.tools(toolUpdate)) > 0 {
		t.user = m[2]
		text, calls := t.run()
		if len(calls) > 0 {
			return "", calls
		}
		return t.after(text, toolUpdate, map[string]string{"task_id": m[1], "new_status": "completed"})
	}
	m := fromColleague.FindStringSubmatch(t.user)
	if m == nil || len(t.tools(toolSend)) == 0 {
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

// send sends an answer to a colleague and then says text.
func (t *talk) send(text, to, answer string) (string, []event.ToolCall) {
	return t.after(text, toolSend, map[string]string{"recipient_name": to, "content": answerMark + answer, "message_type": "answer"})
}

// after says text once the call has been made.
func (t *talk) after(text, tool string, arguments any) (string, []event.ToolCall) {
	if _, err := t.call(tool, arguments); err != nil {
		return "", t.calls
	}
	return text, nil
}

// waits returns the colleague for which this member has asked the other one, or "" if a user made the request.
func (t *talk) waits(other string) string {
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

// colleague returns the longest name of a colleague that the text begins with, and the request after it; both are empty
// without such a name. The schema of the tool names the colleagues.
func (t *talk) colleague(text string) (name, request string) {
	var recipient struct {
		Enum []string `json:"enum"`
	}
	for _, by := range t.tools(toolSend) {
		if json.Unmarshal(by.properties["recipient_name"], &recipient) == nil {
			return addressed(recipient.Enum, text)
		}
	}
	return "", ""
}

func askColleague(c *clause, m []string) *action {
	to, request := c.talk.colleague(m[0])
	if to == "" {
		return nil
	}
	return handOn("ask "+to, toolSend, map[string]string{"recipient_name": to, "content": request}, "I have asked "+to+".")
}

func giveColleague(c *clause, m []string) *action {
	to, request := c.talk.colleague(m[0])
	if to == "" || len(c.talk.tools(toolCreate)) == 0 {
		return nil
	}
	task := map[string]string{"task_name": shorten(request), "assignee_name": to, "description": request}
	return handOn("give the task to "+to, toolCreate, map[string]any{"tasks": []any{task}}, "I have given the task to "+to+".")
}

// handOn returns an action that a colleague carries out.
func handOn(request, tool string, args any, done string) *action {
	a := use(request, true, func(*talk) []offer { return []offer{{tool, args}} }, func(string) string { return done })
	a.other = true
	return a
}
