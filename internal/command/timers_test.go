package command_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func timer(name string) subject.Timer {
	return subject.Timer{
		Service: cmd.Session, Tenant: id.DefaultTenant, Key: id.EntityFromExternal("k"), Name: id.MustName(name),
	}
}

// fired is a timer that arrived.
type fired struct {
	name string
	at   time.Time
}

func timers(t *testing.T, c *bus.Conn, f func(context.Context, subject.Timer) error) chan fired {
	t.Helper()
	out := make(chan fired, 100)
	tm := command.NewTimers(c, cmd.Session, log(t), func(ctx context.Context, one subject.Timer) error {
		out <- fired{one.Name.String(), time.Now()}
		if f == nil {
			return nil
		}
		return f(ctx, one)
	})
	t.Cleanup(tm.Stop)
	require.NoError(t, tm.Start(maxWait(t)))
	return out
}

func TestTimersFireOnceAndNotBefore(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	s := command.NewSender(c)
	got := timers(t, c, nil)
	due := map[string]time.Time{}
	now := time.Now()
	for name, in := range map[string]time.Duration{"overdue": -time.Hour, "now": 0, "soon": 700 * time.Millisecond, "later": 2 * time.Second} {
		due[name] = now.Add(in)
		require.NoError(t, s.SetTimer(maxWait(t), timer(name), due[name]))
	}
	require.NoError(t, s.SetTimer(maxWait(t), timer("moved"), now.Add(time.Hour)))
	due["moved"] = now.Add(3 * time.Second)
	require.NoError(t, s.SetTimer(maxWait(t), timer("moved"), due["moved"])) // replaces
	require.NoError(t, s.SetTimer(maxWait(t), timer("never"), now.Add(time.Hour)))
	for range len(due) {
		f := <-got
		t.Logf("%s fired %v after it was due", f.name, f.at.Sub(due[f.name]).Round(time.Millisecond))
		require.Contains(t, due, f.name)
		require.False(t, f.at.Before(due[f.name]), "%s came too early", f.name)
		delete(due, f.name)
	}
	require.Eventually(t, func() bool { return size(t, c, subject.TimerStream(cmd.Session)) == 1 }, bustest.MaxWait, 20*time.Millisecond,
		"what is not due yet, and nothing else, is left")
	require.Empty(t, got)
}

// TestATimerIsDueToTheMillisecond: the server gets the time of a timer, rounded up to milliseconds.
func TestATimerIsDueToTheMillisecond(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	stream, err := c.JS().Stream(maxWait(t), subject.TimerStream(cmd.Session))
	require.NoError(t, err)
	hour := time.Now().Add(time.Hour).Truncate(time.Second)
	for _, row := range []struct{ after, want time.Duration }{
		{0, 0},
		{time.Nanosecond, time.Millisecond},
		{123 * time.Millisecond, 123 * time.Millisecond},
		{time.Second - 1, time.Second},
	} {
		one := timer(fmt.Sprint("one-", row.after.Nanoseconds()))
		require.NoError(t, command.NewSender(c).SetTimer(maxWait(t), one, hour.Add(row.after)))
		m, err := stream.GetLastMsgForSubject(maxWait(t), one.Set())
		require.NoError(t, err)
		due, err := time.Parse("@at "+time.RFC3339, m.Header.Get(jetstream.ScheduleHeader))
		require.NoError(t, err)
		require.Equal(t, row.want, due.Sub(hour))
	}
}

func TestATimerThatFailsComesAgain(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	var calls atomic.Int64
	got := timers(t, c, func(context.Context, subject.Timer) error {
		switch calls.Add(1) {
		case 1:
			return errBroken
		case 2:
			panic("what now")
		}
		return nil
	})
	require.NoError(t, command.NewSender(c).SetTimer(maxWait(t), timer("one"), time.Now()))
	_, err := c.JS().Publish(maxWait(t), "timer.fire.session.junk", nil)
	require.NoError(t, err)
	for range 3 {
		require.Equal(t, "one", (<-got).name)
	}
	empty(t, c, subject.TimerStream(cmd.Session))
}

// Schedules outlive the server, and timers that became due without a receiver arrive later.
func TestTimersOutliveARestart(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, in.URL)
	require.NoError(t, command.NewSender(c).SetTimer(maxWait(t), timer("one"), time.Now().Add(time.Second)))
	in.Stop()
	in.Start()
	got := timers(t, bustest.Dial(t, in.URL), nil)
	require.Equal(t, "one", (<-got).name)
}

// TestATimerFiresBesideManyOthers: 140 MiB of later ones displace none.
func TestATimerFiresBesideManyOthers(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	require.NoError(t, command.NewSender(c).SetTimer(maxWait(t), timer("first"), time.Now().Add(time.Minute)))
	bustest.Fill(t, c, 140<<20, func(i int) string { return timer(fmt.Sprint("other-", i)).Set() })
	require.NoError(t, command.NewSender(c).SetTimer(maxWait(t), timer("last"), time.Now()))
	require.Equal(t, "last", (<-timers(t, c, nil)).name)
	s, err := c.JS().Stream(maxWait(t), subject.TimerStream(cmd.Session))
	require.NoError(t, err)
	_, err = s.GetLastMsgForSubject(maxWait(t), timer("first").Set())
	require.NoError(t, err)
}
