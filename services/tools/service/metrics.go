package service

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/mcp"
)

// noServer is the label of calls without a server.
const noServer = "none"

type metrics struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	servers *prometheus.GaugeVec
	missed  prometheus.Counter
}

// newMetrics registers the metrics; a nil registry hides them.
func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waggle_tools_calls_total", Help: "Tool calls that ended, by server and outcome.",
		}, []string{"server", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "waggle_tools_call_seconds", Help: "How long tool calls took.",
			// The buckets extend from a file read to the default time limit of a call.
			Buckets: []float64{.001, .005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"server"}),
		servers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "waggle_tools_servers", Help: "Tool servers by state.",
		}, []string{"state"}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waggle_tools_notifications_dropped_total",
			Help: "Notifications of services that were too many, or came faster than their callers took them.",
		}),
	}
	return m, telemetry.Register(r, "tools", m.calls, m.seconds, m.servers, m.missed)
}

// called counts one call. The outcome is ok, tool_error or the fault's code.
func (m *metrics) called(server string, f *fault.Fault, r tools.Result, took time.Duration) {
	outcome := "ok"
	switch {
	case f != nil:
		outcome = strings.ToLower(string(f.Code))
	case r.IsError:
		outcome = "tool_error"
	}
	m.calls.WithLabelValues(server, outcome).Inc()
	m.seconds.WithLabelValues(server).Observe(took.Seconds())
}

// stateOf returns a function that moves one server from state to state.
func (m *metrics) stateOf() func(string) {
	for _, s := range mcp.States {
		m.servers.WithLabelValues(s).Add(0)
	}
	last := ""
	return func(s string) {
		if last != "" {
			m.servers.WithLabelValues(last).Dec()
		}
		m.servers.WithLabelValues(s).Inc()
		last = s
	}
}
