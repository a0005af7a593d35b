package team

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/dialect/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// TestTheNeutralForm: a type without a message of its own has one with the text of its narration, unless that is a
// detail.
func TestTheNeutralForm(t *testing.T) {
	for _, info := range event.Catalogue {
		at := &scene{Event: event.Event{Type: info.Type, Data: dialecttest.Filled(t, info, "Mark 7f3", `{"text":"Mark 7f3"}`, 1)}}
		n, err := narrate.Of(at.Event)
		if err != nil {
			continue // of another log, which the suite reads
		}
		got, err := inherited(at)
		require.NoError(t, err, "%s", info.Type)
		if n.Kind == narrate.Silent || n.Detail {
			require.Empty(t, got, "%s", info.Type)
			continue
		}
		require.NotEmpty(t, got, "%s", info.Type)
		raw, err := json.Marshal(got[0].data)
		require.NoError(t, err)
		first, _, _ := strings.Cut(n.Text, "\n")
		require.Contains(t, string(raw), first, "%s", info.Type)
	}
}
