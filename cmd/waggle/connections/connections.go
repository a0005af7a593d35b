// Package connections writes the connections of an installation for people.
package connections

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

// cellWidth has room for an id.
const cellWidth = 40

// Write writes the gateway's answer as a table, a line for each viewer, and then what the table lacks.
func Write(w io.Writer, raw json.RawMessage, now time.Time) error {
	var l api.ConnectionList
	if err := json.Unmarshal(raw, &l); err != nil {
		return fmt.Errorf("the gateway's response is not a list of connections: %w", err)
	}
	lines := []string{"no connections"}
	if len(l.Connections) > 0 {
		rows := [][]string{{"CONNECTION", "GATEWAY", "PROTOCOL", "PRINCIPAL", "AGE", "QUEUED", "WATCHES", "SEQ", "BEHIND", "LAG"}}
		for _, c := range l.Connections {
			rows = append(rows, lineOf(c, now)...)
		}
		lines = terminal.Table(rows, cellWidth)
	}
	if n := l.Total - len(l.Connections); n > 0 {
		lines = append(lines, fmt.Sprintf("%d more: give a larger --limit", n))
	}
	if len(l.Missing) > 0 {
		lines = append(lines, "not answered: "+terminal.Line(strings.Join(l.Missing, ", "), 1000))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// lineOf returns the rows of a connection: one for each viewer, and one if it has none.
func lineOf(c api.Connection, now time.Time) (rows [][]string) {
	head := []string{c.ID, c.Gateway, c.Protocol, c.Principal, terminal.Age(now.Sub(c.Since)), strconv.Itoa(c.Queued)}
	for _, v := range c.Watches {
		rows = append(rows, append(head, viewer(v, now)...))
		head = []string{"", "", "", "", "", ""}
	}
	if len(rows) == 0 {
		return [][]string{append(head, "-", "", "", "")}
	}
	if c.More > 0 {
		rows = append(rows, append(head, fmt.Sprintf("and %d more", c.More), "", "", ""))
	}
	return rows
}

// viewer returns the last cells of a row.
func viewer(v api.Watch, now time.Time) []string {
	cells := []string{"announcements", "", fmt.Sprintf("%d missed", v.Missed), ""}
	if v.Log != "" {
		cells = []string{v.Log, strconv.FormatUint(v.Seq, 10), strconv.FormatUint(v.Behind, 10), ""}
	}
	if v.Reason != "" {
		cells[3] = v.Reason + " for " + terminal.Age(now.Sub(v.Lagging))
	}
	return cells
}
