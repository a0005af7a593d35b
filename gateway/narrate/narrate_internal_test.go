package narrate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// TestEveryTypeHasAnEntry: each type of the catalogue has a neutral form or a reason why
// it says nothing, and the table has no other types.
func TestEveryTypeHasAnEntry(t *testing.T) {
	left := map[event.Type]bool{}
	for kind := range table {
		left[kind] = true
	}
	for _, list := range [][]event.Info{event.Catalogue, event.DirectMessages} {
		for _, info := range list {
			row, ok := table[info.Type]
			require.True(t, ok, "%s: add an entry to the table, or silent with a reason", info.Type)
			require.NotEqual(t, row.tell == nil, row.silent == "", "%s: either a form or a reason", info.Type)
			delete(left, info.Type)
		}
	}
	require.Empty(t, left)
}

// TestTheDataOfAnEntryIsThatOfItsType: an entry that decodes other data than those of its
// type compiles, but says nothing true.
func TestTheDataOfAnEntryIsThatOfItsType(t *testing.T) {
	for _, info := range event.Catalogue {
		data, err := json.Marshal(info.Data)
		require.NoError(t, err)
		_, err = Of(event.Event{Type: info.Type, Data: data})
		if info.Type == event.TeamMemberEvent || info.Type == event.TeamSubTeamEvent {
			require.ErrorIs(t, err, ErrUnreadable)
			continue
		}
		require.NoError(t, err, "%s", info.Type)
	}
}

// TestFailuresHaveACode: a failure without data still has a code and a text.
func TestFailuresHaveACode(t *testing.T) {
	for _, info := range event.Catalogue {
		n, err := Of(event.Event{Type: info.Type, Data: []byte(`{}`)})
		if err != nil || n.Kind != Failure {
			continue
		}
		require.NotEmpty(t, n.Code, "%s", info.Type)
		require.NotEmpty(t, n.Whole(), "%s", info.Type)
	}
}

// TestAnUnknownTypeIsSilent: a newer writer's event gives no error.
func TestAnUnknownTypeIsSilent(t *testing.T) {
	n, err := Of(event.Event{Type: "something.new", Data: []byte(`{`)})
	require.NoError(t, err)
	require.Equal(t, Silent, n.Kind)
}
