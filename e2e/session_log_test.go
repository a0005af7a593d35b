package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// history returns the events of a session as its log holds them, and requires that
// they are dense.
func history(t *testing.T, p place, session string) []event.Event {
	t.Helper()
	var out []event.Event
	next, more := "0", true
	for more {
		text := over(t, http.MethodGet, p.url(fmt.Sprintf("/api/v1/sessions/%s/events?limit=1000&after=%s", session, next)), p.key)
		body, ok := strings.CutPrefix(text, "200 ")
		require.True(t, ok, text)
		var page struct {
			Events []event.Event
			Next   string
			More   bool
		}
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		out = append(out, page.Events...)
		next, more = page.Next, page.More
	}
	for i, e := range out {
		require.EqualValues(t, i+1, e.Sequence)
	}
	return out
}

// all returns the data of the events of a type.
func all[T event.Data](t *testing.T, events []event.Event) []T {
	t.Helper()
	var zero T
	var out []T
	for _, e := range events {
		if e.Type == zero.EventType() {
			d, err := event.As[T](e)
			require.NoError(t, err)
			out = append(out, d)
		}
	}
	return out
}

// terminals returns how many terminal events each accepted message has, by run.
func terminals(t *testing.T, events []event.Event) map[string]int {
	t.Helper()
	ends := map[string]int{}
	for _, m := range all[event.MessageReceivedData](t, events) {
		ends[m.RunID] = 0
	}
	for _, e := range events {
		if e.Type.Terminal() {
			var d struct {
				RunID string `json:"run_id"`
			}
			require.NoError(t, e.Decode(&d))
			ends[d.RunID]++
		}
	}
	return ends
}
