package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// away is how long what was killed stays away: longer than its work takes to be
	// missed where that is seen by a lost connection.
	away = 3 * time.Second
	// election is longer than NATS takes to replace a leader that was killed: 4 to 7.4 s
	// were measured.
	election = 8 * time.Second
	// lease is longer than a silent worker keeps its work: 10 s.
	lease = 13 * time.Second
	// apart is how long a network stays broken: longer than connections are given to
	// show a sign of life (10 s).
	apart = 12 * time.Second
)

// Fault is one way to break an installation.
type Fault struct {
	Name   string
	Alone  bool // needs networks of its own
	Strike func(ctx context.Context, n *Injector) error
	Clock  bool // needs clocks that can be set; no deadline may pass because of it
	// Returns, if set, is how often any client may come back, -1 = never. Such a fault is
	// a graceful one: no request may be answered with an error either.
	Returns int
}

// Smoke are the faults of the short run: of every kind one.
func Smoke() []Fault {
	names := []string{
		"kill -9 gateway", "kill -9 worker", "kill -9 NATS leader", "pause task past its lease", "drain gateway",
		"step-down of every leader", "partition gateway from NATS", "commands twice",
	}
	var out []Fault
	for _, name := range names {
		for _, f := range Matrix() {
			if f.Name == name {
				out = append(out, f)
			}
		}
	}
	return out
}

// Matrix are all faults.
func Matrix() []Fault {
	out := kills()
	out = append(out, pauses()...)
	out = append(out, restarts()...)
	out = append(out, networks()...)
	out = append(out, disks()...)
	out = append(out, chains()...)
	out = append(out, viewers()...)
	return append(out, clocks()...)
}

func kills() []Fault {
	out := []Fault{{Name: "kill -9 gateway", Strike: func(ctx context.Context, n *Injector) error {
		return n.killFor(ctx, away, n.one(n.s.Gateways))
	}}}
	for _, role := range config.Roles {
		if role != config.RoleGateway {
			out = append(out, Fault{Name: "kill -9 " + role, Strike: func(ctx context.Context, n *Injector) error {
				return n.killFor(ctx, away, n.service(role))
			}})
		}
	}
	return append(
		out,
		Fault{Name: "kill -9 NATS leader", Strike: func(ctx context.Context, n *Injector) error {
			m, err := n.leader(ctx, n.stream())
			if err != nil {
				return err
			}
			return n.killFor(ctx, election, m)
		}},
		Fault{Name: "kill -9 all of NATS", Strike: func(ctx context.Context, n *Injector) error {
			return n.killFor(ctx, away, n.s.Servers...)
		}},
	)
}

func pauses() []Fault {
	pause := func(role string) func(context.Context, *Injector) error {
		return func(ctx context.Context, n *Injector) error { return n.pauseFor(ctx, lease, n.service(role), nil) }
	}
	return []Fault{
		{Name: "pause task past its lease", Strike: pause(config.RoleTask)},
		{Name: "pause worker past its lease", Strike: pause(config.RoleWorker)},
		{Name: "pause pipeline past its lease", Strike: pause(config.RolePipeline)},
		{Name: "pause gateway", Strike: func(ctx context.Context, n *Injector) error {
			return n.pauseFor(ctx, lease, n.one(n.s.Gateways), nil)
		}},
		{Name: "pause NATS server", Strike: func(ctx context.Context, n *Injector) error {
			return n.pauseFor(ctx, apart, n.one(n.s.Servers), nil)
		}},
	}
}

func restarts() []Fault {
	return []Fault{
		{Name: "drain gateway", Returns: 1, Strike: func(_ context.Context, n *Injector) error {
			return n.stop(n.one(n.s.Gateways))
		}},
		{Name: "restart every service", Returns: -1, Strike: func(ctx context.Context, n *Injector) error {
			return n.rollServices(ctx)
		}},
		{Name: "step-down of every leader", Returns: -1, Strike: func(ctx context.Context, n *Injector) error {
			streams := append([]string{subject.StreamCommands}, subject.TimerStreams()...)
			for _, p := range subject.DefaultPartitions.All() {
				streams = append(streams, p.EventStream())
			}
			for _, stream := range streams {
				if err := n.stepDown(ctx, stream); err != nil {
					return err
				}
			}
			n.note("the leaders of %v gave up; each time an election was announced", streams)
			return nil
		}},
		{Name: "rolling restart of everything", Returns: site.Replicas, Strike: func(ctx context.Context, n *Injector) error {
			for _, g := range n.s.Gateways {
				if err := errors.Join(n.stop(g), n.s.Healthy(ctx), n.hold(ctx, away)); err != nil {
					return err
				}
			}
			if err := n.rollServices(ctx); err != nil {
				return err
			}
			for _, m := range n.s.Servers {
				if err := errors.Join(n.stop(m), n.s.Healthy(ctx)); err != nil {
					return err
				}
			}
			return nil
		}},
		{Name: "commands twice", Returns: -1, Strike: func(ctx context.Context, n *Injector) error {
			return n.repeatFor(ctx, apart/2)
		}},
	}
}

// rollServices restarts one process after the other, each when the one before is well.
func (n *Injector) rollServices(ctx context.Context) error {
	for _, role := range config.Roles {
		for _, m := range n.s.Services[role] {
			if err := errors.Join(n.stop(m), m.Healthy(ctx), n.hold(ctx, time.Second)); err != nil {
				return err
			}
		}
	}
	return nil
}

func networks() []Fault {
	slow := func(prefix string) func(context.Context, *Injector) error {
		return func(ctx context.Context, n *Injector) error {
			began := time.Now()
			heal, err := n.s.Proxies.Slow(prefix)
			if err != nil {
				return err
			}
			defer func() { _ = heal() }() // says nothing
			if _, err := site.Request(ctx, http.MethodGet, "http://"+n.s.Proxies.End("gateway-2")+"/livez", "", ""); err != nil && prefix == "gateway" {
				return err
			}
			if took := time.Since(began); prefix == "gateway" && took < 100*time.Millisecond {
				return fmt.Errorf("a request took %v: nothing is slow", took)
			}
			n.note("lines %s... are slow: 200 ms, pieces of 64 bytes", prefix)
			return n.hold(ctx, apart/2)
		}
	}
	lossy := func(pick func(*Injector) *site.Member) func(context.Context, *Injector) error {
		return func(ctx context.Context, n *Injector) error {
			m := pick(n)
			return n.cutFor(ctx, apart, m, site.Loss, n.allAddresses(m), nil)
		}
	}
	gateway := func(n *Injector) *site.Member { return n.s.Gateways[0] } // the other one has lines that can be slowed down
	server := func(n *Injector) *site.Member { return n.one(n.s.Servers) }
	return []Fault{
		{Name: "partition gateway from NATS", Alone: true, Strike: func(ctx context.Context, n *Injector) error {
			return n.cutFor(ctx, apart, gateway(n), site.BothWays, n.bus(), nil)
		}},
		{Name: "partition agent from NATS", Alone: true, Strike: func(ctx context.Context, n *Injector) error {
			return n.cutFor(ctx, apart, n.service(config.RoleWorker), site.BothWays, n.bus(), nil)
		}},
		{Name: "partition NATS server", Alone: true, Strike: func(ctx context.Context, n *Injector) error {
			m := server(n)
			return n.cutFor(ctx, apart, m, site.BothWays, n.allAddresses(m), nil)
		}},
		{Name: "NATS server from NATS servers", Alone: true, Strike: func(ctx context.Context, n *Injector) error {
			m := server(n)
			return n.cutFor(ctx, apart, m, site.BothWays, n.bus(m), nil)
		}},
		{Name: "one way to NATS server", Alone: true, Strike: func(ctx context.Context, n *Injector) error {
			m := server(n)
			return n.cutFor(ctx, apart, m, site.Inbound, n.bus(m), nil)
		}},
		{Name: "one way to gateway", Alone: true, Strike: func(ctx context.Context, n *Injector) error {
			return n.cutFor(ctx, apart, gateway(n), site.Inbound, n.bus(), nil)
		}},
		{Name: "5 % loss at gateway", Alone: true, Strike: lossy(gateway)},
		{Name: "5 % loss at NATS server", Alone: true, Strike: lossy(server)},
		{Name: "slow lines of clients", Strike: slow("gateway")},
		{Name: "slow lines to NATS", Strike: slow("uplink")},
	}
}

func chains() []Fault {
	return []Fault{
		{Name: "pause worker, kill pipeline", Strike: func(ctx context.Context, n *Injector) error {
			return n.pauseFor(ctx, lease, n.service(config.RoleWorker), func() error {
				return n.killFor(ctx, away, n.service(config.RolePipeline))
			})
		}},
		{Name: "pause NATS server, kill leader", Strike: func(ctx context.Context, n *Injector) error {
			m, err := n.leader(ctx, n.stream())
			if err != nil {
				return err
			}
			other := n.otherServer(m)
			return n.pauseFor(ctx, time.Second, other, func() error { return n.killFor(ctx, away, m) })
		}},
		{Name: "partition gateway, kill agent", Alone: true, Strike: func(ctx context.Context, n *Injector) error {
			return n.cutFor(ctx, apart/2, n.s.Gateways[0], site.BothWays, n.bus(), func() error {
				return n.killFor(ctx, away, n.service(config.RoleWorker))
			})
		}},
		{Name: "partition NATS server, kill leader", Alone: true, Strike: func(ctx context.Context, n *Injector) error {
			m, err := n.leader(ctx, n.stream())
			if err != nil {
				return err
			}
			other := n.otherServer(m)
			return n.cutFor(ctx, time.Second, other, site.BothWays, n.bus(other), func() error { return n.killFor(ctx, away, m) })
		}},
	}
}
