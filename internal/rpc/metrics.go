package rpc

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// outcomeDone is the outcome of a successful request; other outcomes are fault codes.
const outcomeDone = "done"

type metrics struct {
	handled *prometheus.CounterVec
	took    *prometheus.HistogramVec
}

// tookBuckets in seconds: a read of the newest event takes a millisecond, a whole history a second, and handlers end
// after 30 s.
var tookBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30}

// newMetrics registers the metrics, or reuses those of another server of the process. With a nil registry it does not
// export them.
func newMetrics(r prometheus.Registerer, service id.Name) (*metrics, error) {
	handled, err1 := register(r, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waggle_rpc_handled_total", Help: "Requests answered by service, verb and outcome (done or a fault code).",
	}, []string{"service", "verb", "outcome"}))
	took, err2 := register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "waggle_rpc_duration_seconds", Help: "Time that handling a request took.", Buckets: tookBuckets,
	}, []string{"service", "verb"}))
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("metrics of the %s service: %w", service, err)
	}
	return &metrics{handled: handled, took: took}, nil
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
	return c, err
}
