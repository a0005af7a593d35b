package command_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestACommandSentTwiceIsStoredOnce(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	one := number(t, cmd.Worker, "k", 1)
	elsewhere := number(t, cmd.Worker, "other", 1) // the same id for another addressee
	send(t, c, one, one, elsewhere, one)
	require.EqualValues(t, 2, size(t, c, subject.StreamCommands))
	s, err := c.JS().Stream(maxWait(t), subject.StreamCommands)
	require.NoError(t, err)
	msg, err := s.GetMsg(maxWait(t), 1)
	require.NoError(t, err)
	var stored cmd.Command
	require.NoError(t, json.Unmarshal(msg.Data, &stored))
	require.False(t, stored.Time.IsZero())
	stored.Time, stored.TraceParent = one.Time, one.TraceParent
	require.Equal(t, one, stored)
}

// In a cluster a repeat that comes during the storage of the first is an error of the server, and not final yet.
func TestACommandSentByManyAtOnceIsAccepted(t *testing.T) {
	t.Parallel()
	const commands, senders = 50, 4
	c := bustest.Cluster(t, 3).Conn()
	for n := range commands {
		var all errgroup.Group
		for range senders {
			all.Go(func() error { return command.NewSender(c).Send(maxWait(t), number(t, cmd.Worker, "k", n)) })
		}
		require.NoError(t, all.Wait())
	}
	require.EqualValues(t, commands, size(t, c, subject.StreamCommands))
}

func TestWhatCannotBeSentIsRefused(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	s := command.NewSender(c)
	for name, spoil := range map[string]func(*cmd.Command){
		"no id":         func(c *cmd.Command) { c.ID = "" },
		"long id":       func(c *cmd.Command) { c.ID = strings.Repeat("x", 257) },
		"header in id":  func(c *cmd.Command) { c.ID = "x\r\nNats-Rollup: all" },
		"letters in id": func(c *cmd.Command) { c.ID = "é" },
		"no service":    func(c *cmd.Command) { c.Service = id.Name{} },
		"no tenant":     func(c *cmd.Command) { c.Tenant = id.Tenant{} },
		"no key":        func(c *cmd.Command) { c.Key = id.Entity{} },
		"no verb":       func(c *cmd.Command) { c.Verb = id.Name{} },
		"no JSON":       func(c *cmd.Command) { c.Data = json.RawMessage("{") },
	} {
		one := number(t, cmd.Worker, "k", 1)
		spoil(&one)
		require.ErrorIs(t, s.Send(maxWait(t), one), fault.New(fault.InvalidField), name)
	}
	for _, bytes := range []int{300 << 10, 2 << 20} { // above the stream's bound, above the server's
		big := number(t, cmd.Worker, "k", 1)
		big.Data = json.RawMessage(`"` + strings.Repeat("x", bytes) + `"`)
		require.ErrorIs(t, s.Send(maxWait(t), big), fault.New(fault.MessageTooBig))
	}
	require.Zero(t, size(t, c, subject.StreamCommands))
}

// TestCommandsOfOneRequestAreStoredTogether: all of them in their order, or none.
func TestCommandsOfOneRequestAreStoredTogether(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *bus.Conn{
		"one server": func(t testing.TB) *bus.Conn { return bustest.Single(t) },
		"a cluster":  func(t testing.TB) *bus.Conn { return bustest.Cluster(t, 3).Conn() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			s := command.NewSender(c)
			one, two, three := number(t, cmd.Worker, "k", 1), number(t, cmd.Worker, "k", 2), number(t, cmd.Worker, "other", 3)
			big := number(t, cmd.Worker, "k", 4)
			big.Data = json.RawMessage(`"` + strings.Repeat("x", 300<<10) + `"`)
			spoilt := number(t, cmd.Worker, "k", 5)
			spoilt.ID = ""
			require.ErrorIs(t, s.SendAll(maxWait(t), one, big), fault.New(fault.MessageTooBig))
			require.ErrorIs(t, s.SendAll(maxWait(t), big, one), fault.New(fault.MessageTooBig))
			require.ErrorIs(t, s.SendAll(maxWait(t), one, spoilt), fault.New(fault.InvalidField))
			require.Zero(t, size(t, c, subject.StreamCommands))

			require.NoError(t, s.SendAll(maxWait(t)))
			require.NoError(t, s.Send(maxWait(t), two)) // of a request that did not come to its end
			for range 2 {
				require.NoError(t, s.SendAll(maxWait(t), one, two, three))
			}
			require.EqualValues(t, 3, size(t, c, subject.StreamCommands))
			four, five := number(t, cmd.Worker, "k", 6), number(t, cmd.Worker, "k", 7)
			require.NoError(t, s.SendAll(maxWait(t), four, five))
			stream, err := c.JS().Stream(maxWait(t), subject.StreamCommands)
			require.NoError(t, err)
			for i, want := range []string{four.ID, five.ID} {
				msg, err := stream.GetMsg(maxWait(t), uint64(4+i))
				require.NoError(t, err)
				var got cmd.Command
				require.NoError(t, json.Unmarshal(msg.Data, &got))
				require.Equal(t, want, got.ID)
			}
		})
	}
}

// TestManySendTheSameRequest: each command is stored once, whichever batch has it.
func TestManySendTheSameRequest(t *testing.T) {
	t.Parallel()
	const requests, senders = 30, 4
	c := bustest.Cluster(t, 3).Conn()
	for n := range requests {
		var all errgroup.Group
		for range senders {
			all.Go(func() error {
				return command.NewSender(c).SendAll(maxWait(t), number(t, cmd.Worker, "k", 2*n), number(t, cmd.Worker, "k", 2*n+1))
			})
		}
		require.NoError(t, all.Wait())
	}
	require.EqualValues(t, 2*requests, size(t, c, subject.StreamCommands))
}

func TestAFullQueueRefusesAtOnce(t *testing.T) {
	t.Parallel()
	top := bus.DefaultTopology()
	top.CommandMaxBytes = 64 << 10
	in := bustest.Start(t, top)
	c := bustest.Dial(t, in.URL)
	s := command.NewSender(c)
	one := number(t, cmd.Worker, "k", 1)
	one.Data = json.RawMessage(`"` + strings.Repeat("x", 20<<10) + `"`)
	var err error
	for n := 0; err == nil && n < 10; n++ {
		one.ID = strings.Repeat("c", n+1)
		err = s.Send(maxWait(t), one)
	}
	require.ErrorIs(t, err, fault.New(fault.BusUnavailable))
	require.ErrorContains(t, err, "maximum bytes exceeded")
	require.EqualValues(t, 3, size(t, c, subject.StreamCommands), "what was accepted before is still there")
}

// A command that is sent while the bus is away is either accepted after its return, or refused. It is never queued
// out of the sender's sight.
func TestNothingIsQueuedWhileTheBusIsAway(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, in.URL)
	down := make(chan struct{}, 1)
	defer c.Watch(func(up bool) {
		if !up {
			down <- struct{}{}
		}
	})()
	in.Stop()
	<-down
	s := command.NewSender(c)
	require.ErrorIs(t, s.Send(shortly(t), number(t, cmd.Worker, "k", 1)), fault.New(fault.BusUnavailable))
	require.ErrorIs(t, s.Send(maxWait(t), number(t, cmd.Worker, "k", 2)), fault.New(fault.BusUnavailable))
	accepted := make(chan error)
	go func() { accepted <- s.Send(context.Background(), number(t, cmd.Worker, "k", 3)) }()
	in.Start()
	err := <-accepted
	bustest.Up(t, c)
	n := size(t, c, subject.StreamCommands)
	if err == nil {
		require.EqualValues(t, 1, n)
	} else { // the restart took longer than a sender waits
		require.ErrorIs(t, err, fault.New(fault.BusUnavailable))
		require.Zero(t, n)
	}
	require.NoError(t, s.Send(maxWait(t), number(t, cmd.Worker, "k", 4)))
}

// One trace leads from the sender through the queue into the handler.
func TestATraceCrossesTheQueue(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	c := bustest.Single(t)
	r := newRecorder(nil)
	w := workers(t, c, command.WorkersConfig{}, r.handle)
	ctx, root := telemetry.Tracer().Start(maxWait(t), "root")
	require.NoError(t, command.NewSender(c).Send(ctx, number(t, cmd.Worker, "k", 1)))
	root.End()
	r.next(t)
	require.NoError(t, w.Drain(maxWait(t)))
	parents := map[string]string{}
	names := map[string]string{}
	for _, s := range spans.Ended() {
		require.Equal(t, root.SpanContext().TraceID(), s.SpanContext().TraceID())
		names[s.SpanContext().SpanID().String()] = s.Name()
		parents[s.Name()] = s.Parent().SpanID().String()
	}
	require.Equal(t, "send worker.send_message", names[parents["process worker.send_message"]])
	require.Equal(t, "root", names[parents["send worker.send_message"]])
}

// A dead letter that cannot be recorded stays on the queue until it can.
func TestADeadCommandWaitsForItsRecord(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	s, err := c.JS().Stream(maxWait(t), subject.StreamDead)
	require.NoError(t, err)
	dead := s.CachedInfo().Config
	full := dead
	full.Discard, full.MaxBytes = jetstream.DiscardNew, 1
	_, err = c.JS().UpdateStream(maxWait(t), full)
	require.NoError(t, err)
	told := make(chan struct{}, 10)
	workers(t, c, command.WorkersConfig{
		Backoff: soon, OnDead: func(context.Context, cmd.Command, string) { told <- struct{}{} },
	}, newRecorder(func(call) error { return command.Permanent(errBroken) }).handle)
	send(t, c, number(t, cmd.Worker, "k", 1))
	require.Eventually(t, func() bool {
		cons, err := c.JS().Consumer(maxWait(t), subject.StreamCommands, cmd.Worker.String())
		return err == nil && cons.CachedInfo().NumRedelivered > 0
	}, bustest.MaxWait, 20*time.Millisecond)
	require.Empty(t, told)
	_, err = c.JS().UpdateStream(maxWait(t), dead)
	require.NoError(t, err)
	<-told
	require.Len(t, deadLetters(t, c, 1), 1)
	empty(t, c, subject.StreamCommands)
}

// TestASenderWithinBounds asks before each command, says when it has been stored, and sends nothing that was refused.
func TestASenderWithinBounds(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	inside, left := 0, 0
	refused := fault.New(fault.TenantMoving)
	sender := command.NewSender(c).Within(func(tenant id.Tenant) (func(), error) {
		require.Equal(t, id.DefaultTenant, tenant)
		if inside == 2 {
			return nil, refused
		}
		inside++
		return func() {
			left++
			require.EqualValues(t, left, size(t, c, subject.StreamCommands))
		}, nil
	}).Signing(func(*cmd.Command) error { return nil })
	require.NoError(t, sender.Send(maxWait(t), number(t, cmd.Worker, "k", 1)))
	require.NoError(t, sender.Send(maxWait(t), number(t, cmd.Worker, "k", 2)))
	require.ErrorIs(t, sender.Send(maxWait(t), number(t, cmd.Worker, "k", 3)), refused)
	require.Equal(t, 2, left)
	require.EqualValues(t, 2, size(t, c, subject.StreamCommands))
}
