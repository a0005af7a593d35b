//go:build nightly

package entry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGateAllocationsOfAMemo(t *testing.T) {
	e := stored(t, 1, delta("m", "x"))
	e.Memo("0", func() any { return "value" })
	require.Zero(t, testing.AllocsPerRun(100, func() { e.Memo("0", nil) }))
}

func TestGateAllocationsOfAnEntry(t *testing.T) {
	log, raw := ordinaryEntry(t)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := Decode(log, 7, 9, raw); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, allocs, 4.0, "the entry, its strings, and the two that are optional")
}
