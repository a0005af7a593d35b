package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A zero that stands for another value tells a reader nothing.
func TestTheDefaultColumnShowsWhatHolds(t *testing.T) {
	text := page()
	for line := range strings.SplitSeq(text, "\n") {
		if regexp.MustCompile("\\| `0s?` \\|").MatchString(line) {
			require.NotRegexp(t, `(?i)\b(0|empty) = `, line)
		}
	}
	for _, row := range []string{
		"| `ping_interval` | `WAGGLE_GATEWAY_PING_INTERVAL` | 25 s |",
		"| `read_limit` | `WAGGLE_GATEWAY_READ_LIMIT` | 256 KiB |",
		"| `tokens` | `WAGGLE_BUDGET_TOKENS` | no limit |",
		"| `shutdown` | `WAGGLE_SHUTDOWN` | `25s` |",
	} {
		require.Contains(t, text, "\n"+row)
	}
}
