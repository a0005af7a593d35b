package planchat

import (
	"errors"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// Scopes of questions (docs/PROTOCOL-MYAGENT.md): what the person decides about.
const (
	scopePlan = "plan"
	scopeTool = "tool"
	scopeTask = "task"
)

// asked is a question of the run that is open.
type asked struct {
	myagent.ConfirmMeta
	step    string
	content string
}

// plan reports whether the question is about the plan. A server that names no scope asks about it.
func (q asked) plan() bool { return q.Scope == "" || q.Scope == scopePlan }

// subject says what waits for a decision.
func (q asked) subject() string {
	switch q.Scope {
	case scopeTool:
		return "the call of " + terminal.Line(q.ToolName, lineWidth)
	case scopeTask:
		return "an agent"
	}
	if q.plan() {
		return "the plan"
	}
	return "the run"
}

// text is the question, empty if the plan has been shown.
func (q asked) text() string {
	switch {
	case q.plan():
		return ""
	case q.Scope == scopeTool:
		return chat.MayCall(q.ToolName, q.ToolArgs)
	}
	return terminal.Strip(q.content)
}

// hint says how a person answers.
func (q asked) hint() string {
	switch {
	case q.plan():
		return "Carry it out? y, n WHY, drop 2 3, title 2 NEW ONE"
	case q.Scope == scopeTask:
		return "Your answer?"
	}
	return "y, or n WHY?"
}

// answer returns the content of the response to a question that is not about the plan. The text for an agent is the answer itself.
func (q asked) answer(line string) (map[string]any, error) {
	line = strings.TrimSpace(line)
	if line == "" {
		return nil, errors.New(q.hint())
	}
	if q.Scope == scopeTask {
		return map[string]any{"approved": true, "feedback": line}, nil
	}
	if v := yesOrNo(line); v.decided {
		return v.content(), nil
	}
	return nil, errors.New(q.hint())
}
