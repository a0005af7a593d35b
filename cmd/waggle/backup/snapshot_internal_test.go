package backup

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

// TestAPartWaitsForItsTaker: a part is sent again until a server takes it.
func TestAPartWaitsForItsTaker(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	to := c.NATS().NewInbox()
	_, err := c.NATS().Request(to, nil, bustest.Patience)
	require.ErrorIs(t, err, nats.ErrNoResponders)
	time.AfterFunc(3*unknownPause, func() {
		_, err := c.NATS().Subscribe(to, func(m *nats.Msg) { assert.NoError(t, m.Respond(m.Data)) })
		assert.NoError(t, err)
	})
	m, err := request(t.Context(), c, to, []byte("part"))
	require.NoError(t, err)
	require.Equal(t, "part", string(m.Data))
}
