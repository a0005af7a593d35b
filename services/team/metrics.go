package team

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics say what the multiplexer does.
type metrics struct {
	relayed prometheus.Counter
	relays  prometheus.Gauge
	full    prometheus.Counter
	failed  prometheus.Counter
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
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.relayed, m.relays, m.full, m.failed} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}
