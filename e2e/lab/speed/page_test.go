package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestThePageHasTheFiguresOfAllRounds reads what "go test" prints.
func TestThePageHasTheFiguresOfAllRounds(t *testing.T) {
	f := figures{}
	for n := range 3 {
		printed := map[key]bool{}
		for _, r := range rows {
			for i, s := range []side{r.ours, r.bare} {
				if k := (key{r.pkg, s}); s.benchmark != "" && !printed[k] {
					printed[k] = true
					f.read(fmt.Sprintf("goos: linux\nBenchmark%s-2 \t 5\t 17.5 ns/op\t %d %s\nPASS\n", s.benchmark, (n+1)*(10-6*i), s.unit), r.pkg)
				}
			}
		}
	}
	text, err := f.page(3)
	require.NoError(t, err)
	require.Contains(t, text, "- Command: `make speed ROUNDS=3`\n")
	require.Contains(t, text, "| a socket, until it is greeted and shows a log | µs of CPU | 20.0 (10.0 to 30.0) | 8.00 (4.00 to 12.0) | 2.50 (2.50 to 2.50) | `gateway`: `BenchmarkConnect` |\n")
	_, err = f.page(4)
	require.ErrorIs(t, err, errMissing)
}

// FuzzRead reads anything, and finds the figures of a benchmark behind it.
func FuzzRead(f *testing.F) {
	f.Add("goos: linux\nBenchmarkRun-2 \t 1\t 5.5 ms\nPASS\n")
	f.Add("BenchmarkRun-2 1 2\nBenchmarkRun-2 1 x y 3 z 4\n--- FAIL: BenchmarkRun")
	f.Fuzz(func(t *testing.T, before string) {
		all := figures{}
		all.read(before+"\nBenchmarkLast/part-2-16 \t 7\t 17.5 ns/op\t 0.25 µs/last\nPASS\n", "gateway")
		got := all[key{"gateway", side{"Last/part-2", "µs/last"}}]
		require.NotEmpty(t, got)
		require.InDelta(t, 0.25, got[len(got)-1], 0)
	})
}

func TestASpreadHoldsItsFigures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Float64Range(1, 1e6), 1, 9).Draw(t, "all")
		var median, least, most float64
		_, err := fmt.Sscanf(spread(all), "%f (%f to %f)", &median, &least, &most)
		require.NoError(t, err)
		require.LessOrEqual(t, least, median)
		require.LessOrEqual(t, median, most)
	})
}

// TestThePatternsAreThoseOfTheRows names each benchmark of a package once.
func TestThePatternsAreThoseOfTheRows(t *testing.T) {
	require.Equal(t, "^(BenchmarkRun|BenchmarkFirstToken)$", pattern("cmd/waggle"))
	require.Equal(t, []string{"gateway", "cmd/waggle", "internal/eventlog"}, packages())
}
