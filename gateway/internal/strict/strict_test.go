package strict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCut(t *testing.T) {
	for in, want := range map[string]string{"": "", "ab": "ab", "abc": "abc", "abcd": "abc…", "规划完成": "规划完…", "规划完": "规划完"} {
		require.Equal(t, want, Cut(in, 3))
	}
}

// TestSample: what is given back is JSON, and short.
func TestSample(t *testing.T) {
	for in, want := range map[string]string{
		`7`: `7`, ` "x" `: `"x"`, `{`: `"{"`, `["a"]`: `["a"]`,
		`"0123456789012345678901234567890123456789x"`: `"0123456789012345678901234567890123456789…"`,
		`[0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]`: `"[0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9…"`,
	} {
		require.Equal(t, want, string(Sample([]byte(in))))
	}
}
