package fold

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// Two folds of a log keep their equal messages once, and neither changes.
func TestAdopt(t *testing.T) {
	folded := func(from, to int) *Thread {
		h := New(V1)
		for i := from; i < to; i++ {
			h.history.add(wire.Message{ID: fmt.Sprint(i), Role: wire.RoleAssistant, Content: fmt.Appendf(nil, "%q", fmt.Sprint("text ", i))}, i == to-1)
		}
		return h
	}
	kept, mine := folded(0, 20), folded(5, 25)
	kept.history.call("7", "", wire.ToolCall{ID: "later"})
	before := mine.Snapshot()
	mine.Adopt(kept)
	require.Equal(t, before, mine.Snapshot())
	for i, m := range mine.history.list {
		of := kept.history.index(m.ID)
		switch n := i + 5; {
		case n == 7, n == 19, n >= 20: // it is another one there, or open there, or is not there
			require.True(t, of < 0 || kept.history.list[of] != m, m.ID)
		default:
			require.Same(t, kept.history.list[of], m)
		}
	}
}
