package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var errBroken = errors.New("broken")

func TestWorkersShareTheQueueWithinTheirBounds(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	const commands, bound = 60, 3
	var on, most [2]atomic.Int64
	var handled atomic.Int64
	full := newLatch() // opens when every slot of both is taken
	for i := range 2 {
		workers(t, c, command.WorkersConfig{Concurrency: bound}, func(context.Context, cmd.Command, command.Delivery) error {
			defer on[i].Add(-1)
			n := on[i].Add(1)
			for m := most[i].Load(); n > m && !most[i].CompareAndSwap(m, n); m = most[i].Load() {
			}
			if handled.Add(1) == 2*bound {
				full.open()
			}
			<-full.ch
			return nil
		})
	}
	for n := range commands {
		send(t, c, number(t, cmd.Worker, "k", n+1))
	}
	empty(t, c, subject.StreamCommands)
	t.Logf("%d commands by two workers of %d slots, at most %d and %d at once", handled.Load(), bound, most[0].Load(), most[1].Load())
	require.EqualValues(t, commands, handled.Load())
	require.EqualValues(t, bound, most[0].Load())
	require.EqualValues(t, bound, most[1].Load())
}

func TestAFailureIsTriedAgainAndThenGivenUp(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	dead := make(chan string, 1)
	r := newRecorder(func(call) error { return errBroken })
	workers(t, c, command.WorkersConfig{
		MaxDeliver: 3, Backoff: soon,
		OnDead: func(_ context.Context, c cmd.Command, reason string) { dead <- c.ID + ": " + reason },
	}, r.handle)
	send(t, c, number(t, cmd.Worker, "k", 1))
	for attempt := 1; attempt <= 3; attempt++ {
		d := r.next(t).Delivery
		require.WithinDuration(t, time.Now(), d.Accepted, time.Minute)
		require.Equal(t, command.Delivery{Attempt: attempt, Final: attempt == 3, Accepted: d.Accepted}, d)
	}
	require.Equal(t, "c1: broken", <-dead)
	letter := deadLetters(t, c, 1)[0]
	require.Equal(t, "broken", letter.Reason)
	require.EqualValues(t, 3, letter.Deliveries)
	require.False(t, letter.Time.IsZero())
	var body cmd.Command
	require.NoError(t, json.Unmarshal(letter.Command, &body))
	require.Equal(t, "c1", body.ID)
	empty(t, c, subject.StreamCommands)
	require.Empty(t, r.calls)
}

func TestAPermanentErrorAndAPanic(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	r := newRecorder(func(one call) error {
		if numberOf(one.Command) == 1 {
			return command.Permanent(errBroken)
		}
		panic("what now")
	})
	var dead atomic.Int64
	workers(t, c, command.WorkersConfig{
		MaxDeliver: 2, Backoff: soon, Concurrency: 1,
		OnDead: func(context.Context, cmd.Command, string) { dead.Add(1); panic("and now") },
	}, r.handle)
	send(t, c, number(t, cmd.Worker, "k", 1), number(t, cmd.Worker, "k", 2))
	letters := deadLetters(t, c, 2)
	require.Equal(t, "broken", letters[0].Reason)
	require.EqualValues(t, 1, letters[0].Deliveries)
	require.Equal(t, "the handler panicked: what now", letters[1].Reason)
	require.EqualValues(t, 2, letters[1].Deliveries)
	empty(t, c, subject.StreamCommands)
	require.EqualValues(t, 2, dead.Load())
	require.NoError(t, command.Permanent(nil))
	require.ErrorIs(t, command.Permanent(errBroken), errBroken)
}

func TestWhatIsNoCommandIsGivenUp(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	good := number(t, cmd.Worker, "k", 1)
	other := number(t, cmd.Worker, "other", 1)
	foreign, err := json.Marshal(other)
	require.NoError(t, err)
	for _, body := range []string{"\x00 not json", `{"id":"x"}`, string(foreign)} {
		_, err := c.JS().Publish(maxWait(t), subject.DefaultPartitions.Command(good.Address()), []byte(body))
		require.NoError(t, err)
	}
	_, err = c.JS().Publish(maxWait(t), "cmd.worker.77.x", nil)
	require.NoError(t, err)
	r := newRecorder(nil)
	workers(t, c, command.WorkersConfig{Concurrency: 1}, r.handle)
	letters := deadLetters(t, c, 3)
	require.JSONEq(t, `"\u0000 not json"`, string(letters[0].Command))
	require.Contains(t, letters[2].Reason, "does not fit its subject")
	empty(t, c, subject.StreamCommands)
	require.Empty(t, r.calls)
}

// abandon takes the next command like a process that dies with it.
func abandon(t *testing.T, c *bus.Conn) jetstream.Msg {
	cons, err := c.JS().Consumer(maxWait(t), subject.StreamCommands, cmd.Worker.String())
	require.NoError(t, err)
	batch, err := cons.Fetch(1, jetstream.FetchContext(maxWait(t)))
	require.NoError(t, err)
	msg := <-batch.Messages()
	require.NotNil(t, msg)
	return msg
}

func TestAnAbandonedCommandIsTakenOver(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	require.NoError(t, command.NewWorkers(c, command.WorkersConfig{Service: cmd.Worker, AckWait: ackWait}, nil).Drain(t.Context()))
	first := workers(t, c, command.WorkersConfig{}, newRecorder(nil).handle) // creates the consumer
	require.NoError(t, first.Drain(maxWait(t)))
	send(t, c, number(t, cmd.Worker, "k", 1))
	abandon(t, c)
	r := newRecorder(nil)
	workers(t, c, command.WorkersConfig{}, r.handle)
	got := r.next(t)
	require.Equal(t, 2, got.Attempt)
	require.Equal(t, "c1", got.ID)
	empty(t, c, subject.StreamCommands)
}

// A command that kills every process that starts it is given up by a replica that does not start it any more, without
// a message from the server.
func TestACommandThatKillsIsGivenUpUntouched(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	cfg := command.WorkersConfig{MaxDeliver: 2}
	first := workers(t, c, cfg, newRecorder(nil).handle)
	require.NoError(t, first.Drain(maxWait(t)))
	send(t, c, number(t, cmd.Worker, "k", 1))
	abandon(t, c)
	require.NoError(t, abandon(t, c).Nak()) // as if it had died again, without the wait
	dead := make(chan string, 1)
	cfg.OnDead = func(_ context.Context, _ cmd.Command, reason string) { dead <- reason }
	r := newRecorder(nil)
	workers(t, c, cfg, r.handle)
	require.Regexp(t, `delivered [2-9] times`, <-dead) // the server also counts a delivery that is lost on its way
	empty(t, c, subject.StreamCommands)
	require.Empty(t, r.calls)
}

func TestStopHandsBackAtOnce(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	a := newRecorder(func(one call) error { <-one.ctx.Done(); return one.ctx.Err() })
	// A wait would fail the test: the other replica has it because it was returned.
	w := workers(t, c, command.WorkersConfig{AckWait: 10 * bustest.MaxWait}, a.handle)
	send(t, c, number(t, cmd.Worker, "k", 1))
	a.next(t)
	b := newRecorder(nil)
	workers(t, c, command.WorkersConfig{AckWait: 10 * bustest.MaxWait}, b.handle)
	w.Stop()
	require.Equal(t, 2, b.next(t).Attempt)
	empty(t, c, subject.StreamCommands)
}

func TestDrainFinishesWhatIsOn(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	release := make(chan struct{})
	r := newRecorder(func(one call) error {
		select {
		case <-release:
		case <-one.ctx.Done():
		}
		return one.ctx.Err()
	})
	w := workers(t, c, command.WorkersConfig{Concurrency: 1}, r.handle)
	send(t, c, number(t, cmd.Worker, "k", 1))
	r.next(t)
	send(t, c, number(t, cmd.Worker, "k", 2))
	short, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.Drain(short), context.Canceled, "it is still on")
	close(release)
	require.NoError(t, w.Drain(maxWait(t)))
	require.Eventually(t, func() bool { return size(t, c, subject.StreamCommands) == 1 }, bustest.MaxWait, 20*time.Millisecond,
		"the other was left alone")
	require.Empty(t, r.calls)
}

// A cut-off worker learns it before another replica may get its command.
func TestACutOffHandlerIsTold(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, s.URL)
	told := make(chan error, 1)
	r := newRecorder(func(one call) error {
		if one.Attempt > 1 {
			return nil
		}
		<-one.ctx.Done()
		told <- context.Cause(one.ctx)
		return one.ctx.Err()
	})
	workers(t, c, command.WorkersConfig{}, r.handle)
	send(t, c, number(t, cmd.Worker, "k", 1))
	require.Equal(t, 1, r.next(t).Attempt)
	s.Stop()
	require.ErrorIs(t, <-told, command.ErrClaimLost)
	s.Start()
	require.Equal(t, 2, r.next(t).Attempt)
	empty(t, bustest.Dial(t, s.URL), subject.StreamCommands)
}

// A handler may take many times the ack wait: no other worker gets the command while the claim holds. If the machine stands still
// for an ack wait, the claim is lost, which proves nothing, and the next command is tried.
func TestALongHandlerKeepsItsClaim(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	sub, err := c.NATS().SubscribeSync("$JS.ACK.CMD.worker.>") // the renewals pass here
	require.NoError(t, err)
	release := make(chan struct{})
	r := newRecorder(func(one call) error {
		select {
		case <-release:
		case <-one.ctx.Done():
		}
		return one.ctx.Err()
	})
	workers(t, c, command.WorkersConfig{}, r.handle)
	workers(t, c, command.WorkersConfig{}, r.handle)
	for n := 1; ; n++ {
		send(t, c, number(t, cmd.Worker, "k", n))
		first := r.next(t)
		for renewals := 0; renewals < 4; { // more than one ack wait
			m, err := sub.NextMsgWithContext(maxWait(t))
			require.NoError(t, err)
			if string(m.Data) == "+WPI" {
				renewals++
			}
		}
		if len(r.calls) == 0 {
			break
		}
		r.next(t)
		select {
		case <-first.ctx.Done():
		case <-maxWait(t).Done():
		}
		require.ErrorIs(t, context.Cause(first.ctx), command.ErrClaimLost, "another worker got the command while the claim held")
		release <- struct{}{}
	}
	close(release)
	empty(t, c, subject.StreamCommands)
}

func TestAConsumerThatVanishesIsMadeAgain(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	r := newRecorder(nil)
	workers(t, c, command.WorkersConfig{}, r.handle)
	send(t, c, number(t, cmd.Worker, "k", 1))
	r.next(t)
	empty(t, c, subject.StreamCommands)
	require.NoError(t, c.JS().DeleteConsumer(maxWait(t), subject.StreamCommands, cmd.Worker.String()))
	send(t, c, number(t, cmd.Worker, "k", 2))
	require.Equal(t, "c2", r.next(t).ID)
}

func TestAClosedConnectionIsAFailure(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, s.URL)
	w := workers(t, c, command.WorkersConfig{}, newRecorder(nil).handle)
	r := newReplica(t, s.URL, "a", command.OrderedConfig{}, newRecorder(nil).handle)
	c.NATS().Close()
	r.conn.NATS().Close()
	require.Error(t, <-w.Failed())
	require.Error(t, <-r.ordered.Failed())
}
