package teams

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// View reads the gateway's answer about one team.
func View(raw json.RawMessage) (command.TeamView, error) {
	var v command.TeamView
	err := json.Unmarshal(raw, &v)
	if err == nil && v.TeamID == "" {
		err = errors.New("it has no id")
	}
	if err != nil {
		return v, fmt.Errorf("the gateway's response is not a team: %w", err)
	}
	return v, nil
}

// List reads the gateway's answer about all teams.
func List(raw json.RawMessage) (command.TeamList, error) {
	var l command.TeamList
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, fmt.Errorf("the gateway's response is not a list of teams: %w", err)
	}
	return l, nil
}

// WriteList writes teams as a table, and then the definitions that can be run by name.
func WriteList(w io.Writer, raw json.RawMessage, now time.Time) error {
	l, err := List(raw)
	if err != nil {
		return err
	}
	if len(l.Teams) == 0 {
		if _, err := fmt.Fprintln(w, "no teams"); err != nil {
			return err
		}
	} else if err := writeTable(w, l.Teams, now); err != nil {
		return err
	}
	if len(l.Named) == 0 {
		return nil
	}
	_, err = fmt.Fprintln(w, "\ncan be run by name: "+terminal.Line(strings.Join(l.Named, ", "), 1000))
	return err
}

func writeTable(w io.Writer, teams []command.TeamView, now time.Time) error {
	rows := [][]string{{"TEAM", "NAME", "STATUS", "MEMBERS", "AGE"}}
	for _, v := range teams {
		rows = append(rows, []string{v.TeamID, v.Name, v.Status, members(v.Definition), terminal.Age(now.Sub(v.CreatedAt))})
	}
	return writeLines(w, terminal.Table(rows, cellWidth))
}

// cellWidth keeps a table of five columns within common terminals.
const cellWidth = 40

func members(d event.TeamDefinition) string {
	names := make([]string, len(d.Members))
	for i, m := range d.Members {
		names[i] = m.Name
	}
	return strings.Join(names, ", ")
}

func writeLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// WriteTeam writes a team with its members and its board.
func WriteTeam(w io.Writer, raw json.RawMessage, now time.Time) error {
	v, err := View(raw)
	if err != nil {
		return err
	}
	head := [][]string{{"team", v.TeamID}, {"name", v.Name}, {"status", v.Status}}
	if v.Error != "" {
		head = append(head, []string{"error", v.Error})
	}
	if v.Definition.Description != "" {
		head = append(head, []string{"about", v.Definition.Description})
	}
	head = append(head, []string{"age", terminal.Age(now.Sub(v.CreatedAt))})
	lines := append(terminal.Table(head, lineWidth), "")
	for _, r := range tell(v) {
		lines = append(lines, r.Text)
	}
	return writeLines(w, lines)
}

// tell returns the tree of a team that is known at once.
func tell(v command.TeamView) []terminal.Row {
	t := newTree(v)
	t.root.status, t.root.board = v.Status, slices.Clone(v.Board)
	for _, m := range v.Members {
		t.at(m.Route).status = m.Status
	}
	return t.rows()
}
