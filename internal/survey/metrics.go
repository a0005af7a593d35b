package survey

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/internal/telemetry"
)

// metrics of the installation. The labels are names of services and of streams, which are fixed.
type metrics struct {
	pending, out, again    *prometheus.GaugeVec // by service
	replicas               *prometheus.GaugeVec
	messages, bytes, limit *prometheus.GaugeVec // by stream
	leader, missing, lag   *prometheus.GaugeVec
	dead, newest, looked   prometheus.Gauge
	errors                 prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		pending:  gauges("waggle_queue_pending_commands", "Commands of a service that wait, and were never delivered.", "service"),
		out:      gauges("waggle_queue_unacknowledged_commands", "Commands of a service that were delivered and are not done.", "service"),
		again:    gauges("waggle_queue_redelivered_commands", "Commands of a service that are not done and were delivered more than once.", "service"),
		replicas: gauges("waggle_service_replicas", "Replicas of a service that are listed in the directory.", "service"),
		messages: gauges("waggle_stream_messages", "Messages in a stream.", "stream"),
		bytes:    gauges("waggle_stream_bytes", "Size of a stream in bytes, one copy of it.", "stream"),
		limit:    gauges("waggle_stream_max_bytes", "The size in bytes at which a stream drops or refuses messages; 0 = none.", "stream"),
		leader:   gauges("waggle_stream_leader", "1 if a stream has a leader that answers; without one nothing can be written.", "stream"),
		missing:  gauges("waggle_stream_replicas_missing", "Copies of a stream that are away, or behind its leader.", "stream"),
		lag:      gauges("waggle_stream_replica_lag_operations", "Operations by which the copy that is furthest behind misses its leader.", "stream"),
		dead:     single("waggle_dead_letters", "Commands that were given up and are kept in the stream DEAD."),
		newest:   single("waggle_dead_newest_timestamp_seconds", "When the newest dead letter was written, in seconds since 1970; 0 = none."),
		looked:   single("waggle_survey_timestamp_seconds", "When the streams and queues were last measured, in seconds since 1970; 0 = another replica measures."),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waggle_survey_errors_total", Help: "Measurements of streams and queues that failed.",
		}),
	}
	return m, telemetry.Register(
		r, "the survey", m.pending, m.out, m.again, m.replicas, m.messages, m.bytes, m.limit, m.leader, m.missing, m.lag, m.dead, m.newest, m.looked, m.errors,
	)
}

// reset clears the metrics: another replica measures.
func (m *metrics) reset() {
	for _, v := range []*prometheus.GaugeVec{m.pending, m.out, m.again, m.replicas, m.messages, m.bytes, m.limit, m.leader, m.missing, m.lag} {
		v.Reset()
	}
	for _, g := range []prometheus.Gauge{m.dead, m.newest, m.looked} {
		g.Set(0)
	}
}

func gauges(name, help, label string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{label})
}

func single(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}
