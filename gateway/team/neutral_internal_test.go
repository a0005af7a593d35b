package team

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
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
		raw, err := json.Marshal(data(got))
		require.NoError(t, err)
		first, _, _ := strings.Cut(n.Whole(), "\n")
		require.Contains(t, string(raw), first, "%s", info.Type)
	}
}

// data returns the payloads of messages.
func data(list []message) (all []payload) {
	for _, m := range list {
		all = append(all, m.data)
	}
	return all
}

// TestExpiredQuestionsKeepTheirName: the message that ends a question names it as the one that asked it.
func TestExpiredQuestionsKeepTheirName(t *testing.T) {
	for scope, want := range map[string]string{"": toolPlan, event.ScopeAgent: toolQuestion, event.ScopeBudget: toolBudget} {
		got := inputExpired(&scene{}, event.InputExpiredData{InputID: "q", RunID: "r", Scope: scope})
		require.Len(t, got, 1)
		require.Equal(t, want, got[0].data.(*wire.DecisionPayload).ToolName, "scope %q", scope)
	}
}
