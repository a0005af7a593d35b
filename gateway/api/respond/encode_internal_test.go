package respond

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
)

// TestPagesOfEventsAreWhole: a page that is joined from its events says the same as one that json.Marshal makes.
func TestPagesOfEventsAreWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := []json.RawMessage{}
		for _, text := range rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "texts") {
			b, err := json.Marshal(map[string]string{"text": text})
			require.NoError(t, err)
			events = append(events, b)
		}
		next, more := rapid.String().Draw(t, "next"), rapid.Bool().Draw(t, "more")
		for _, page := range []any{
			wire.EventPage{Events: events, Next: next, More: more},
			wire.LogPage{Events: events, Next: next, More: more, Expired: rapid.Uint64().Draw(t, "expired")},
			map[string]any{"events": events},
		} {
			want, err := json.Marshal(page)
			require.NoError(t, err)
			pieces, err := encoded(page)
			require.NoError(t, err)
			got := bytes.Join(pieces, nil)
			require.Len(t, got, sizeOf(pieces))
			require.JSONEq(t, string(want), string(got))
			require.Equal(t, byte('\n'), got[len(got)-1])
		}
	})
}

func BenchmarkPageOfEvents(b *testing.B) {
	page := wire.EventPage{Events: []json.RawMessage{}}
	for range 1000 {
		event, err := json.Marshal(map[string]string{"text": string(make([]byte, 600))})
		require.NoError(b, err)
		page.Events = append(page.Events, event)
	}
	for name, encode := range map[string]func(any) error{
		"pieces":     func(v any) error { _, err := encoded(v); return err },
		"marshalled": func(v any) error { _, err := json.Marshal(v); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, encode(page))
			}
		})
	}
}
