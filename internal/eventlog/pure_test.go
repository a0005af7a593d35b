package eventlog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func TestClipTextKeepsRunes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		limit := rapid.IntRange(4, 40).Draw(t, "limit")
		n := clipText(text, limit)
		require.LessOrEqual(t, n, limit)
		require.True(t, n > 0 || text == "")
		require.Equal(t, text, string([]rune(text[:n]))+string([]rune(text[n:])), "no rune is cut")
	})
	require.Equal(t, 8, clipText(strings.Repeat("\x80", 20), 8), "what is not text is cut anywhere")
}

// A server that shuts down has lost its streams: readers then wait for another.
func TestAStreamThatIsMissingMayComeBack(t *testing.T) {
	require.False(t, permanent(&apiError{Code: 404, ErrCode: codeNoStream}))
	require.True(t, permanent(&apiError{Code: 404, ErrCode: 10014}))
	require.False(t, permanent(&apiError{Code: 503, ErrCode: 10039}))
}

// TestOnlyWhatTheLeaderKnewOf: entries beyond the leader's end are left out, whichever end that is.
func TestOnlyWhatTheLeaderKnewOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first, n := rapid.Uint64Range(1, 50).Draw(t, "first"), rapid.IntRange(0, 50).Draw(t, "entries")
		end := rapid.Uint64Range(0, 120).Draw(t, "end")
		var page []*Entry
		for i := range uint64(n) {
			page = append(page, &Entry{Event: event.Event{Sequence: first + i}})
		}
		got := upTo(page, Cursor{Seq: end})
		require.Equal(t, page[:len(got)], got)
		for _, e := range got {
			require.LessOrEqual(t, e.Sequence, end)
		}
		if len(got) < len(page) {
			require.Greater(t, page[len(got)].Sequence, end)
		}
	})
}
