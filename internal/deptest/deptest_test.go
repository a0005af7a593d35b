package deptest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "github.com/waggle-dev/waggle"

// recorder is a test that only keeps what is said to it.
type recorder struct {
	testing.TB
	said []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func TestForbid(t *testing.T) {
	Forbid(t, root+"/proto-schemas/subject", Std, root+"/proto-schemas/...")
	Forbid(t, root+"/proto-schemas/id", Std)

	r := &recorder{TB: t}
	Forbid(r, root+"/internal/strictjson", Std, root+"/proto-schemas/id")
	all := strings.Join(r.said, "\n")
	require.Contains(t, all, "must not import "+root+"/proto-schemas/fault")
	require.Contains(t, all, "must not import github.com/go-json-experiment/json/jsontext")
	require.Contains(t, all, root+"/internal/strictjson -> github.com/go-json-experiment/json -> ", "indirect imports, with the way")
	require.NotContains(t, all, "must not import unicode/utf8")
}

func TestDenyTellsTheReason(t *testing.T) {
	Deny(t, root+"/proto-schemas/id", map[string]string{"net/...": "no network", "time": "no clock"})

	r := &recorder{TB: t}
	Deny(r, root+"/internal/strictjson", map[string]string{
		"sync":                                   "no locks here",
		"github.com/go-json-experiment/json/...": "not this one",
		"net/...":                                "no network",
	})
	all := strings.Join(r.said, "\n")
	require.Contains(t, all, "must not import sync: no locks here\n\tway: "+root+"/internal/strictjson -> sync")
	require.Contains(t, all, "json/jsontext: not this one")
	require.NotContains(t, all, "no network")
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"a/b", "a/b", true},
		{"a/b", "a/b/c", false},
		{"a/b/...", "a/b", true},
		{"a/b/...", "a/b/c/d", true},
		{"a/b/...", "a/bc", false},
		{"a", "b", false},
	} {
		require.Equal(t, c.want, matches(c.pattern, c.path), c)
	}
}

func TestAnUnknownPackageIsNoSuccess(t *testing.T) {
	for _, pkg := range []string{root + "/no/such/package", "./deptest", "..."} {
		_, err := list(t.Context(), pkg)
		require.Error(t, err, pkg)
	}
}

// The runtime knows nothing of what is built on it, and this module's small
// packages know nothing of the bus.
func TestLayers(t *testing.T) {
	bus := map[string]string{
		"github.com/nats-io/...": "this package is below the bus",
		root + "/internal/bus":   "this package is below the bus",
		root + "/gateway/...":    "the runtime knows nothing above it",
		root + "/services/...":   "the runtime knows nothing above it",
		root + "/cmd/...":        "the runtime knows nothing above it",
	}
	for _, pkg := range []string{"auth", "lifecycle", "telemetry", "strictjson"} {
		Deny(t, root+"/internal/"+pkg, bus)
		Deny(t, root+"/internal/"+pkg, map[string]string{"testing": "a program does not link its tests"})
	}
}
