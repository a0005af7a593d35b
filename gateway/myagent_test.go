package gateway_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// framed is a frame of the MyAgent protocol, as far as the gateway has a part in it.
type framed struct {
	Event     string          `json:"event"`
	SessionID string          `json:"session_id"`
	Seq       uint64          `json:"seq"`
	EventID   string          `json:"event_id"`
	Content   json.RawMessage `json:"content"`

	ShowContent string `json:"show_content"`
	Metadata    struct {
		ConnectionID string `json:"connection_id"`
		Action       string `json:"action"`
		ErrorCode    string `json:"error_code"`
		Replayed     int    `json:"replayed"`
		LastSeq      uint64 `json:"last_seq"`
		LastEventID  string `json:"last_event_id"`
		MergedFrom   uint64 `json:"merged_from"`
		First        uint64 `json:"first_available_seq"`
		Seq          uint64 `json:"seq"`
		ErrorType    string `json:"error_type"`
		Operation    string `json:"operation"`
		MessageID    string `json:"message_id"`
		HashMatched  *bool  `json:"state_hash_matched"`
		StateHash    string `json:"state_hash"`

		SessionState json.RawMessage `json:"session_state"`
	} `json:"metadata"`
}

// framed returns the next frame, which has to be of the event.
func (c *client) framed(kind string) framed {
	c.t.Helper()
	b, err := c.text()
	require.NoError(c.t, err, "instead of %s", kind)
	var f framed
	require.NoError(c.t, json.Unmarshal(b, &f), "%s", b)
	require.Equal(c.t, kind, f.Event, "%s", b)
	return f
}

// asks sends a frame of the protocol.
func (c *client) asks(kind, session, rest string) {
	c.t.Helper()
	c.write(text(fmt.Sprintf(`{"event":%q,"session_id":%q,"timestamp":"2025-01-01T00:00:00Z"%s}`, kind, session, rest)))
}

// withMyAgent starts a gateway that serves the MyAgent protocol.
func withMyAgent(t *testing.T, opts ...option) (*rig, *sessionService) {
	t.Helper()
	r := prepare(t, sharedBus(t))
	r.srv = r.server(append([]option{withSessions}, opts...)...)
	o := startSessionService(r)
	r.serve()
	return r, o
}
