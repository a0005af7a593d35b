//go:build nightly

package chaos_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/chaos"
	"github.com/waggle-dev/waggle/e2e/chaos/fault"
	"github.com/waggle-dev/waggle/e2e/chaos/report"
	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/chaos/verify"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

var (
	matrix = flag.Bool("matrix", false, "all faults instead of one of each kind")
	only   = flag.String("faults", "", "only faults whose names match this")
)

func TestMain(m *testing.M) {
	if code, done := site.Isolate(); done {
		os.Exit(code)
	}
	flag.Parse()
	code := process.Audit(m.Run())
	if err := site.CleanUp(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestChaosSmoke: clients of all dialects and two tenants are at work while parts of the
// installation are broken, one fault after the other. All promises hold.
func TestChaosSmoke(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("WAGGLE_CHAOS_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seed = given
	}
	t.Logf("seed %d", seed)
	faults := fault.Smoke()
	if *matrix || *only != "" {
		faults = fault.Matrix()
	}
	like, err := regexp.Compile(*only)
	require.NoError(t, err)
	faults = slices.DeleteFunc(faults, func(f fault.Fault) bool { return !like.MatchString(f.Name) })
	require.NotEmpty(t, faults)
	clocks := slices.ContainsFunc(faults, func(f fault.Fault) bool { return f.Clock })
	fleet, record := site.New(t, site.Options{Clocks: clocks}), verify.NewRecord()
	var rows []report.Row
	for _, f := range faults {
		t.Run(strings.ReplaceAll(f.Name, " ", "_"), func(t *testing.T) {
			row := chaos.Round(t, fleet, f, rand.New(rand.NewPCG(seed, nameOf(f))), record)
			rows = append(rows, row)
			if row.Verdict != nil && !row.Verdict.OK() {
				t.Errorf("%s (seed %d):\n%s", f.Name, seed, strings.Join(row.Verdict.Notes(), "\n"))
			}
		})
	}
	var b strings.Builder
	report.Table(&b, seed, rows)
	t.Logf("\n%s", b.String())
}

// nameOf makes a number of a fault's name, so that it chooses the same whatever faults
// come before it.
func nameOf(f fault.Fault) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.Name)) // never fails
	return h.Sum64()
}

// TestACutThatDropsNothingIsNone: counters are the evidence of a broken network, and a
// network without packets was not broken.
func TestACutThatDropsNothingIsNone(t *testing.T) {
	net := site.NewNetwork(t)
	if own, why := net.Isolated(); !own {
		t.Logf("not possible here: %s", why)
		return
	}
	place := net.Place("a")
	require.NoError(t, place.Cut(site.BothWays, net.Hub()))
	packets, err := place.Heal()
	require.NoError(t, err)
	require.Zero(t, packets)
	require.True(t, place.Reached(t.Context()))
	for _, way := range []string{site.BothWays, site.Inbound} {
		require.NoError(t, place.Cut(way, net.Hub()))
		require.False(t, place.Reached(t.Context()), way)
		packets, err = place.Heal()
		require.NoError(t, err)
		require.Positive(t, packets)
		require.True(t, place.Reached(t.Context()))
	}
}
