// Package sessions shows the sessions of a gateway at the terminal.
package sessions

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

// cellWidth keeps a table of four columns within common terminals.
const cellWidth = 48

// WriteList writes the sessions as a table, the newest first.
func WriteList(w io.Writer, raw json.RawMessage, now time.Time) error {
	var d api.SessionList
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("the gateway's response is not a list of sessions: %w", err)
	}
	if len(d.Sessions) == 0 {
		_, err := fmt.Fprintln(w, "no sessions")
		return err
	}
	slices.SortStableFunc(d.Sessions, func(a, b api.SessionSummary) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	rows := [][]string{{"SESSION", "STATE", "EVENTS", "AGE", "QUESTION"}}
	for _, s := range d.Sessions {
		rows = append(rows, []string{s.SessionID, stateOf(s), strconv.FormatUint(s.LastSeq, 10), terminal.Age(now.Sub(s.UpdatedAt)), s.Question})
	}
	return table(w, rows)
}

func stateOf(s api.SessionSummary) string {
	switch {
	case s.Status == api.SessionClosed && (s.State == api.SessionIdle || s.State == api.SessionCompleted):
		return s.Status
	case s.Status == api.SessionClosed:
		return s.Status + ", " + s.State
	}
	return s.State
}

// WriteDetail writes one session and its runs.
func WriteDetail(w io.Writer, raw json.RawMessage, now time.Time) error {
	var d api.SessionDetail
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("the gateway's response is not a session: %w", err)
	}
	head := [][]string{
		{"session", d.SessionID},
		{"status", d.Status},
		{"dialect", d.Dialect},
		{"created", d.CreatedAt.Format(time.RFC3339)},
		{"updated", terminal.Age(now.Sub(d.UpdatedAt)) + " ago"},
		{"events", strconv.FormatUint(d.LastSeq, 10)},
	}
	if err := table(w, head); err != nil || len(d.Runs) == 0 {
		return err
	}
	rows := [][]string{{"RUN", "STATE", "QUESTION", "ANSWER"}}
	for i, r := range d.Runs {
		rows = append(rows, []string{strconv.Itoa(i + 1), api.RunState(r.Status, r.Outcome), r.Content, r.Answer})
	}
	_, _ = fmt.Fprintln(w)
	return table(w, rows)
}

func table(w io.Writer, rows [][]string) error {
	for _, line := range terminal.Table(rows, cellWidth) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
