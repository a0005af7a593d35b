package bus_test

import (
	"fmt"
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
	for info := range c.JS().ListStreams(maxWait(t)).Info() {
		if rolled(info.Config.Name) {
			continue
		}
		tried++
		name := strings.TrimSuffix(info.Config.Subjects[0], ">")
		_, err := c.JS().Publish(maxWait(t), strings.ReplaceAll(name, "*", "x")+"kept", []byte("1"))
		require.NoError(t, err, name)
		for _, rollup := range []string{"all", "sub"} {
			m := nats.NewMsg(strings.ReplaceAll(name, "*", "x") + "attack")
			m.Header.Set("Nats-Rollup", rollup)
			_, err = c.JS().PublishMsg(maxWait(t), m)
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
		_, err := c.JS().CreateStream(maxWait(t), s)
		require.NoError(t, err)
	}
	top := bus.DefaultTopology()
	kv, err := c.JS().CreateKeyValue(maxWait(t), jetstream.KeyValueConfig{
		Bucket: "directory", TTL: top.LeaseTTL, LimitMarkerTTL: time.Minute, MaxBytes: 64 << 20,
	})
	require.NoError(t, err)
	_, err = kv.PutString(maxWait(t), "service.session.a", "{}")
	require.NoError(t, err)
	_, err = c.JS().Publish(maxWait(t), "evt.03.default.session.x", nil)
	require.NoError(t, err)
	require.NoError(t, bus.Bootstrap(maxWait(t), c, top))
	require.Empty(t, drift(t, c))
	for _, name := range []string{"EVT_03", "KV_directory"} {
		info := stream(t, c, name)
		require.EqualValues(t, 1, info.State.Msgs)
		require.False(t, info.Config.AllowRollup)
	}
}

// Earlier versions kept the timers of all services in one stream, and all holdings in one bucket. Bootstrap moves
// them. A timer that was due stays due.
func TestBootstrapMovesWhatOneStreamHeld(t *testing.T) {
	t.Parallel()
	c := bare(t, 1)[0]
	_, err := c.JS().CreateStream(maxWait(t), jetstream.StreamConfig{
		Name: "TIMER", Subjects: []string{"timer.>"}, Retention: jetstream.WorkQueuePolicy, MaxMsgsPerSubject: 1,
		AllowDirect: true, AllowMsgSchedules: true, AllowMsgTTL: true, AllowRollup: true,
	})
	require.NoError(t, err)
	_, err = c.JS().CreateConsumer(maxWait(t), "TIMER", jetstream.ConsumerConfig{
		Durable: "session", FilterSubject: "timer.fire.session.>", AckPolicy: jetstream.AckExplicitPolicy,
	})
	require.NoError(t, err)
	kv, err := c.JS().CreateKeyValue(maxWait(t), jetstream.KeyValueConfig{Bucket: "quota", History: 64, LimitMarkerTTL: time.Hour})
	require.NoError(t, err)
	for _, key := range []string{"default.sessions.p.a", "default.sessions.p.b", "default.tokens.p.c"} {
		for range 2 {
			_, err = kv.PutString(maxWait(t), key, "1")
			require.NoError(t, err)
		}
	}
	require.NoError(t, kv.Purge(maxWait(t), "default.sessions.p.b"))
	later := jetstream.WithScheduleAt(time.Now().Add(time.Hour))
	for _, name := range []string{"session.default.a.expire", "task.default.a.check"} {
		_, err = c.JS().Publish(maxWait(t), "timer.set."+name, nil, later, jetstream.WithScheduleTarget("timer.fire."+name))
		require.NoError(t, err)
	}
	_, err = c.JS().Publish(maxWait(t), "timer.fire.pipeline.default.a.due", nil)
	require.NoError(t, err)

	for range 2 {
		require.NoError(t, bus.Bootstrap(maxWait(t), c, bus.DefaultTopology()))
	}
	require.Empty(t, drift(t, c))
	for name, n := range map[string]uint64{"TIMER_session": 1, "TIMER_task": 1, "TIMER_team": 0, "KV_quota_sessions": 1, "KV_quota_usage": 1} {
		require.Equal(t, n, stream(t, c, name).State.Msgs, name)
	}
	for _, name := range []string{"TIMER", "KV_quota"} {
		_, err = c.JS().Stream(maxWait(t), name)
		require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
	}
	due, err := c.JS().CreateConsumer(maxWait(t), "TIMER_pipeline", jetstream.ConsumerConfig{FilterSubject: "timer.fire.>"})
	require.NoError(t, err)
	m, err := due.Next(jetstream.FetchMaxWait(bustest.MaxWait))
	require.NoError(t, err)
	require.Equal(t, "timer.fire.pipeline.default.a.due", m.Subject())
}

// A schedule fires with the rights of the server: on every subject of its stream, and on no other. So a role reaches
// only its own timers.
func TestASchedulesReachEndsWithItsStream(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	for _, target := range []string{
		"timer.fire.task.default.x.check", "timer.set.task.default.x.check", "cmd.task.00.default.x.delete_task",
		"evt.00.default.session.x", "$KV.directory.service.tools.x", "$JS.API.STREAM.PURGE.EVT_00", "rpc.tools.call",
	} {
		_, err := c.JS().Publish(maxWait(t), "timer.set.session.default.x.expire", nil,
			jetstream.WithScheduleAt(time.Now().Add(time.Hour)), jetstream.WithScheduleTarget(target))
		require.ErrorContains(t, err, "message schedules target is invalid", target)
	}
	_, err := c.JS().Publish(maxWait(t), "timer.set.session.default.x.expire", nil,
		jetstream.WithScheduleAt(time.Now().Add(time.Hour)), jetstream.WithScheduleTarget("timer.fire.session.other.y.expire"))
	require.NoError(t, err, "within its stream the server lets a schedule fire anywhere")
}

// A smaller limit removes records, so only a step of its own changes the settings of the audit log.
func TestBootstrapLeavesTheAuditLog(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	for n := range 5 {
		_, err := c.JS().Publish(maxWait(t), "audit.default.command", fmt.Append(nil, n))
		require.NoError(t, err)
	}
	top := bus.DefaultTopology()
	top.AuditMaxBytes, top.AuditMaxAge = 100, time.Minute*3
	before := stream(t, c, "AUDIT")
	require.NoError(t, bus.Bootstrap(maxWait(t), c, top))
	require.NoError(t, bus.Await(maxWait(t), c, top))
	after := stream(t, c, "AUDIT")
	require.Equal(t, before.Config.MaxBytes, after.Config.MaxBytes)
	require.EqualValues(t, 5, after.State.Msgs)
	different, err := bus.Verify(maxWait(t), c, top)
	require.NoError(t, err)
	require.Len(t, different, 2)
	require.True(t, different[0].Audit)
	require.NoError(t, bus.ChangeAudit(maxWait(t), c, top))
	require.EqualValues(t, 100, stream(t, c, "AUDIT").Config.MaxBytes)
}
