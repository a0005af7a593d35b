// Package tasks shows the agents and the tasks of the swarm at the terminal, and gives
// tasks as a client that stays the same from one command to the next.
package tasks

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// cellWidth keeps a table of five columns within common terminals.
const cellWidth = 40

// resultLimit is how much of a result is shown, in characters: a screen or two. --json
// shows all of it.
const resultLimit = 4000

// WriteAgents writes agents as a table: those that are online first, by name.
func WriteAgents(w io.Writer, raw json.RawMessage, _ time.Time) error {
	var d api.AgentList
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("the gateway's response is not a list of agents: %w", err)
	}
	if len(d.Agents) == 0 {
		_, err := fmt.Fprintln(w, "no agents")
		return err
	}
	slices.SortStableFunc(d.Agents, func(a, b command.Participant) int {
		if a.Online != b.Online {
			return map[bool]int{true: -1, false: 1}[a.Online]
		}
		return strings.Compare(a.Name, b.Name)
	})
	rows := [][]string{{"AGENT", "NAME", "STATUS", "TASKS", "CAPABILITIES"}}
	for _, a := range d.Agents {
		rows = append(rows, []string{a.ID, a.Name, a.Status, fmt.Sprint(a.Load), strings.Join(a.Capabilities, ", ")})
	}
	return table(w, rows)
}

// WriteTasks writes tasks as a table, the newest first.
func WriteTasks(w io.Writer, raw json.RawMessage, now time.Time) error {
	var d api.TaskPage
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("the gateway's response is not a list of tasks: %w", err)
	}
	if len(d.Tasks) == 0 {
		_, err := fmt.Fprintln(w, "no tasks")
		return err
	}
	slices.SortStableFunc(d.Tasks, func(a, b api.TaskSummary) int { return b.CreatedAt.Compare(a.CreatedAt) })
	rows := [][]string{{"TASK", "STATUS", "AGENT", "AGE", "TOOK"}}
	for _, t := range d.Tasks {
		rows = append(rows, []string{t.TaskID, t.Status, agentOf(t.TaskView), terminal.Age(now.Sub(t.CreatedAt)), took(t.TaskView)})
	}
	return table(w, rows)
}

func agentOf(t command.TaskView) string {
	if t.AgentName != "" {
		return t.AgentName
	}
	return t.AgentID
}

func took(t command.TaskView) string {
	if t.EndedAt.IsZero() {
		return ""
	}
	return t.EndedAt.Sub(t.CreatedAt).Round(time.Millisecond).String()
}

// WriteTask writes one task with its result.
func WriteTask(w io.Writer, raw json.RawMessage, now time.Time) error {
	var t command.TaskView
	if err := json.Unmarshal(raw, &t); err != nil || t.TaskID == "" {
		return fmt.Errorf("the gateway's response is not a task: %w", err)
	}
	rows := [][]string{
		{"task", t.TaskID},
		{"status", t.Status},
		{"agent", agentOf(t)},
		{"attempt", fmt.Sprint(t.Attempt)},
		{"created", t.CreatedAt.Format(time.RFC3339) + " (" + terminal.Age(now.Sub(t.CreatedAt)) + " ago)"},
	}
	for _, more := range [][]string{
		{"took", took(t)},
		{"parent", t.ParentID},
		{"client", t.ClientID},
		{"progress", terminal.Line(string(t.Progress), cellWidth)},
		{"error", strings.TrimSpace(t.Error + " " + bracketed(t.Code))},
	} {
		if more[1] != "" {
			rows = append(rows, more)
		}
	}
	for _, line := range terminal.Table(rows, 200) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if len(t.Result) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(w, "\n"+Text(t.Result))
	return err
}

func bracketed(code string) string {
	if code == "" {
		return ""
	}
	return "[" + code + "]"
}

// Text returns JSON for people: the text of a string, other values indented, without
// what could steer the terminal, and cut if it is very long.
func Text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
		var v any
		if json.Unmarshal(raw, &v) == nil {
			if b, err := json.MarshalIndent(v, "", "  "); err == nil {
				s = string(b)
			}
		}
	}
	r := []rune(terminal.Strip(s))
	if len(r) > resultLimit {
		return string(r[:resultLimit]) + "…"
	}
	return string(r)
}

func table(w io.Writer, rows [][]string) error {
	for _, line := range terminal.Table(rows, cellWidth) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
