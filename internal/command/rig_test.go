package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) {
	bustest.Waiting()
	goleak.VerifyTestMain(m, bustest.Leftovers()...)
}

// ackWait is short, because tests wait for it, and long enough for a busy machine
// to renew a claim in time.
const ackWait = 6 * time.Second

// soon makes retries quick.
var soon = []time.Duration{10 * time.Millisecond}

// order is the data of the commands of these tests: N counts from 1 for every key.
type order struct {
	N int `json:"n"`
}

func number(t testing.TB, service id.Name, key string, n int) cmd.Command {
	data, err := json.Marshal(order{n})
	require.NoError(t, err)
	return cmd.Command{
		ID: fmt.Sprintf("c%d", n), Service: service, Verb: cmd.SendMessage, Tenant: id.DefaultTenant,
		Key: id.EntityFromExternal(key), Data: data,
	}
}

func numberOf(c cmd.Command) int {
	var o order
	if c.Decode(&o) != nil {
		return -1
	}
	return o.N
}

func maxWait(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), bustest.MaxWait)
	t.Cleanup(cancel)
	return ctx
}

func send(t testing.TB, c *bus.Conn, commands ...cmd.Command) {
	t.Helper()
	s := command.NewSender(c)
	for _, one := range commands {
		require.NoError(t, s.Send(maxWait(t), one))
	}
}

// log prints only unexpected lines. Failing handlers are a part of these tests.
func log(t testing.TB) zerolog.Logger {
	return zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.ErrorLevel)
}

// call is one attempt as a handler saw it.
type call struct {
	cmd.Command
	command.Delivery
	ctx context.Context
}

// recorder is a handler that records its calls and answers as the test says.
type recorder struct {
	calls  chan call
	answer func(call) error
}

func newRecorder(answer func(call) error) *recorder {
	return &recorder{calls: make(chan call, 10_000), answer: answer}
}

func (r *recorder) handle(ctx context.Context, c cmd.Command, d command.Delivery) error {
	one := call{c, d, ctx}
	r.calls <- one
	if r.answer == nil {
		return nil
	}
	return r.answer(one)
}

func (r *recorder) next(t testing.TB) call {
	t.Helper()
	select {
	case c := <-r.calls:
		return c
	case <-time.After(bustest.MaxWait):
		require.FailNow(t, "no command arrives")
		return call{}
	}
}

func workers(t testing.TB, c *bus.Conn, cfg command.WorkersConfig, h command.Handler) *command.Workers {
	t.Helper()
	cfg.Service, cfg.Logger = cmd.Worker, log(t)
	if cfg.AckWait == 0 {
		cfg.AckWait = ackWait
	}
	w := command.NewWorkers(c, cfg, h)
	t.Cleanup(w.Stop)
	require.NoError(t, w.Start(maxWait(t)))
	return w
}

// replica is one process of an ordered service: a connection, a lease and a consumer.
type replica struct {
	conn    *bus.Conn
	dir     *directory.Directory
	lease   *directory.Lease
	ordered *command.Ordered
}

func newReplica(t testing.TB, url, name string, cfg command.OrderedConfig, h command.Handler) *replica {
	t.Helper()
	return newReplicaOf(t, url, name, cfg, h, func(*command.Ordered) {})
}

// newReplicaOf changes the consumer before it is started.
func newReplicaOf(t testing.TB, url, name string, cfg command.OrderedConfig, h command.Handler, change func(*command.Ordered)) *replica {
	t.Helper()
	r := &replica{conn: bustest.Dial(t, url)}
	var err error
	r.dir, err = directory.Open(maxWait(t), r.conn)
	require.NoError(t, err)
	t.Cleanup(r.dir.Close)
	cfg.Service, cfg.Instance, cfg.Logger = cmd.Session, id.MustName(name), log(t)
	if cfg.AckWait == 0 {
		cfg.AckWait = ackWait
	}
	r.lease, err = r.dir.Join(maxWait(t), directory.Member{
		What: directory.WhatService, Name: cfg.Service, Instance: cfg.Instance,
	})
	require.NoError(t, err)
	r.ordered = command.NewOrdered(r.conn, r.dir, cfg, h)
	change(r.ordered)
	t.Cleanup(r.ordered.Stop)
	require.NoError(t, r.ordered.Start(maxWait(t)))
	return r
}

// deadLetters waits for n dead letters and returns them in order.
func deadLetters(t testing.TB, c *bus.Conn, n int) []command.DeadLetter {
	t.Helper()
	cons, err := c.JS().OrderedConsumer(maxWait(t), subject.StreamDead, jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	iter, err := cons.Messages()
	require.NoError(t, err)
	defer iter.Stop()
	var out []command.DeadLetter
	for len(out) < n {
		msg, err := iter.Next(jetstream.NextContext(maxWait(t)))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(msg.Subject(), "dead."))
		var d command.DeadLetter
		require.NoError(t, json.Unmarshal(msg.Data(), &d))
		out = append(out, d)
	}
	return out
}

// empty waits until the stream is empty.
func empty(t testing.TB, c *bus.Conn, stream string) {
	t.Helper()
	require.Eventually(t, func() bool { return size(t, c, stream) == 0 }, bustest.MaxWait, 20*time.Millisecond,
		"%s is not empty", stream)
}

func size(t testing.TB, c *bus.Conn, stream string) uint64 {
	s, err := c.JS().Stream(maxWait(t), stream)
	require.NoError(t, err)
	return s.CachedInfo().State.Msgs
}

// latch is closed once.
type latch struct {
	once sync.Once
	ch   chan struct{}
}

func newLatch() *latch { return &latch{ch: make(chan struct{})} }

func (l *latch) open() { l.once.Do(func() { close(l.ch) }) }
