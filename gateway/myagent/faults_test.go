package myagent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// TestEveryFaultHasAVerdict: the table is complete, and one code means one thing.
func TestEveryFaultHasAVerdict(t *testing.T) {
	codes := map[string]fault.Code{}
	for _, e := range fault.Catalogue {
		v, ok := verdicts[e.Code]
		require.True(t, ok, "%s has no verdict", e.Code)
		require.NotEmpty(t, v.event+v.code+v.recovery)
		if other, taken := codes[v.code]; taken {
			require.Equal(t, "SESSION_EXPIRED", v.code, "%s and %s have one code", e.Code, other)
		}
		codes[v.code] = e.Code
	}
	require.Len(t, verdicts, len(fault.Catalogue))
}

func TestWhole(t *testing.T) {
	for raw, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-7": -7, "3.0": 3, "30e-1": 3, "0.3E1": 3, "1e2": 100, "5e+1": 50, "100.00": 100, "0e9999999": 0,
		"999999999999999999": 999999999999999999,
	} {
		got, ok := whole([]byte(raw))
		require.True(t, ok, raw)
		require.Equal(t, want, got, raw)
	}
	for _, raw := range []string{"", "x", `"1"`, "0.1", "1e-1", "1e19", "1e999999999999999999999", "1234567890123456789", "[1]", "null", "true", "-"} {
		_, ok := whole([]byte(raw))
		require.False(t, ok, raw)
	}
}
