package waggle

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func TestAnAnswerIsMadeOfItsPieces(t *testing.T) {
	t.Parallel()
	plan := event.Part{Stage: event.StagePlanning}
	var a answering
	for _, step := range []struct {
		kind event.Type
		data any
		text string
	}{
		{event.MessageDelta, event.MessageDeltaData{MessageID: "p", Text: "1. read", Part: plan}, ""},
		{event.MessageCompleted, event.MessageCompletedData{MessageID: "p", Content: "1. read", Part: plan}, ""},
		{event.MessageDelta, event.MessageDeltaData{MessageID: "a", Text: "buy "}, "buy "},
		{event.MessageDelta, event.MessageDeltaData{MessageID: "a", Text: "mi"}, "buy mi"},
		{event.MessageDiscarded, event.MessageDiscardedData{MessageID: "b"}, "buy mi"},
		{event.MessageDiscarded, event.MessageDiscardedData{MessageID: "a"}, ""},
		{event.MessageDelta, event.MessageDeltaData{MessageID: "b", Text: "milk"}, "milk"},
		{event.MessageCompleted, event.MessageCompletedData{MessageID: "b"}, "milk"},
		{event.ToolCalled, event.ToolCalledData{}, "milk"},
		{event.MessageCompleted, event.MessageCompletedData{MessageID: "c", Content: "buy milk"}, "buy milk"},
		{event.RunCompleted, event.RunCompletedData{Content: "Buy milk."}, "Buy milk."},
	} {
		data, err := json.Marshal(step.data)
		require.NoError(t, err)
		require.NoError(t, a.take(event.Event{Type: step.kind, Data: data}))
		require.Equal(t, step.text, a.text, step.kind)
	}
	require.Error(t, a.take(event.Event{Type: event.MessageDelta, Data: json.RawMessage(`"x"`)}))
}
