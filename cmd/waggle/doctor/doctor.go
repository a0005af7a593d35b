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

// busPatience bounds what is asked of NATS: some fifty questions, of which a cluster that
// elects answers none.
const busPatience = 20 * time.Second

// Patient is what is examined.
type Patient struct {
	Config  *config.Loaded
	Environ []string // as of os.Environ
	// SystemNKey is the seed file of the user that may ask every NATS server; empty = they
	// are not asked.
	SystemNKey string
	Probe      func(ctx context.Context, addr, path string) error
}

// Examine runs all checks in order and passes each finding to report as soon as it
// is known.
func Examine(ctx context.Context, p Patient, report func(Finding)) {
	type check func(context.Context, Patient) []Finding
	for _, c := range []struct {
		look  check
		limit time.Duration
	}{
		{configuration, patience},
		{environment, patience},
		{workspace, patience},
		{model, patience},
		{onBus, busPatience},
		{gateway, patience},
	} {
		for _, f := range bounded(ctx, p, c.limit, c.look) {
			report(f)
		}
	}
}

func bounded(ctx context.Context, p Patient, limit time.Duration, check func(context.Context, Patient) []Finding) []Finding {
	ctx, cancel := context.WithTimeout(ctx, limit)
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
