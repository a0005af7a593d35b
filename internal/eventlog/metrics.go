package eventlog

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/internal/telemetry"
)

// Reasons of waggle_log_heals_total.
const (
	healGap   = "gap"   // an announcement was missing, the next one showed it
	healCheck = "check" // a tail check found events whose announcements never arrived
)

// Triggers of waggle_log_checks_total.
const (
	checkSettle    = "settle"    // shortly after one of the others
	checkReconnect = "reconnect" // the connection was lost
	checkSlow      = "slow"      // the client library dropped announcements
	checkLeader    = "leader"    // a stream has a new leader
	checkPeriod    = "period"    // Options.Check
)

type metrics struct {
	append    prometheus.Histogram
	conflicts *prometheus.CounterVec
	heals     *prometheus.CounterVec
	checks    *prometheus.CounterVec
	reads     *prometheus.CounterVec
	watched   prometheus.Gauge
	viewers   prometheus.Gauge
	lags      prometheus.Counter
	ringBytes prometheus.Gauge
	events    *prometheus.CounterVec
	delivery  prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, lag func() (sum, most uint64)) (*metrics, error) {
	m := &metrics{
		append: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "waggle_log_append_seconds", Help: "Time from the first attempt to append an event until it is known to be stored.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 16), // 0.25 ms (R1 measured) to 8 s (a killed R3 leader)
		}),
		conflicts: counters("waggle_log_conflicts_total", "Append attempts that did not succeed at once, by code.", "code"),
		heals:     counters("waggle_log_heals_total", "Holes in the announcements of a watched log that were filled by reading, by reason.", "reason"),
		checks:    counters("waggle_log_checks_total", "Comparisons of the tail of a watched log with its stream, by trigger.", "trigger"),
		reads:     counters("waggle_log_catch_up_batches_total", "Batches handed to viewers that are not live, by source.", "source"),
		watched:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "waggle_log_watched", Help: "Logs with a subscription to their announcements."}),
		viewers:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "waggle_log_viewers", Help: "Viewers of logs."}),
		lags:      prometheus.NewCounter(prometheus.CounterOpts{Name: "waggle_log_viewer_lags_total", Help: "How often a viewer was full and left live mode."}),
		ringBytes: prometheus.NewGauge(prometheus.GaugeOpts{Name: "waggle_log_ring_bytes", Help: "Memory of recent events of watched logs, estimated."}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waggle_log_events_total", Help: "Events that this process has appended, by the kind of log and the type of event.",
		}, []string{"kind", "type"}),
		delivery: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "waggle_log_delivery_seconds", Help: "Time from an event's own time to its delivery to live viewers here; clocks of two machines are in it.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15), // 0.5 ms (R1 measured) to 8 s (a killed R3 leader)
		}),
	}
	all := []prometheus.Collector{
		m.append, m.conflicts, m.heals, m.checks, m.reads, m.watched, m.viewers, m.lags, m.ringBytes, m.events, m.delivery,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "waggle_log_lag_events", Help: "Events of watched logs that are known to exist and have not been delivered to live viewers, over all logs.",
		}, func() float64 { sum, _ := lag(); return float64(sum) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "waggle_log_lag_max_events", Help: "The same of the one watched log that is furthest behind.",
		}, func() float64 { _, most := lag(); return float64(most) }),
	}
	return m, telemetry.Register(reg, "the event log", all...)
}

func counters(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
}
