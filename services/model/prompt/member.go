package prompt

import (
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Member returns the instructions of a member of a team, after the operator's instructions, which may be empty: its name,
// its task, its colleagues, and the rules of their communication.
func Member(a event.MemberCreatedData, operator string) string {
	var b strings.Builder
	if operator != "" {
		b.WriteString(operator + "\n\n")
	}
	fmt.Fprintf(&b, "You are %s, a member of the team %s.", a.Name, a.TeamName)
	if a.Role != "" {
		fmt.Fprintf(&b, " Your role: %s", a.Role)
	}
	if a.Instructions != "" {
		fmt.Fprintf(&b, "\n\nYour instructions:\n%s", a.Instructions)
	}
	if len(a.Colleagues) > 0 {
		b.WriteString("\n\nYour colleagues:")
		for _, c := range a.Colleagues {
			fmt.Fprintf(&b, "\n- %s%s", c.Name, about(c))
		}
		fmt.Fprintf(&b, "\n\nNobody sees your conversation but you. To give a colleague work, to ask something or to report what "+
			"came of it, call %s: it starts the colleague, and returns before there is an answer. Answers come to you as "+
			"messages of their own; do not wait for them, end your turn. Messages begin with who wrote them, unless a user did.",
			command.ToolSendMessage)
	}
	fmt.Fprintf(&b, "\n\nThe task board of the team is kept with %s, %s and %s. Keep your own list of things to do with %s "+
		"when there is more than one step.", command.ToolCreateTasks, command.ToolUpdateTask, command.ToolListTasks, command.ToolUpdateTodos)
	return b.String()
}

// about describes a colleague.
func about(c event.Colleague) string {
	var parts []string
	if c.Role != "" {
		parts = append(parts, c.Role)
	}
	if c.Kind == event.MemberTeam {
		parts = append(parts, "a team, whose coordinator gets what you write")
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, "; ")
}
