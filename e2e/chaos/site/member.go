package site

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// Member is one process of the installation, over its restarts.
type Member struct {
	s    *Site
	Name string
	Role string
	Addr string // where it listens; empty = nowhere
	// Telemetry is where it serves metrics.
	Telemetry string
	Place     *Place
	Store     string // disk of a NATS server
	clock     string // file of its clock's shift; empty = its clock cannot be set
	opt       process.Options
	p         *process.Process
	past      []*process.Process
}

// roleNATS is the role of the members that are NATS servers.
const roleNATS = "nats"

// probe is where the process answers probes.
func (m *Member) probe() string {
	if m.Role == roleNATS {
		return m.s.http[m]
	}
	return m.Addr
}

// Start starts the process anew.
func (m *Member) Start() {
	if m.p != nil {
		m.past = append(m.past, m.p)
	}
	m.p = process.Start(m.s.T, m.opt)
}

// Kill ends the process with SIGKILL, and says what proves it.
func (m *Member) Kill() (string, error) {
	pid := m.p.PID()
	m.p.Signal(syscall.SIGCONT) // a paused process is killed as well, but its parent hears of it sooner
	m.p.Kill()
	if state, err := stateOf(pid); err == nil {
		return "", fmt.Errorf("%s: process %d lives on: %s", m.Name, pid, state)
	}
	return fmt.Sprintf("killed %s (process %d is gone)", m.Name, pid), nil
}

// Pause stops the process where it is, and says what proves it.
func (m *Member) Pause() (string, error) {
	m.p.Signal(syscall.SIGSTOP)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		state, err := stateOf(m.p.PID())
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.Name, err)
		}
		if state == "T" {
			return fmt.Sprintf("paused %s (process %d is in state T)", m.Name, m.p.PID()), nil
		}
	}
	return "", fmt.Errorf("%s does not stop", m.Name)
}

// Continue ends a Pause.
func (m *Member) Continue() { m.p.Signal(syscall.SIGCONT) }

// Leave has the process end in good order, and says what proves it. A NATS server hands
// over what it leads and lets its clients go first.
func (m *Member) Leave() (string, error) {
	pid := m.p.PID()
	began := time.Now()
	sig := syscall.SIGTERM
	if m.Role == roleNATS {
		sig = syscall.SIGUSR2
	}
	m.p.Signal(sig)
	if err := m.p.Wait(); err != nil {
		return "", fmt.Errorf("%s did not end in good order: %w", m.Name, err)
	}
	if _, err := stateOf(pid); err == nil {
		return "", fmt.Errorf("%s: process %d lives on", m.Name, pid)
	}
	return fmt.Sprintf("%s (process %d) has left in %.1f s", m.Name, pid, time.Since(began).Seconds()), nil
}

// Output is what the process and its predecessors have printed.
func (m *Member) Output() string {
	var b strings.Builder
	for _, p := range append(m.past, m.p) {
		b.WriteString(p.Output())
	}
	return b.String()
}

// stateOf returns the state of a process as the kernel calls it, or an error for a
// process that does not exist.
func stateOf(pid int) (string, error) {
	f, err := process.Stat(pid)
	if err != nil {
		return "", err
	}
	return f[0], nil
}

// Memory returns the resident bytes of the process.
func (m *Member) Memory() (int, error) { return m.p.Memory() }
