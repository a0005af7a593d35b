package backup

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

// TestStreamsThatRemoveMessagesMayHaveFewer: only a stream whose messages stay has to have as many as its backup.
func TestStreamsThatRemoveMessagesMayHaveFewer(t *testing.T) {
	for cfg, kept := range map[string]bool{
		`{}`: true, `{"max_age":0}`: true, `{"max_age":1000}`: false, `{"allow_msg_schedules":true}`: false, `{"allow_msg_ttl":true}`: false,
	} {
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(cfg), &fields))
		require.Equal(t, kept, Stream{}.kept(fields), cfg)
	}
}

// TestAPartWaitsForItsTaker: a part is sent again until a server takes it.
func TestAPartWaitsForItsTaker(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	to := c.NATS().NewInbox()
	_, err := c.NATS().Request(to, nil, bustest.MaxWait)
	require.ErrorIs(t, err, nats.ErrNoResponders)
	time.AfterFunc(3*unknownPause, func() {
		_, err := c.NATS().Subscribe(to, func(m *nats.Msg) { assert.NoError(t, m.Respond(m.Data)) })
		assert.NoError(t, err)
	})
	m, err := request(t.Context(), c, to, []byte("part"))
	require.NoError(t, err)
	require.Equal(t, "part", string(m.Data))
}
