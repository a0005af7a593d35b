package teams

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
	"github.com/waggle-dev/waggle/sdk/go/waggle/team"
)

// tree is the state of a team from its frames: its members, those of nested teams, and the tasks
// on their boards. It is not safe for concurrent use.
type tree struct {
	root node
}

// node is a member, or the team itself.
type node struct {
	name   string
	id     string
	team   bool
	status string
	doing  string // current work of an agent: the text that it writes, the tool that it runs
	nodes  []*node
	board  []event.BoardTask
}

// newTree returns the tree of a team before anything has happened.
func newTree(v command.TeamView) *tree {
	t := &tree{root: node{name: v.Name, id: v.TeamID, team: true}}
	t.root.plant(v.Definition)
	for _, m := range v.Members {
		n := t.at(m.Route)
		n.id, n.team = cmp.Or(m.ID, n.id), m.Kind == event.MemberTeam
	}
	return t
}

// plant adds the members that the definition names.
func (n *node) plant(d event.TeamDefinition) {
	for _, m := range d.Members {
		c := n.child(m.Name)
		if m.Team != nil {
			c.team = true
			c.plant(*m.Team)
		}
	}
}

// child returns the member with the name, and creates it if needed.
func (n *node) child(name string) *node {
	for _, c := range n.nodes {
		if c.name == name {
			return c
		}
	}
	c := &node{name: name}
	n.nodes = append(n.nodes, c)
	return c
}

// at returns the node of the route.
func (t *tree) at(route string) *node {
	n := &t.root
	if route == "" {
		return n
	}
	for name := range strings.SplitSeq(route, "/") {
		n.team = true
		n = n.child(name)
	}
	return n
}

// called returns the route of the member with the id, or else its name or the id.
func (t *tree) called(id, name string) string {
	if route, ok := t.root.find(id, ""); ok {
		return route
	}
	return orElse(name, id)
}

func (n *node) find(id, prefix string) (string, bool) {
	for _, c := range n.nodes {
		if c.id == id && id != "" {
			return prefix + c.name, true
		}
		if route, ok := c.find(id, prefix+c.name+"/"); ok {
			return route, true
		}
	}
	return "", false
}

// note updates a member and its team from a frame.
func (t *tree) note(f team.Frame) {
	n := t.at(f.Path())
	if n == &t.root && f.Type == wire.AgentStatus {
		return // a status without an agent
	}
	if f.Payload.AgentID != "" && !n.team {
		n.id = f.Payload.AgentID
	}
	switch f.Type {
	case wire.TeamStatus:
		n.team, n.status = true, f.Payload.NewStatus
	case wire.AgentStatus:
		n.status = f.Payload.NewStatus
		if !event.Working(n.status) {
			n.doing = ""
		}
	case wire.ToolExecutionStarted:
		n.doing = "→ " + f.Payload.ToolName
	case wire.ToolExecutionSucceeded, wire.ToolExecutionFailed:
		n.doing = ""
	case wire.SegmentEnd:
		if f.Payload.SegmentType == wire.SegmentText {
			n.doing = ""
		}
	case wire.TaskPlanEvent:
		n.plan(f.Payload)
	}
}

// plan changes the board.
func (n *node) plan(p team.Payload) {
	if p.Tasks != nil {
		n.board = slices.Clone(p.Tasks)
		return
	}
	for i := range n.board {
		if n.board[i].TaskID == p.TaskID {
			n.board[i].Status = p.NewStatus
		}
	}
}

// task returns the task on the board with the id.
func (n *node) task(id string) event.BoardTask {
	for _, t := range n.board {
		if t.TaskID == id {
			return t
		}
	}
	return event.BoardTask{TaskID: id}
}

// styles of statuses. Working agents have none.
var styles = map[string]terminal.Style{
	event.AgentIdle: terminal.Dim, event.AgentError: terminal.Red, event.AgentAwaitingApproval: terminal.Yellow,
	event.TeamIdle: terminal.Dim, event.TeamFailed: terminal.Red, event.TeamPaused: terminal.Yellow, event.TeamShuttingDown: terminal.Dim,
	event.AgentUninitialized: terminal.Dim, "": terminal.Dim,
}

// rows returns the tree as lines, and the boards below it.
func (t *tree) rows() []terminal.Row {
	out := []terminal.Row{row(terminal.Bold, terminal.Line(t.root.name, nameWidth)+"  "+orElse(t.root.status, "STARTING"))}
	out = t.root.branches(out, "", t.root.width(0))
	return t.root.boards(out, "")
}

// width returns the width of the widest name with its indentation.
func (n *node) width(depth int) int {
	w := 0
	for _, c := range n.nodes {
		w = max(w, 3*(depth+1)+terminal.Columns(terminal.Line(c.name, nameWidth)), c.width(depth+1))
	}
	return w
}

func (n *node) branches(out []terminal.Row, prefix string, width int) []terminal.Row {
	for i, c := range n.nodes {
		branch, below := "├─ ", "│  "
		if i == len(n.nodes)-1 {
			branch, below = "└─ ", "   "
		}
		text := prefix + branch + terminal.Line(c.name, nameWidth)
		text += strings.Repeat(" ", max(width-terminal.Columns(text), 0)) + "  " + c.shown()
		if doing := tail(c.doing, lineWidth); doing != "" {
			text += "  " + doing
		}
		out = append(out, row(styles[c.status], text))
		out = c.branches(out, prefix+below, width)
	}
	return out
}

// shown is the status for people.
func (n *node) shown() string {
	if n.status == "" || n.status == event.AgentUninitialized {
		return "not started"
	}
	return terminal.Line(n.status, nameWidth)
}

// marks of the statuses of a task.
var marks = map[string]string{
	event.BoardNotStarted: "○", event.BoardCompleted: "✓", event.BoardFailed: "✗", event.BoardInProgress: "▸", event.BoardBlocked: "!", event.BoardQueued: "·",
}

// boards adds the boards of the team and of the teams in it.
func (n *node) boards(out []terminal.Row, route string) []terminal.Row {
	if len(n.board) > 0 {
		out = append(out, row(terminal.Bold, "Tasks"+of(route)))
	}
	for _, t := range n.board {
		out = append(out, row(terminal.Plain, "  "+describe(t)))
	}
	for _, c := range n.nodes {
		out = c.boards(out, strings.TrimPrefix(route+"/"+c.name, "/"))
	}
	return out
}

// of names a nested team in a sentence; empty for the team itself.
func of(route string) string {
	if route == "" {
		return ""
	}
	return " of " + terminal.Line(route, nameWidth)
}

// describe returns a task on one line.
func describe(t event.BoardTask) string {
	status := orElse(t.Status, event.BoardNotStarted)
	text := fmt.Sprintf("%s %s %s", orElse(marks[status], "?"), t.TaskID, orElse(t.TaskName, t.Description))
	if t.AssigneeName != "" {
		text += " (" + t.AssigneeName + ")"
	}
	text += ", " + status
	if len(t.Dependencies) > 0 {
		text += ", after " + strings.Join(t.Dependencies, ", ")
	}
	return terminal.Line(text, lineWidth)
}

// tail returns the end of a text on one line.
func tail(text string, limit int) string {
	r := []rune(terminal.Line(text, max(len(text), 1)))
	if len(r) <= limit {
		return string(r)
	}
	return "…" + string(r[len(r)-limit+1:])
}

// row returns a line that cannot steer the terminal, whatever is in the text.
func row(style terminal.Style, text string) terminal.Row {
	return terminal.Row{Style: style, Text: strings.NewReplacer("\n", " ", "\t", " ").Replace(terminal.Strip(text))}
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

const (
	// lineWidth keeps a remark on one line of common terminals, beside a member's name.
	lineWidth = 100
	// nameWidth is more than names of members usually have.
	nameWidth = 40
)
