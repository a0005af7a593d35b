// Package doctor examines an installation: each finding says what is, and, where
// something is wrong, what to do.
package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

// Level says how bad a finding is.
type Level string

// Levels.
const (
	OK   Level = "OK"
	Warn Level = "WARN"
	Fail Level = "FAIL"
)

// Finding is the result of one check.
type Finding struct {
	Level Level
	What  string // what was looked at
	Is    string // what was found
	Do    string // what to do about it; empty if OK
}

// patience bounds each check that asks somebody: whoever needs longer is as good as down.
const patience = 3 * time.Second

// Patient is what is examined.
type Patient struct {
	Config  *config.Loaded
	Environ []string // as of os.Environ
	Probe   func(ctx context.Context, addr, path string) error
}

// Examine runs all checks in order and passes each finding to report as soon as it
// is known.
func Examine(ctx context.Context, p Patient, report func(Finding)) {
	for _, check := range []func(context.Context, Patient) []Finding{
		configuration, environment, workspace, model, nats, gateway,
	} {
		for _, f := range bounded(ctx, p, check) {
			report(f)
		}
	}
}

func bounded(ctx context.Context, p Patient, check func(context.Context, Patient) []Finding) []Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return check(ctx, p)
}

// Write writes a finding for people. What others have said cannot steer the terminal.
func Write(w io.Writer, f Finding, color bool) {
	style := map[Level]terminal.Style{OK: terminal.Green, Warn: terminal.Yellow, Fail: terminal.Red}[f.Level]
	_, _ = fmt.Fprintf(w, "%s %-14s %s\n", terminal.Paint(color, style, fmt.Sprintf("%-4s", f.Level)), f.What, indent(f.Is))
	if f.Do != "" {
		_, _ = fmt.Fprintf(w, "     %-14s → %s\n", "", indent(f.Do))
	}
}

// indent keeps lines of one finding below each other.
func indent(text string) string {
	lines := strings.Split(terminal.Strip(text), "\n")
	return strings.Join(lines, "\n"+strings.Repeat(" ", 20))
}

func one(level Level, what, is, do string) []Finding { return []Finding{{level, what, is, do}} }
