package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Outcomes of a delivery.
const (
	outcomeDone   = "done"
	outcomeRetry  = "retry"       // failed, to be retried
	outcomeDead   = "dead"        // given up
	outcomeBack   = "handed_back" // unfinished, because this process is leaving
	outcomeUnsure = "claim_lost"  // another replica may have it
)

// metrics holds the metrics of one service in one process.
type metrics struct {
	handled *prometheus.CounterVec
	age     prometheus.Observer
	took    prometheus.Observer
	on      prometheus.Gauge
	again   prometheus.Counter
	service string
}

// Bounds of the histograms in seconds: an idle queue takes a command within milliseconds, a model's answer takes
// minutes, and the stream drops commands after a day.
var (
	ageBuckets  = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 15, 60, 600, 3600, 86400}
	tookBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 15, 60, 300}
)

// newMetrics registers the metrics, or reuses those of another component of the process. With a nil registry it does
// not export them.
func newMetrics(r prometheus.Registerer, service id.Name) (*metrics, error) {
	labels := []string{"service"}
	handled, err1 := register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waggle_command_handled_total", Help: "Deliveries and attempts in place by service and outcome.",
	}, []string{"service", "outcome"}))
	age, err2 := register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "waggle_command_age_seconds", Buckets: ageBuckets,
		Help: "Time from the acceptance of a command to the start of an attempt.",
	}, labels))
	took, err3 := register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "waggle_command_duration_seconds", Help: "Time that one attempt took.", Buckets: tookBuckets,
	}, labels))
	on, err4 := register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waggle_command_in_progress", Help: "Commands that are being handled.",
	}, labels))
	again, err5 := register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waggle_command_redeliveries_total", Help: "Deliveries of commands that had been delivered before: their worker died, was too slow, or failed.",
	}, labels))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	s := service.String()
	return &metrics{
		handled: handled, age: age.WithLabelValues(s), took: took.WithLabelValues(s), on: on.WithLabelValues(s),
		again: again.WithLabelValues(s), service: s,
	}, nil
}

func register[C prometheus.Collector](r prometheus.Registerer, c C) (C, error) {
	if r == nil {
		return c, nil
	}
	err := r.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := already.ExistingCollector.(C); ok {
			return same, nil
		}
	}
	if err != nil {
		return c, fmt.Errorf("register command metrics: %w", err)
	}
	return c, nil
}

// count counts the outcome of a delivery.
func (m *metrics) count(outcome string) { m.handled.WithLabelValues(m.service, outcome).Inc() }

// begin counts an attempt at a command that was accepted at the given time.
func (m *metrics) begin(accepted time.Time) (end func(outcome string)) {
	now := time.Now()
	m.age.Observe(now.Sub(accepted).Seconds())
	m.on.Inc()
	return func(outcome string) {
		m.on.Dec()
		m.took.Observe(time.Since(now).Seconds())
		m.count(outcome)
	}
}
