package upstream

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every whole event is passed on, and no part of one, however the stream is cut and arrives.
func TestEventsAreWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		newline := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "newline")
		var stream strings.Builder
		var ends []int
		want := rapid.SliceOf(rapid.StringMatching(`[a-z{}\[\]]{1,5}`)).Draw(t, "events")
		for _, data := range want {
			stream.WriteString("data: " + data + newline + newline)
			ends = append(ends, stream.Len()+1-len(newline)) // a carriage return ends a line, too
		}
		cut := rapid.IntRange(0, stream.Len()).Draw(t, "cut")
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		r := strings.NewReader(stream.String()[:cut])
		var got []string
		read := events(r, func(e Event) (bool, error) {
			got = append(got, string(e.Data))
			return false, nil
		})
		require.NoError(t, read)
		require.Equal(t, append([]string(nil), want[:whole]...), got)

		got = nil
		slow := iotest.OneByteReader(strings.NewReader(stream.String()[:cut]))
		require.NoError(t, events(slow, func(e Event) (bool, error) {
			got = append(got, string(e.Data))
			return false, nil
		}))
		require.Equal(t, append([]string(nil), want[:whole]...), got)
	})
}

func TestEventsEndWithTheirReader(t *testing.T) {
	t.Parallel()
	n := 0
	require.NoError(t, events(strings.NewReader("data: 1\n\ndata: 2\n\n"), func(Event) (bool, error) { n++; return true, nil }))
	require.Equal(t, 1, n)
	require.ErrorIs(t, events(iotest.ErrReader(errSilent), nil), errSilent)
	require.ErrorIs(t, events(strings.NewReader("data: 1\n\n"), func(Event) (bool, error) { return false, errTooLong }), errTooLong)
}
