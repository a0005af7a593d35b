package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

// The server checks the subject of a message and not its headers, so roles share no streams with roll-ups or schedules.
// If a new version of the server fails this test, read decision 62 again.
func TestWhatTheServerDoesNotCheck(t *testing.T) {
	t.Parallel()
	c := bare(t, 1)[0]
	_, err := c.JS().CreateStream(maxWait(t), jetstream.StreamConfig{
		Name: "SHARED", Subjects: []string{"mine.>", "theirs.>"}, AllowMsgSchedules: true, AllowRollup: true,
	})
	require.NoError(t, err)
	later := time.Now().Add(time.Hour)
	send := func(subj, key, value string, more ...jetstream.PublishOpt) {
		t.Helper()
		m := nats.NewMsg(subj)
		if key != "" {
			m.Header.Set(key, value)
		}
		if value == "purge" {
			m.Header.Set("Nats-Scheduler", "theirs.schedule")
		}
		_, err := c.JS().PublishMsg(maxWait(t), m, more...)
		require.NoError(t, err)
	}
	schedule := func(target string) []jetstream.PublishOpt {
		return []jetstream.PublishOpt{jetstream.WithScheduleAt(later), jetstream.WithScheduleTarget(target)}
	}
	send("theirs.schedule", "", "", schedule("theirs.due")...)
	send("mine.a", "Nats-Schedule-Next", "purge")
	require.EqualValues(t, 1, stream(t, c, "SHARED").State.Msgs, "a message removes the schedule of another subject")
	send("theirs.b", "", "")
	send("mine.schedule", "", "", schedule("theirs.due")...) // a schedule fires on the subject of another one
	send("mine.a", "Nats-Rollup", "all")
	require.EqualValues(t, 1, stream(t, c, "SHARED").State.Msgs, "a message removes those of all other subjects")

	info := stream(t, c, "SHARED").Config
	info.AllowRollup = false
	_, err = c.JS().UpdateStream(maxWait(t), info)
	require.NoError(t, err)
	require.True(t, stream(t, c, "SHARED").Config.AllowRollup, "schedules bring roll-ups with them")
	info.AllowMsgSchedules = false
	_, err = c.JS().UpdateStream(maxWait(t), info)
	require.ErrorContains(t, err, "message schedules can not be disabled")
	marks := jetstream.StreamConfig{Name: "MARKS", Subjects: []string{"marks.>"}, SubjectDeleteMarkerTTL: time.Minute}
	_, err = c.JS().CreateStream(maxWait(t), marks)
	require.NoError(t, err)
	require.True(t, stream(t, c, "MARKS").Config.AllowRollup, "so do markers of expired messages")
	marks.SubjectDeleteMarkerTTL, marks.AllowMsgTTL, marks.DenyPurge = 0, true, true
	_, err = c.JS().UpdateStream(maxWait(t), marks)
	require.NoError(t, err, "without them, a stream may lose the right to roll-ups, and to purges for ever")
	require.False(t, stream(t, c, "MARKS").Config.AllowRollup)
}

// NATS reserves the bounds of all streams on the disk: less than a GiB of a laptop's, where events have none.
func TestReservedSpace(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	sum := int64(0)
	for info := range c.JS().ListStreams(maxWait(t)).Info() {
		sum += max(info.Config.MaxBytes, 0)
	}
	require.Greater(t, sum, int64(512<<20))
	require.Less(t, sum, int64(1<<30))
}
