package sandbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSettings(t *testing.T) {
	var s Settings
	require.NoError(t, s.Complete())
	require.Equal(t, Prefer, s.Mode, "the zero value confines")
	require.Empty(t, s.Reaches())
	require.Positive(t, s.Limits.Processes)
	for want, bad := range map[string]Settings{
		"sandbox:":                     {Mode: "maybe"},
		"network_ports: 0":             {Network: true, Ports: []int{0}},
		"network_ports: has no effect": {Ports: []int{5432}},
		"limits:":                      {Limits: Limits{Memory: -1}},
		"limits.cpu:":                  {Limits: Limits{CPU: time.Millisecond}},
	} {
		require.ErrorContains(t, bad.Complete(), want)
	}
	with := Settings{Network: true, Ports: []int{5432}}
	require.Equal(t, []int{80, 443, 5432}, with.Reaches())
	require.Equal(t, []int{80, 443, 5432}, with.Reaches(), "as often as it is asked")
}

// A layer whose work others do is not a gap.
func TestGaps(t *testing.T) {
	all := Features{System: "linux", Namespaces: true, OwnProc: true, Closed: true, Landlock: 7, Seccomp: true, Root: true, Identity: true}
	net := Settings{Network: true}
	require.Empty(t, all.Gaps(Settings{}))
	require.Empty(t, all.Gaps(net))
	require.Empty(t, all.without([]Layer{Namespaces}).Gaps(net))
	require.NotEmpty(t, all.without([]Layer{Namespaces}).Notes())
	require.Empty(t, all.Notes())
	for _, layer := range []Layer{Landlock, Seccomp, Identity} {
		require.Len(t, all.without([]Layer{layer}).Gaps(Settings{}), 1, layer)
	}
	old := all
	old.Landlock = landlockTCP - 1
	require.Empty(t, old.Gaps(Settings{}))
	require.Len(t, old.Gaps(net), 1)
	old.Namespaces = false
	require.Len(t, old.Gaps(Settings{}), 1, "signals")
	nothing := all.without([]Layer{Namespaces, Landlock, Seccomp, Identity})
	require.Len(t, nothing.Gaps(Settings{}), 7)
	require.Equal(t, "limits", nothing.String())
	require.ErrorContains(t, &GapError{nothing.Gaps(Settings{})}, "lacks Landlock; Landlock and namespaces; the seccomp filter; seccomp and namespaces;")
	require.Len(t, Features{System: "darwin"}.Gaps(Settings{}), 1)
}
