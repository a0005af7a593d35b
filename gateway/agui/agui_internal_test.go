package agui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// TestAPageOfMessagesIsBoundedInBytes: it has the newest ones that fit, one at least, and the rest is on the pages before it.
func TestAPageOfMessagesIsBoundedInBytes(t *testing.T) {
	message := func(id string, n int) wire.Message {
		content, err := json.Marshal(strings.Repeat("<", n)) // six bytes each
		require.NoError(t, err)
		return wire.Message{ID: id, Role: wire.RoleUser, Content: content}
	}
	whole := wire.History{Messages: []wire.Message{message("a", 10), message("b", 10)}, Before: "older"}
	page, err := fitting(whole)
	require.NoError(t, err)
	require.Equal(t, whole, page)
	var many wire.History
	for i := range 20 {
		many.Messages = append(many.Messages, message(fmt.Sprint(i), 100_000))
	}
	page, err = fitting(many)
	require.NoError(t, err)
	b, err := json.Marshal(page)
	require.NoError(t, err)
	require.Less(t, len(b), maxBytes+1000)
	require.Len(t, page.Messages, 6)
	require.Equal(t, "14", page.Before)
	require.Equal(t, page.Before, page.Messages[0].ID)
	page, err = fitting(wire.History{Messages: []wire.Message{message("a", 1), message("b", 1_000_000)}})
	require.NoError(t, err)
	require.Len(t, page.Messages, 1)
	require.Equal(t, "b", page.Before)
}
