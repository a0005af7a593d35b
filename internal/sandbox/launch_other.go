//go:build !linux

package sandbox

// Detect returns that this system has no layers.
func Detect() Features { return none() }

// Protect does nothing: this system has no such protection.
func Protect() error { return nil }

// Prepare prepares the start of a program. The settings must be complete.
func Prepare(c Command) (*Launch, error) {
	l := plain(c)
	if c.Settings.Mode == Off {
		return l, nil
	}
	if l.Gaps = l.Features.Gaps(c.Settings); c.Settings.Mode == Require {
		return nil, &GapError{l.Gaps}
	}
	return l, nil
}

// Start starts the program.
func (l *Launch) Start() error { return l.Cmd.Start() }
