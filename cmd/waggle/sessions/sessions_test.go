package sessions

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTables(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	require.NoError(t, WriteList(&b, json.RawMessage(`{"sessions":[
		{"session_id":"old","last_seq":7,"last_event":"session.closed","updated_at":"2025-12-01T00:00:00Z","status":"closed","state":"failed"},
		{"session_id":"new\u001b[31m","last_seq":120,"last_event":"run.completed","updated_at":"2026-01-02T11:58:30Z","question":"what is\u001b[2J up?","status":"open","state":"partly"}]}`), now))
	require.Equal(t, "SESSION  STATE           EVENTS  AGE      QUESTION\nnew      partly          120     1 min    what is up?\nold      closed, failed  7       32 days\n", b.String())
	b.Reset()
	require.NoError(t, WriteList(&b, json.RawMessage(`{"sessions":[]}`), now))
	require.Equal(t, "no sessions\n", b.String())
	b.Reset()
	require.NoError(t, WriteDetail(&b, json.RawMessage(`{"session_id":"s","status":"open","dialect":"myagent","created_at":"2026-01-02T00:00:00Z",
		"updated_at":"2026-01-02T11:59:58Z","last_seq":9,"runs":[{"status":"completed","outcome":"partial_success","content":"q\nq","answer":"a"}]}`), now))
	require.Contains(t, b.String(), "updated  2 s ago\n")
	require.Contains(t, b.String(), "1    partly  q q       a\n")
	require.Error(t, WriteDetail(&b, json.RawMessage(`[]`), now))
}
