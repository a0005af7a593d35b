package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/sandbox"
)

var complete = sandbox.Features{System: "linux", Namespaces: true, OwnProc: true, Closed: true, Landlock: 7, Seccomp: true, Identity: true}

const (
	noPrograms = "tools: {servers: [{name: web, url: 'http://127.0.0.1:1/mcp'}]}\n"
	program    = "tools: {sandbox: prefer, servers: [{name: files, command: [x]}]}\n"
	required   = "tools: {sandbox: require, servers: [{name: files, command: [x]}]}\n"
	withoutBox = "tools: {sandbox: require, servers: [{name: files, command: [x], sandbox: 'off'}]}\n"
	networked  = "tools: {servers: [{name: files, command: [x], network: true}]}\n"
)

func TestSandbox(t *testing.T) {
	container := complete
	container.Namespaces, container.OwnProc = false, false
	noLandlock := complete
	noLandlock.Landlock, noLandlock.Why = 0, map[sandbox.Layer]string{sandbox.Landlock: "operation not supported"}
	old := container
	old.Landlock = 3
	darwin := sandbox.Features{System: "darwin"}
	for _, c := range []struct {
		text     string
		features sandbox.Features
		level    Level
		is       []string
	}{
		{noPrograms, darwin, OK, []string{"no tool server is a program"}},
		{program, complete, OK, []string{"namespaces, Landlock 7, seccomp, limits"}},
		{required, complete, OK, nil},
		{required, container, OK, []string{"Landlock 7, seccomp, limits", "without namespaces the limit of processes counts all processes of the user"}},
		{withoutBox, complete, Warn, []string{"files has no sandbox: it may do whatever the user of waggle may"}},
		{program, noLandlock, Warn, []string{"for lack of Landlock (operation not supported) a hostile files could read every file of its user: the configuration, keys and the data folder"}},
		{required, noLandlock, Fail, nil},
		{program, darwin, Warn, []string{"for lack of a sandbox on darwin a hostile files could act as the user that runs waggle"}},
		{program, old, Warn, []string{"kill processes of its user, waggle included"}},
		{networked, old, Warn, []string{"connect to every port, NATS on loopback included"}},
		{networked, container, OK, nil},
	} {
		f := judgeSandbox(patient(t, c.text, nil), c.features)[0]
		require.Equal(t, c.level, f.Level, "%s %+v: %s", c.text, c.features, f.Is)
		for _, want := range c.is {
			require.Contains(t, f.Is, want)
		}
		require.Equal(t, c.level == OK, f.Do == "")
	}
	require.NotEmpty(t, confinement(t.Context(), patient(t, program, nil))[0].Is)
}
