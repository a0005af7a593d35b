package asp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// TestTheNeutralForm: a type without a frame of its own has frames with the text of its narration, unless that is a
// detail.
func TestTheNeutralForm(t *testing.T) {
	for _, info := range event.Catalogue {
		e := event.Event{
			Type: info.Type, Subject: dialecttest.Session.Name(), Sequence: 7, Time: dialecttest.Now,
			Data: dialecttest.Filled(t, info, "Mark 7f3", `{"text":"Mark 7f3"}`, 1),
		}
		n, err := narrate.Of(e)
		if err != nil {
			continue // of another log, which the suite reads
		}
		got, err := neutral(e)
		require.NoError(t, err, "%s", info.Type)
		if n.Kind == narrate.Silent || n.Detail {
			require.Empty(t, got, "%s", info.Type)
			continue
		}
		raw, err := json.Marshal(got)
		require.NoError(t, err)
		first, _, _ := strings.Cut(n.Whole(), "\n")
		require.Contains(t, string(raw), first, "%s", info.Type)
	}
}
