package process

import (
	"net"
	"runtime"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/cmd/waggle/process/listener"
	"github.com/waggle-dev/waggle/internal/telemetry"
)

// busMetrics describe the process' connection to NATS.
type busMetrics struct {
	up    prometheus.Gauge
	lost  prometheus.Counter
	slow  prometheus.Counter
	build prometheus.Gauge
}

// measure registers the metrics of the process itself.
func (p *process) measure() error {
	p.bus = busMetrics{
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waggle_bus_connected", Help: "1 while the process is connected to NATS.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waggle_bus_disconnects_total", Help: "How often the connection to NATS was lost.",
		}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "waggle_bus_slow_subscriptions_total", Help: "How often a subscription lost messages because they were not taken fast enough; logs are healed then.",
		}),
		build: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waggle_build_info", Help: "Always 1; the labels say which version runs, which roles, and with which Go.",
			ConstLabels: prometheus.Labels{"version": p.Version, "roles": p.name(), "go_version": runtime.Version()},
		}),
	}
	p.bus.build.Set(1)
	muted := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "waggle_bus_muted", Help: "1 while NATS takes no messages of the process for a stream, although it is connected.",
	}, p.muted)
	return telemetry.Register(p.registry, "the process", p.bus.up, p.bus.lost, p.bus.slow, p.bus.build, muted)
}

// muted is the value of the gauge for a bus that takes no messages.
func (p *process) muted() float64 {
	if p.conn != nil && p.conn.Trouble() != nil {
		return 1
	}
	return 0
}

// watchBus counts events of the connection until stop is called.
func (p *process) watchBus() (stop func()) {
	p.bus.up.Set(1)
	unwatch := p.conn.Watch(func(up bool) {
		if up {
			p.bus.up.Set(1)
			return
		}
		p.bus.up.Set(0)
		p.bus.lost.Inc()
	})
	unslow := p.conn.OnSlow(func(*nats.Subscription) { p.bus.slow.Inc() })
	return func() { unwatch(); unslow() }
}

// telemetry returns the component, or nil if the configuration has none.
func (p *process) telemetry() *listener.Listener {
	if p.Config.Telemetry.Addr == "" {
		return nil
	}
	t := listener.NewTelemetry(p.Config.Telemetry.Addr, p.registry)
	p.internal = t.Addr
	return t
}

// nowhere is the address of a component that a process does not have.
func nowhere() net.Addr { return nil }
