package teams

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
	"github.com/waggle-dev/waggle/sdk/go/waggle/team"
)

// line is a final part of the story.
type line struct {
	terminal.Row
	quiet bool // it need not be said where the tree is shown
}

// question is a tool call that waits for a decision.
type question struct {
	route string
	team.Payload
}

// story describes a team's frames in lines of text, and keeps the tree. The same frames give the
// same text. It is not safe for concurrent use.
type story struct {
	*tree
	segments map[string]*segment
	calls    map[string]string // arguments of tool calls that have not begun
	said     map[string]string // route -> its last printed text
	tasks    map[string]bool   // route and id of the printed tasks
	open     []question        // the oldest first
}

// segment is a text that is being written.
type segment struct {
	kind string
	text strings.Builder
}

func newStory(t *tree) *story {
	return &story{tree: t, segments: map[string]*segment{}, calls: map[string]string{}, said: map[string]string{}, tasks: map[string]bool{}}
}

// take adds a frame and returns the lines to print for it.
func (s *story) take(f team.Frame) []line {
	route := f.Path()
	before := s.at(route).status
	s.note(f)
	switch f.Type {
	case wire.TeamStatus, wire.AgentStatus:
		return s.status(f, before)
	case wire.SegmentStart, wire.SegmentContent, wire.SegmentEnd, wire.AssistantComplete:
		return s.text(f)
	case wire.ToolApprovalRequested, wire.ToolApproved, wire.ToolDenied:
		return s.approval(f)
	case wire.ToolExecutionStarted:
		arguments := s.calls[f.Payload.InvocationID]
		delete(s.calls, f.Payload.InvocationID)
		return says(terminal.Cyan, route, "→ "+f.Payload.ToolName+" "+arguments)
	case wire.ToolExecutionSucceeded:
		return says(terminal.Dim, route, "← "+plain(f.Payload.Result))
	case wire.ToolExecutionFailed:
		return says(terminal.Red, route, "✗ "+f.Payload.ToolName+": "+f.Payload.Error)
	case wire.TaskPlanEvent:
		return s.planned(f)
	default:
		return s.other(f)
	}
}

// says returns a remark of the member on one line.
func says(style terminal.Style, route, text string) []line {
	if route != "" {
		text = terminal.Line(route, nameWidth) + " " + text
	}
	return []line{{Row: row(style, terminal.Line(text, lineWidth))}}
}

func quiet(lines []line) []line {
	for i := range lines {
		lines[i].quiet = true
	}
	return lines
}

// status tells that a member, or a team, has become something else.
func (s *story) status(f team.Frame, before string) []line {
	p, route := f.Payload, f.Path()
	if f.Type == wire.AgentStatus && !event.Working(p.NewStatus) {
		s.open = slices.DeleteFunc(s.open, func(q question) bool { return q.route == route })
	}
	if p.NewStatus == before || p.Envelope.Sequence == 0 { // known, or from the greeting, which tells how all is
		return nil
	}
	text := "is " + p.NewStatus
	if p.ErrorMessage != "" {
		text += ": " + p.ErrorMessage
	}
	if f.Type == wire.TeamStatus {
		out := says(styles[p.NewStatus], orElse(route, s.root.name), text)
		if p.NewStatus == event.TeamFailed {
			return out
		}
		return quiet(out)
	}
	if p.NewStatus == event.AgentError && p.ErrorMessage != "" {
		return says(terminal.Red, route, "failed: "+p.ErrorMessage)
	}
	return nil
}

// text prints the text of a member as it streams.
func (s *story) text(f team.Frame) []line {
	route, key := f.Path(), f.Path()+"\x00"+f.Payload.ID
	if f.Type == wire.AssistantComplete {
		said := s.said[route]
		delete(s.said, route)
		if f.Payload.Content == "" || f.Payload.Content == said {
			return nil
		}
		return quote(terminal.Plain, route, f.Payload.Content)
	}
	g := s.segments[key]
	if g == nil {
		g = &segment{}
		s.segments[key] = g
	}
	g.kind = orElse(f.Payload.SegmentType, g.kind)
	switch f.Type {
	case wire.SegmentContent:
		g.text.WriteString(f.Payload.Delta)
		if g.kind == wire.SegmentText || g.kind == wire.SegmentReasoning {
			s.at(route).doing = g.text.String()
		}
	case wire.SegmentEnd:
		delete(s.segments, key)
		return s.written(route, f.Payload.ID, g, f.Payload.Metadata)
	}
	return nil
}

// written tells a text that is whole, or that it is not to be.
func (s *story) written(route, segmentID string, g *segment, m wire.SegmentMetadata) []line {
	text := g.text.String()
	switch {
	case g.kind != wire.SegmentText && g.kind != wire.SegmentReasoning:
		s.calls[segmentID] = orElse(compact(m.Arguments), orElse(m.Path, text))
		return nil
	case text == "":
		return nil
	case m.Discarded:
		return says(terminal.Yellow, route, "begins the text again: "+orElse(m.Reason, "its worker was lost"))
	case g.kind == wire.SegmentReasoning:
		return quote(terminal.Dim, route, text)
	}
	s.said[route] = text
	return quote(terminal.Plain, route, text)
}

// quote returns a text of a member with all its lines.
func quote(style terminal.Style, route, text string) []line {
	var out []line
	prefix := terminal.Line(route, nameWidth) + ": "
	for part := range strings.SplitSeq(strings.TrimRight(terminal.Strip(text), "\n"), "\n") {
		out = append(out, line{Row: row(style, strings.TrimRight(prefix+part, " "))})
		prefix = "  "
	}
	return out
}

// approval follows the questions whether tools may run.
func (s *story) approval(f team.Frame) []line {
	p, route := f.Payload, f.Path()
	s.close(p.InvocationID)
	switch f.Type {
	case wire.ToolApproved:
		return says(terminal.Green, route, "may run "+p.ToolName+because(p.Reason))
	case wire.ToolDenied:
		delete(s.calls, p.InvocationID)
		return says(terminal.Yellow, route, "may not run "+p.ToolName+because(orElse(p.Reason, p.Error)))
	}
	s.open = append(s.open, question{route, p})
	return []line{
		{Row: row(terminal.Yellow, terminal.Line(route+" asks to run "+p.ToolName, lineWidth))},
		{Row: row(terminal.Yellow, "  "+string(terminal.ASCII(p.Arguments)))},
	}
}

// close takes a question off, because it has been decided here.
func (s *story) close(invocation string) {
	s.open = slices.DeleteFunc(s.open, func(q question) bool { return q.InvocationID == invocation })
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// planned prints new tasks of a board.
func (s *story) planned(f team.Frame) []line {
	n, route := s.at(f.Path()), f.Path()
	tell := func(out []line, t event.BoardTask) []line {
		s.tasks[route+"\x00"+t.TaskID] = true
		return append(out, line{Row: row(terminal.Blue, "Task"+of(route)+": "+describe(t))})
	}
	if f.Payload.Tasks == nil {
		return quiet(tell(nil, n.task(f.Payload.TaskID)))
	}
	var out []line
	for _, t := range f.Payload.Tasks {
		if !s.tasks[route+"\x00"+t.TaskID] {
			out = tell(out, t)
		}
	}
	return quiet(out)
}

// other prints the remaining kinds of frames.
func (s *story) other(f team.Frame) []line {
	p, route := f.Payload, f.Path()
	switch f.Type {
	case wire.InterAgentMessage:
		return quote(terminal.Blue, s.called(p.SenderAgentID, p.SenderAgentName)+" ⇒ "+route, p.Content)
	case wire.TaskNotification:
		return quote(terminal.Blue, "tasks ⇒ "+route, p.Content)
	case wire.TodoListUpdate:
		done := 0
		for _, t := range p.Todos {
			if t.Status == event.TodoDone {
				done++
			}
		}
		return says(terminal.Blue, route, fmt.Sprintf("has done %d of %d things", done, len(p.Todos)))
	case wire.ArtifactPersisted:
		return says(terminal.Blue, route, "made "+p.Path)
	case wire.ArtifactUpdated:
		return says(terminal.Blue, route, "changed "+p.Path)
	case wire.Error:
		return says(terminal.Red, route, "✗ "+f.Err().Error())
	}
	return nil
}

// compact returns JSON on one line.
func compact(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	return string(terminal.ASCII(raw))
}

// plain returns a text unchanged, and any other value as JSON.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return compact(raw)
}
