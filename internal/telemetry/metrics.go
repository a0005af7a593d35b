package telemetry

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// NewRegistry returns a registry with the metrics of the Go runtime and of the process.
func NewRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Register registers the metrics of the named part. A nil registry does not export them.
func Register(r prometheus.Registerer, what string, metrics ...prometheus.Collector) error {
	if r == nil {
		return nil
	}
	for _, m := range metrics {
		if err := r.Register(m); err != nil {
			return fmt.Errorf("register metrics of %s: %w", what, err)
		}
	}
	return nil
}

// Tester is the part of testing.TB that Lint needs, so that the program does not link package testing.
type Tester interface {
	Helper()
	Errorf(format string, args ...any)
}

// Lint fails the test for every metric of g that breaks the Prometheus naming rules, does not start with "waggle_" or
// lacks a help text, and for a g without any metric of Waggle. It ignores the collectors of NewRegistry.
func Lint(t Tester, g prometheus.Gatherer) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Errorf("gather metrics: %v", err)
		return
	}
	ours := families[:0]
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		ours = append(ours, f)
		if !strings.HasPrefix(f.GetName(), "waggle_") {
			t.Errorf("metric %s does not start with waggle_", f.GetName())
		}
		if f.GetHelp() == "" {
			t.Errorf("metric %s has no help text", f.GetName())
		}
	}
	if len(ours) == 0 {
		t.Errorf("no metric to lint: use the metrics once before")
	}
	problems, err := promlint.NewWithMetricFamilies(ours).Lint()
	if err != nil {
		t.Errorf("lint metrics: %v", err)
	}
	for _, p := range problems {
		t.Errorf("metric %s: %s", p.Metric, p.Text)
	}
}
