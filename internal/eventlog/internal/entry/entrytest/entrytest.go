// Package entrytest makes and folds events of texts for tests of logs.
package entrytest

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Delta returns a part of a message's text.
func Delta(message, text string) event.MessageDeltaData {
	return event.MessageDeltaData{MessageID: message, RunID: "r", ExecutionID: "x", Attempt: 1, Text: text}
}

// Thought returns the delta as a part of the message's reasoning.
func Thought(d event.MessageDeltaData) event.ReasoningDeltaData {
	return event.ReasoningDeltaData{MessageID: d.MessageID, RunID: d.RunID, ExecutionID: d.ExecutionID, Attempt: d.Attempt, Text: d.Text, Part: d.Part}
}

// Texts folds a log the way a viewer does: the text and the reasoning of each message and attempt, and the place of each other event. log
// yields the events with their stored form.
func Texts(t require.TestingT, log iter.Seq2[event.Event, []byte]) map[string]string {
	out := make(map[string]string)
	at := uint64(0)
	for e, raw := range log {
		require.Equal(t, at+1, e.From, "dense")
		require.GreaterOrEqual(t, e.Sequence, e.From)
		at = e.Sequence
		if e.Type != event.MessageDelta && e.Type != event.ReasoningDelta {
			require.Equal(t, e.From, e.Sequence, "only deltas are merged")
			out[fmt.Sprint("event ", e.Sequence)] = e.ID
			continue
		}
		d, err := event.As[event.MessageDeltaData](e)
		require.NoError(t, err)
		var viaRaw event.Event
		require.NoError(t, json.Unmarshal(raw, &viaRaw))
		viaRaw.Stream, viaRaw.From = e.Stream, e.From // these are the reader's, and in no JSON
		require.Equal(t, e, viaRaw, "Raw is the JSON of the event")
		out[fmt.Sprint(e.Type, " ", d.MessageID, "#", d.Attempt)] += d.Text
	}
	out["end"] = fmt.Sprint(at)
	return out
}
