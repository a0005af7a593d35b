package gateway

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// otherCode stands for close codes outside the known set.
const otherCode = "other"

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: s.dep.Registry, codes: closeCodes(),
		frames:    counter("frames_in_total", "Messages and control frames received."),
		received:  counter("received_bytes_total", "Bytes of messages received, without framing."),
		lags:      counters("lag_entries_total", "How often a viewer took fewer events than were offered, by reason: its queue is full, stored data is being loaded, or an expired history is being shown.", "reason"),
		acks:      counter("acks_total", "Acknowledgements of events sent on, after coalescing."),
		strays:    counter("acks_dropped_total", "Acknowledgements that were dropped: they could not be read, named no session that the client may see, or came too fast."),
		lost:      counter("asides_lost_total", "Answers to one connection that had no room in its queue."),
		closes:    counters("closes_total", "Sockets that ended, by close code; 1006 = without one.", "code"),
		refused:   counters("refused_total", "Requests for a socket that were refused, by reason.", "reason"),
		faults:    counters("faults_total", "Error frames sent, by code.", "code"),
		dropped:   counters("peer_frames_dropped_total", "Frames of agents, services and clients of the swarm that had no effect and no answer, by code.", "code"),
		oversized: counters("peer_frames_oversized_total", "Frames of agents, services and clients of the swarm beyond gateway.peers.read_limit, by role.", "role"),
		resumes:   counters("resumes_total", "Streams of threads that clients have joined or resumed, by kind: warm behind a position, cold with what came before.", "kind"),
		requests:  counter("http_requests_total", "HTTP requests that have come, streams and handshakes included."),
		reports:   counters("page_reports_total", "Reports of browsers about pages of the console that broke their security policy, by directive.", "directive"),
		expired:   counter("resumes_expired_total", "Streams of threads that could not be resumed, because the position has expired."),
	}
	stats := func() ws.Stats {
		if hub := s.sockets(); hub != nil {
			return hub.Stats()
		}
		return ws.Stats{}
	}
	m.all = []prometheus.Collector{
		m.frames, m.received, m.lags, m.acks, m.strays, m.lost, m.closes, m.refused, m.faults, m.dropped, m.oversized, m.resumes, m.expired, m.reports, m.requests,
		&sockets{s}, &laggards{s},
		gauge("sessions", "Sessions on sockets that hold several.", func() float64 { return float64(s.multi.Count()) }),
		gauge("peers", "Participants of the swarm with a presence on this gateway, also during their grace.", func() float64 { return float64(s.swarm.Count()) }),
		gauge("max_connections", "Sockets of authenticated clients that this gateway takes.", func() float64 { return float64(s.cfg.MaxConnections) }),
		gauge("http_requests", "HTTP requests that are being answered, streams included.", func() float64 { return float64(s.answering.Load()) }),
		gauge("unauthenticated", "Connections that have not authenticated, from the moment they are accepted.", func() float64 { return float64(s.arrivals.Strangers.Len()) }),
		sum("evicted_total", "Connections without credentials that were closed, the oldest first, because more came than the gateway keeps.", func() float64 { return float64(s.arrivals.Strangers.Evicted()) }),
		gauge("large_messages", "Messages beyond gateway.read_limit that are being read or handled.", func() float64 { return float64(stats().Large) }),
		gauge("queue_bytes", "Bytes that wait to be written, over all sockets.", func() float64 { return float64(stats().QueuedBytes) + float64(s.conns.queued()) }),
		sum("frames_out_total", "Frames written.", func() float64 { return float64(stats().Frames + s.streams.sent.Messages.Load()) }),
		sum("sent_bytes_total", "Bytes written, with framing.", func() float64 { return float64(stats().BytesWritten + s.streams.sent.Bytes.Load()) }),
		sum("writes_total", "Calls that wrote to a socket.", func() float64 { return float64(stats().Writes + s.streams.sent.Writes.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "waggle_gateway_info", Help: "Always 1; the label says which version runs.",
			ConstLabels: prometheus.Labels{"version": s.dep.Version},
		}, func() float64 { return 1 }),
	}
	for _, why := range stream.Reasons() { // each has a series from the start
		m.lags.WithLabelValues(string(why))
	}
	return m
}

func (m *metrics) register() error { return telemetry.Register(m.registry, "the gateway", m.all...) }

// socketsDesc describes the gauge of open sockets.
var socketsDesc = prometheus.NewDesc("waggle_gateway_connections", "Open sockets, by their protocol.", []string{"dialect"}, nil)

// sockets counts the open sockets of each dialect when it is scraped.
type sockets struct{ s *Server }

// Describe implements prometheus.Collector.
func (*sockets) Describe(ch chan<- *prometheus.Desc) { ch <- socketsDesc }

// Collect implements prometheus.Collector. A dialect without sockets has the value 0, so that
// sums and alerts have a series.
func (c *sockets) Collect(ch chan<- prometheus.Metric) {
	n := map[string]int{protocolEvents: 0}
	if c.s.cells != nil {
		n[protocolForwarded] = 0
	}
	for _, route := range c.s.dep.Routes {
		n[route.protocol] = 0
	}
	for _, open := range c.s.conns.open() {
		n[open.Protocol()]++
	}
	for name, count := range n {
		ch <- prometheus.MustNewConstMetric(socketsDesc, prometheus.GaugeValue, float64(count), name)
	}
}

// lagsDesc describes the gauge of viewers that lag.
var lagsDesc = prometheus.NewDesc("waggle_gateway_lagging_viewers", "Viewers that lag now, by reason.", []string{"reason"}, nil)

// laggards counts the viewers that lag when it is scraped.
type laggards struct{ s *Server }

// Describe implements prometheus.Collector.
func (*laggards) Describe(ch chan<- *prometheus.Desc) { ch <- lagsDesc }

// Collect implements prometheus.Collector. Each reason has a value.
func (c *laggards) Collect(ch chan<- prometheus.Metric) {
	n := map[stream.Reason]int{}
	for _, open := range c.s.conns.open() {
		for _, w := range open.listed().client.Watches().States() {
			n[w.Lag.Reason]++
		}
	}
	for _, why := range stream.Reasons() {
		ch <- prometheus.MustNewConstMetric(lagsDesc, prometheus.GaugeValue, float64(n[why]), string(why))
	}
}

// closed counts the end of a socket.
func (m *metrics) closed(code int) {
	label, ok := m.codes[code]
	if !ok {
		label = otherCode
	}
	m.closes.WithLabelValues(label).Inc()
}

// closeCodes returns the codes that we send and those that clients ordinarily send.
func closeCodes() map[int]string {
	m := map[int]string{}
	for _, code := range []int{1000, 1001, 1002, 1005, 1006, binding.ClosePolicy, binding.CloseInternal, closeTryLater} {
		m[code] = strconv.Itoa(code)
	}
	for _, e := range fault.Catalogue {
		if e.Close != 0 {
			m[e.Close] = strconv.Itoa(e.Close)
		}
	}
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "waggle", Subsystem: "gateway", Name: name, Help: help})
}

func counters(name, help, label string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "waggle", Subsystem: "gateway", Name: name, Help: help}, []string{label})
}

func gauge(name, help string, f func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "waggle", Subsystem: "gateway", Name: name, Help: help}, f)
}

func sum(name, help string, f func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "waggle", Subsystem: "gateway", Name: name, Help: help}, f)
}
