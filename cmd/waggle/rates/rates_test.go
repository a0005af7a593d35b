package rates

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/api"
)

func rateOf(t *testing.T, l api.RateList, name string) api.Rate {
	t.Helper()
	for _, r := range l.Rates {
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
	r := newRates(reg, func() time.Time { return now })
	require.Empty(t, rateOf(t, r.List(), "messages").Points)
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
	l := r.List()
	require.Equal(t, api.Rate{Name: "messages", Recent: 10, Points: []float64{10}}, rateOf(t, l, "messages"))
	got := rateOf(t, l, "events")
	require.InDelta(t, 20, got.Recent, 0.001)
	require.InDelta(t, 1.51, got.P50, 0.01)
	require.InDelta(t, 4, got.P99, 0.01)
	require.InDelta(t, 0.4, rateOf(t, l, "tools").Recent, 0.001, "the series of all servers")
	require.Equal(t, 5, l.Seconds)

	for range 12 {
		pass()
	}
	require.Zero(t, rateOf(t, r.List(), "messages").Recent, "a minute without any")
	require.InDelta(t, 4, rateOf(t, r.List(), "events").P99, 0.01, "of a quarter of an hour")
	for range kept {
		pass()
	}
	l = r.List()
	require.Len(t, rateOf(t, l, "messages").Points, kept)
	require.Zero(t, rateOf(t, l, "events").P99)
}

func TestSamplesEnd(t *testing.T) {
	r := Start(prometheus.NewRegistry())
	require.Empty(t, r.List().Rates)
	r.Close()
}
