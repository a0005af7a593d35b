package myagent

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// TestTheNeutralForm: a type without a frame of its own has one frame with the text of its
// narration, and an unknown type has one without data.
func TestTheNeutralForm(t *testing.T) {
	c, err := New(Settings{}).Codec(nil)
	require.NoError(t, err)
	for _, info := range slices.Concat(event.Catalogue, event.DirectMessages) {
		e := event.Event{Type: info.Type, Sequence: 7, Time: dialecttest.Now, Data: dialecttest.Filled(t, info, "Mark 7f3", `{"text":"Mark 7f3"}`, 1)}
		n, err := narrate.Of(e)
		if err != nil {
			continue // of another log, which the suite reads
		}
		f, err := neutral(c, e)
		require.NoError(t, err, "%s", info.Type)
		require.Contains(t, wire.Outbound, f.Event, "%s", info.Type)
		shown := f.ShowContent
		if n.Kind == narrate.Message {
			shown, _ = f.Content.(string)
		}
		require.Contains(t, shown, n.Whole(), "%s", info.Type)
	}
	f, err := neutral(c, event.Event{Type: "something.new"})
	require.NoError(t, err)
	require.Equal(t, []string{wire.SystemNotice, c.words.other}, []string{f.Event, f.ShowContent})
}
