package worker

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
)

// noFault is the outcome of a request to a model that worked; others are fault codes.
const noFault = "ok"

// modelBuckets in seconds: the demo answers at once, a short answer takes a second, a
// long one with reasoning minutes; an attempt ends after 15.
var modelBuckets = []float64{.05, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600}

type metrics struct {
	used  *prometheus.CounterVec
	cost  *prometheus.CounterVec
	runs  *prometheus.CounterVec
	asked *prometheus.HistogramVec
	first *prometheus.HistogramVec

	mu    sync.Mutex
	names map[string]bool // of models, as labels
}

// maxNames bounds the models that have series of their own: definitions of members may name any.
const maxNames = 64

// label returns the name of a model as a label; "other" beyond the bound.
func (m *metrics) label(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		m.names = map[string]bool{}
	}
	if !m.names[name] && len(m.names) >= maxNames {
		return "other"
	}
	m.names[name] = true
	return name
}

// newMetrics registers the worker's metrics, unless the registry is nil.
func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		used: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waggle_worker_tokens_total", Help: "Tokens as counted by the model's provider: input, input_cached (read from its cache), input_cache_write (written to it), output.",
		}, []string{"model", "direction"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waggle_worker_cost_dollars_total", Help: "Cost of the tokens, by models.prices; models without a price cost nothing.",
		}, []string{"model"}),
		asked: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "waggle_worker_model_request_seconds", Help: "Time that a request to the model took, to the end of its answer, by outcome (ok or a fault code).",
			Buckets: modelBuckets,
		}, []string{"model", "outcome"}),
		first: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "waggle_worker_model_first_token_seconds", Help: "Time from a request to the model to the first text of its answer.",
			Buckets: modelBuckets,
		}, []string{"model"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waggle_worker_attempts_total", Help: "Attempts of runs, by how they ended.",
		}, []string{"outcome"}),
	}
	return m, telemetry.Register(r, "workers", m.used, m.cost, m.runs, m.asked, m.first)
}

// tokens counts a reply of a model, under the name by which it was asked: what a provider calls itself has no bound.
func (m *metrics) tokens(name string, u model.Usage, usd *float64) {
	name = m.label(name)
	if usd != nil {
		m.cost.WithLabelValues(name).Add(*usd)
	}
	for direction, n := range map[string]int64{
		"input": u.InputTokens - u.CachedTokens - u.CacheWriteTokens, "input_cached": u.CachedTokens, "input_cache_write": u.CacheWriteTokens, "output": u.OutputTokens,
	} {
		if n > 0 {
			m.used.WithLabelValues(name, direction).Add(float64(n))
		}
	}
}

// request begins to time a request to the model; said is to be called at every text and
// ended at the end.
func (m *metrics) request(name string) (said func(), ended func(error)) {
	name = m.label(name)
	began, silent := time.Now(), true
	said = func() {
		if silent {
			silent = false
			m.first.WithLabelValues(name).Observe(time.Since(began).Seconds())
		}
	}
	ended = func(err error) {
		m.asked.WithLabelValues(name, outcomeOf(err)).Observe(time.Since(began).Seconds())
	}
	return said, ended
}

// outcomeOf names how a request to a model ended.
func outcomeOf(err error) string {
	if err == nil || errors.Is(err, errFull) {
		return noFault
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return strings.ToLower(string(f.Code))
	}
	return "stopped" // by us: the run was cancelled, or the fence is lost
}

func (m *metrics) attempt(ended bool, err error) {
	outcome := "left" // another attempt or work item holds the job
	switch {
	case err != nil:
		outcome = "interrupted"
	case ended:
		outcome = "ended"
	}
	m.runs.WithLabelValues(outcome).Inc()
}
