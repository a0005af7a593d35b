package agent

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/services/agent/model"
)

type metrics struct {
	used *prometheus.CounterVec
	runs *prometheus.CounterVec
}

// newMetrics registers the worker's metrics; a nil registry means nobody looks.
func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		used: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waggle_agent_tokens_total", Help: "Tokens as counted by the model's provider.",
		}, []string{"model", "direction"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waggle_agent_attempts_total", Help: "Attempts of runs, by how they ended.",
		}, []string{"outcome"}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.used, m.runs} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) tokens(r model.Reply) {
	m.used.WithLabelValues(r.Model, "input").Add(float64(r.Usage.InputTokens))
	m.used.WithLabelValues(r.Model, "output").Add(float64(r.Usage.OutputTokens))
}

func (m *metrics) attempt(ended bool, err error) {
	outcome := "left" // another attempt or work item holds the run
	switch {
	case err != nil:
		outcome = "interrupted"
	case ended:
		outcome = "ended"
	}
	m.runs.WithLabelValues(outcome).Inc()
}
