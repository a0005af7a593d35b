package bus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

// rolled are the streams whose form needs roll-ups.
func rolled(name string) bool {
	return strings.HasPrefix(name, "TIMER") || strings.HasPrefix(name, "KV_quota")
}

// In a stream that allows roll-ups, one message on one subject removes the messages of all others. No stream that
// several roles write to allows them.
func TestAMessageRemovesNoOthers(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	tried := 0
	for info := range c.JS().ListStreams(patience(t)).Info() {
		if rolled(info.Config.Name) {
			continue
		}
		tried++
		name := strings.TrimSuffix(info.Config.Subjects[0], ">")
		_, err := c.JS().Publish(patience(t), strings.ReplaceAll(name, "*", "x")+"kept", []byte("1"))
		require.NoError(t, err, name)
		for _, rollup := range []string{"all", "sub"} {
			m := nats.NewMsg(strings.ReplaceAll(name, "*", "x") + "attack")
			m.Header.Set("Nats-Rollup", rollup)
			_, err = c.JS().PublishMsg(patience(t), m)
			require.ErrorContains(t, err, "rollup not permitted", name)
		}
		require.EqualValues(t, 1, stream(t, c, info.Config.Name).State.Msgs, name)
	}
	require.Greater(t, tried, 20)
}

// An installation of an earlier version allowed roll-ups. Bootstrap takes them back and keeps the messages.
func TestBootstrapTakesRollupsBack(t *testing.T) {
	t.Parallel()
	c := bare(t, 1)[0]
	for _, s := range []jetstream.StreamConfig{
		{Name: "EVT_03", Subjects: []string{"evt.03.>"}, AllowRollup: true, DenyDelete: true, AllowDirect: true},
		{Name: "OBJ_payloads", Subjects: []string{"$O.payloads.C.>", "$O.payloads.M.>"}, AllowRollup: true, Discard: jetstream.DiscardNew},
	} {
		_, err := c.JS().CreateStream(patience(t), s)
		require.NoError(t, err)
	}
	top := bus.DefaultTopology()
	kv, err := c.JS().CreateKeyValue(patience(t), jetstream.KeyValueConfig{
		Bucket: "directory", TTL: top.LeaseTTL, LimitMarkerTTL: time.Minute, MaxBytes: 64 << 20,
	})
	require.NoError(t, err)
	_, err = kv.PutString(patience(t), "service.session.a", "{}")
	require.NoError(t, err)
	_, err = c.JS().Publish(patience(t), "evt.03.default.session.x", nil)
	require.NoError(t, err)
	require.NoError(t, bus.Bootstrap(patience(t), c, top))
	require.Empty(t, drift(t, c))
	for _, name := range []string{"EVT_03", "KV_directory"} {
		info := stream(t, c, name)
		require.EqualValues(t, 1, info.State.Msgs)
		require.False(t, info.Config.AllowRollup)
	}
}
