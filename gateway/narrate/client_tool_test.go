package narrate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestACallOfTheClientIsNoQuestion: only the client that offers the tool has an answer, and everybody sees what it is asked.
func TestACallOfTheClientIsNoQuestion(t *testing.T) {
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("one")}
	for _, arguments := range []string{`{"exact":true}`, `{"long":"` + strings.Repeat("ü", 600) + `"}`} {
		e, err := event.New(log, "e1", "test", time.Unix(0, 0), event.InputRequestedData{
			InputID: "q", RunID: "r", Scope: event.ScopeClientTool, CallID: "c", Tool: "where_am_i", Arguments: json.RawMessage(arguments),
		})
		require.NoError(t, err)
		n, err := narrate.Of(e)
		require.NoError(t, err)
		require.Equal(t, narrate.Note, n.Kind)
		require.Contains(t, n.Text, "where_am_i")
		require.Contains(t, n.Text, arguments[:8])
		require.Less(t, len(n.Text), 700)
	}
}
