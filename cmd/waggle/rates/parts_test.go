package rates

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

// A rate may count some series of a metric only: runs that ended, and those that failed, are events of a log.
func TestRatesOfSomeSeries(t *testing.T) {
	reg := prometheus.NewRegistry()
	events := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waggle_log_events_total"}, []string{"kind", "type"})
	cost := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "waggle_worker_cost_dollars_total"}, []string{"model"})
	reg.MustRegister(events, cost)
	events.WithLabelValues("session", "run.started").Add(100)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := New(bustest.Single(t), reg)
	r.now = func() time.Time { return now }
	pass := func() { now = now.Add(Every); r.take() }
	pass()
	pass()
	l := together(r.window())
	require.Equal(t, []float64{0}, rateOf(t, l, "failures").Points, "none so far")
	events.WithLabelValues("session", "run.completed").Add(5)
	events.WithLabelValues("member", "run.failed").Add(10)
	events.WithLabelValues("session", "tool.failed").Add(50)
	cost.WithLabelValues("m").Add(0.000_05)
	pass()
	l = together(r.window())
	require.Equal(t, []float64{0, 3}, rateOf(t, l, "runs").Points)
	require.Equal(t, []float64{0, 2}, rateOf(t, l, "failures").Points)
	require.Equal(t, []float64{0, 10}, rateOf(t, l, "cost").Points, "millionths of a dollar")
	require.Empty(t, rateOf(t, l, "runs").Minutes, "nothing measures how long they take")
}

// The latencies of each minute are those of its own observations, in whichever processes they were made.
func TestLatenciesOfMinutes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	conn := bustest.Single(t)
	old, young := newCounted(conn), newCounted(conn)
	for _, c := range []counted{old, young} {
		c.now = func() time.Time { return now }
	}
	old.take()
	pass := func(n int, all ...counted) {
		for range n {
			now = now.Add(Every)
			for _, c := range all {
				c.take()
			}
		}
	}
	old.models.WithLabelValues("a").Observe(0.04)
	pass(2*recent-1, old)
	young.take()
	old.models.WithLabelValues("a").Observe(0.2)
	young.models.WithLabelValues("b").Observe(0.2)
	pass(recent, old, young)

	got := rateOf(t, together(old.window(), young.window()), "models").Minutes
	require.Equal(t, []api.RateMinute{{P50: 25, P99: 49.5}, {}, {P50: 175, P99: 248.5}}, got)
	w := old.window()
	s := w.Series["models"]
	s.Parts = nil
	w.Series["models"] = s
	require.Equal(t, []api.RateMinute{{P50: 175, P99: 248.5}}, rateOf(t, together(w, young.window()), "models").Minutes, "of a process that tells")

	pass(2*kept, old)
	require.Len(t, rateOf(t, together(old.window()), "models").Minutes, maxParts)
}
