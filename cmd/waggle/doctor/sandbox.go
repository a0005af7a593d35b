package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/services/checkup"
)

// confinement checks the sandboxes of tool programs on this machine.
func confinement(_ context.Context, p Patient) []Finding {
	return judgeSandbox(p, sandbox.Detect())
}

// judgeSandbox names what a hostile tool program could do with these features.
func judgeSandbox(p Patient, f sandbox.Features) []Finding {
	const what = "tool sandbox"
	t := &p.Config.Tools
	lines := append([]string{f.String()}, f.Notes()...)
	var open, lacking []string
	level, programs := OK, 0
	for i := range t.Servers {
		s := &t.Servers[i]
		if len(s.Command) == 0 {
			continue
		}
		programs++
		box := t.SandboxOf(s)
		if box.Mode == sandbox.Off {
			level = worse(level, Warn)
			open = append(open, s.Name+" has no sandbox: it may do whatever the user of waggle may")
			continue
		}
		for _, g := range f.Gaps(box) {
			level = worse(level, Warn)
			if box.Mode == sandbox.Require {
				level = Fail
			}
			lacking = append(lacking, fmt.Sprintf("for lack of %s a hostile %s could %s", g.Missing, s.Name, g.Allows))
		}
	}
	lines = slices.Concat(lines, open, lacking)
	var do []string
	if len(open) > 0 {
		do = append(do, "set tools.sandbox to prefer, and give each server the paths and the network that it needs")
	}
	if len(lacking) > 0 {
		do = append(do, "run tool programs on a kernel with Landlock (6.12 or newer has all of it) and seccomp, not as root; see docs/SECURITY.md")
	}
	if programs == 0 {
		lines = append(lines, "no tool server is a program")
	}
	return one(level, what, strings.Join(lines, "\n"), strings.Join(do, "\n"))
}

// worse returns the worse of two levels.
func worse(a, b checkup.Level) checkup.Level {
	if a == Fail || b == OK {
		return a
	}
	return b
}
