package team

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/internal/telemetry"
)

// metrics are the metrics of the relays.
type metrics struct {
	relayed prometheus.Counter
	relays  prometheus.Gauge
	full    prometheus.Counter
	failed  prometheus.Counter
	waiting prometheus.Gauge
	bytes   prometheus.Gauge
	lag     prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		relayed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waggle_team_relayed_total", Help: "Events of members that were taken over into the log of their team.",
		}),
		relays: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waggle_team_relays", Help: "Teams whose members this process relays.",
		}),
		full: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waggle_team_relay_full_total", Help: "How often members wrote faster than their team's log takes it.",
		}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waggle_team_relay_errors_total", Help: "How often relaying failed and was tried again.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waggle_team_relay_waiting_events", Help: "Events of members that wait to be taken over into the log of their team.",
		}),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waggle_team_relay_waiting_bytes", Help: "The same in bytes.",
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "waggle_team_relay_lag_seconds", Help: "Time from a member's event to its place in the log of the team; clocks of two machines are in it.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15), // a relayed event takes milliseconds; 16 s is two failovers
		}),
	}
	return m, telemetry.Register(r, "teams", m.relayed, m.relays, m.full, m.failed, m.waiting, m.bytes, m.lag)
}
