package rates

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

func rateOf(t *testing.T, l []api.Rate, name string) api.Rate {
	t.Helper()
	for _, r := range l {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("no rate of %s", name)
	return api.Rate{}
}

func TestRatesOfMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	frames := prometheus.NewCounter(prometheus.CounterOpts{Name: "waggle_gateway_frames_in_total"})
	events := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "waggle_log_append_seconds", Buckets: []float64{0.001, 0.002, 0.004}})
	calls := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "waggle_tools_call_seconds", Buckets: []float64{1}}, []string{"server"})
	reg.MustRegister(frames, events, calls)
	frames.Add(1000) // before the first sample
	events.Observe(0.5)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := New(bustest.Single(t), reg)
	r.now = func() time.Time { return now }
	r.take()
	list := func() []api.Rate { return together(r.window()) }
	require.Empty(t, rateOf(t, list(), "messages").Points)
	pass := func() { now = now.Add(Every); r.take() }

	frames.Add(50)
	for range 98 {
		events.Observe(0.0015)
	}
	events.Observe(0.003)
	events.Observe(9) // beyond the last bound
	calls.WithLabelValues("a").Observe(0.5)
	calls.WithLabelValues("b").Observe(0.5)
	pass()
	l := list()
	require.Equal(t, api.Rate{Name: "messages", Recent: 10, Points: []float64{10}}, rateOf(t, l, "messages"))
	got := rateOf(t, l, "events")
	require.InDelta(t, 20, got.Recent, 0.001)
	require.InDelta(t, 1.51, got.P50, 0.01)
	require.InDelta(t, 4, got.P99, 0.01)
	require.InDelta(t, 0.4, rateOf(t, l, "tools").Recent, 0.001, "the series of all servers")

	for range 12 {
		pass()
	}
	require.Zero(t, rateOf(t, list(), "messages").Recent, "a minute without any")
	require.InDelta(t, 4, rateOf(t, list(), "events").P99, 0.01, "of a quarter of an hour")
	for range kept {
		pass()
	}
	l = list()
	require.Len(t, rateOf(t, l, "messages").Points, kept)
	require.Zero(t, rateOf(t, l, "events").P99)
}

// together returns the rates of windows as a gateway gets them.
func together(windows ...window) []api.Rate {
	var all sum
	for _, w := range windows {
		body, err := json.Marshal(w)
		if err == nil {
			w, err = decode(body)
		}
		if err != nil {
			panic(err)
		}
		all.add(w)
	}
	return all.rates()
}

func TestRatesAreAComponent(t *testing.T) {
	conn := bustest.Single(t)
	lifecycletest.Exercise(t, func() lifecycle.Component { return New(conn, prometheus.NewRegistry()) })
}
