//go:build nightly

package myagent_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func TestEncodingADeltaIsCheap(t *testing.T) {
	data, err := json.Marshal(event.MessageDeltaData{MessageID: "m1", RunID: "run_1", Attempt: 1, Text: "Slide 1: Introduction"})
	require.NoError(t, err)
	e := event.Event{Type: event.MessageDelta, Subject: dialecttest.Session.Name(), Sequence: 9, Stream: 99, Time: dialecttest.Now, Data: data}
	c := dense(t, "")
	n := testing.AllocsPerRun(100, func() { c.Encode(e) })
	require.LessOrEqual(t, n, float64(maxAllocs))
}
