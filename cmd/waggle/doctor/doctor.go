// Package doctor examines an installation: each finding states a fact and, for a fault, the remedy.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/services/checkup"
)

// Level is the severity of a finding.
type Level = checkup.Level

// Finding is the result of one check.
type Finding = checkup.Finding

// Levels of findings, from good to bad.
const (
	OK   = checkup.OK
	Warn = checkup.Warn
	Fail = checkup.Fail
)

// maxWait bounds each check that waits for an answer: a slower part counts as down.
const maxWait = 3 * time.Second

// busMaxWait bounds all requests to NATS: some fifty, none of which a cluster without a leader answers.
const busMaxWait = 20 * time.Second

// Patient is the installation under examination.
type Patient struct {
	Config  *config.Loaded
	Environ []string // in the form of os.Environ
	// SystemNKey is the seed file of the user that may ask every NATS server; without it Examine skips those checks.
	SystemNKey string
	Probe      func(ctx context.Context, addr, path string) error
}

func bounded(ctx context.Context, p Patient, limit time.Duration, check func(context.Context, Patient) []Finding) []Finding {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return check(ctx, p)
}

// Write writes a finding for people. It removes control sequences, so that foreign texts cannot steer the terminal.
func Write(w io.Writer, f Finding, color bool) {
	style := map[checkup.Level]terminal.Style{OK: terminal.Green, Warn: terminal.Yellow, Fail: terminal.Red}[f.Level]
	_, _ = fmt.Fprintf(w, "%s %-14s %s\n", terminal.Paint(color, style, fmt.Sprintf("%-4s", f.Level)), f.What, indent(f.Is))
	if f.Do != "" {
		_, _ = fmt.Fprintf(w, "     %-14s → %s\n", "", indent(f.Do))
	}
}

// WriteJSON writes a finding as one line of JSON.
func WriteJSON(w io.Writer, f Finding) error {
	if err := json.NewEncoder(w).Encode(f); err != nil {
		return fmt.Errorf("write a finding: %w", err)
	}
	return nil
}

// indent aligns the lines of one finding.
func indent(text string) string {
	lines := strings.Split(terminal.Strip(text), "\n")
	return strings.Join(lines, "\n"+strings.Repeat(" ", 20))
}

func one(level checkup.Level, what, is, do string) []Finding {
	return checkup.One(level, what, is, do)
}
