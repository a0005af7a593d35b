package survey_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	"github.com/waggle-dev/waggle/internal/survey"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

var (
	agent   = id.MustName("worker")
	session = id.MustName("session")
)

func value(t *testing.T, g prometheus.Gatherer, name, label string) (float64, bool) {
	t.Helper()
	all, err := g.Gather()
	require.NoError(t, err)
	for _, f := range all {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if label == "" || m.GetLabel()[0].GetValue() == label {
				return m.GetGauge().GetValue(), true
			}
		}
	}
	return 0, false
}

func config(instance string, r prometheus.Registerer) survey.Config {
	return survey.Config{
		Service: session, Instance: id.MustName(instance), Services: []id.Name{agent, session},
		Streams: []string{"CMD", "DEAD", "GONE"}, Registry: r, Logger: zerolog.Nop(),
	}
}

func TestWhatTheSurveyShows(t *testing.T) {
	c := bustest.Single(t)
	ctx := t.Context()
	d, err := directory.Open(ctx, c)
	require.NoError(t, err)
	defer d.Close()
	for _, name := range []id.Name{agent, session} {
		lease, err := d.Join(ctx, directory.Member{What: directory.WhatService, Name: name, Instance: id.MustName("b")})
		require.NoError(t, err)
		defer func() { require.NoError(t, lease.Leave(t.Context())) }()
	}
	_, err = c.JS().CreateOrUpdateConsumer(ctx, "CMD", jetstream.ConsumerConfig{
		Durable: "worker", FilterSubject: "cmd.worker.>", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute,
	})
	require.NoError(t, err)
	for _, s := range []string{"cmd.worker.01.t.k.run", "cmd.worker.02.t.k.run", "cmd.worker.03.t.k.run", "dead.worker.t.k.run"} {
		_, err := c.JS().Publish(ctx, s, []byte("{}"))
		require.NoError(t, err)
	}
	taker, err := c.JS().Consumer(ctx, "CMD", "worker")
	require.NoError(t, err)
	_, err = taker.Next()
	require.NoError(t, err)

	first, second := prometheus.NewPedanticRegistry(), prometheus.NewPedanticRegistry()
	mine, err := survey.New(c, d, config("b", first))
	require.NoError(t, err)
	later, err := survey.New(c, d, config("c", second))
	require.NoError(t, err)
	mine.Look(ctx)
	later.Look(ctx)
	for _, want := range []struct {
		name, label string
		is          float64
	}{
		{"waggle_queue_pending_commands", "worker", 2},
		{"waggle_queue_unacknowledged_commands", "worker", 1},
		{"waggle_queue_redelivered_commands", "worker", 0},
		{"waggle_service_replicas", "worker", 1},
		{"waggle_service_replicas", "session", 1},
		{"waggle_stream_messages", "CMD", 3},
		{"waggle_stream_leader", "CMD", 1},
		{"waggle_stream_leader", "GONE", 0},
		{"waggle_stream_replicas_missing", "CMD", 0},
		{"waggle_stream_max_bytes", "CMD", 64 << 20},
		{"waggle_dead_letters", "", 1},
	} {
		got, ok := value(t, first, want.name, want.label)
		require.True(t, ok, want.name)
		require.InDelta(t, want.is, got, 0, "%s %s", want.name, want.label)
	}
	newest, _ := value(t, first, "waggle_dead_newest_timestamp_seconds", "")
	require.InDelta(t, float64(time.Now().Unix()), newest, 60)
	_, shown := value(t, second, "waggle_queue_pending_commands", "worker")
	require.False(t, shown, "one replica is enough")
	telemetry.Lint(t, first)
}

func TestTheSurveyIsAComponent(t *testing.T) {
	c := bustest.Single(t)
	d, err := directory.Open(t.Context(), c)
	require.NoError(t, err)
	defer d.Close()
	lifecycletest.Exercise(t, func() lifecycle.Component {
		s, err := survey.New(c, d, config("a", nil))
		require.NoError(t, err)
		return s
	})
}
