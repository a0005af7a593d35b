package config

import (
	"net"
	"time"
)

const (
	// maxTries keeps a task that ruins its agents from ruining many.
	maxTries = 10
	// maxNested is deeper than any useful tree of tasks, and far from the limits of
	// what one event may hold.
	maxNested = 64
)

// task judges how tasks of the swarm are carried out.
func (p *problems) task(c *Task) {
	for _, v := range []struct {
		path string
		d    time.Duration
	}{
		{"task.queue_timeout", c.QueueTimeout},
		{"task.ask_timeout", c.AskTimeout},
		{"task.lease", c.Lease},
		{"task.pause", c.Pause},
		{"task.keep", c.Keep},
	} {
		if v.d <= 0 {
			p.add(v.path, "%s is no time", v.d)
		}
	}
	if c.Tries < 1 || c.Tries > maxTries {
		p.add("task.tries", "%d is not from 1 to %d", c.Tries, maxTries)
	}
	if c.MaxDepth < 1 || c.MaxDepth > maxNested {
		p.add("task.max_depth", "%d is not from 1 to %d", c.MaxDepth, maxNested)
	}
}

// assistant judges the agent that offers the model.
func (p *problems) assistant(a *Assistant) {
	if a.Enabled && a.Name == "" {
		p.add("assistant.name", "name it, or set assistant.enabled to false")
	}
}

// legacy judges the additional addresses, for which the same holds as for the first.
func (p *problems) legacy(c *Config) {
	seen := map[string]bool{}
	for _, l := range []struct{ path, addr string }{
		{"gateway.legacy.client", c.Gateway.Legacy.Client},
		{"gateway.legacy.agent", c.Gateway.Legacy.Agent},
		{"gateway.legacy.service", c.Gateway.Legacy.Service},
	} {
		if l.addr == "" {
			continue
		}
		p.hostPort(l.path, l.addr)
		host, port, err := net.SplitHostPort(l.addr)
		if err == nil && c.Auth.Empty() && !loopback(host) {
			p.add(l.path, "%s can be reached from other machines, and nobody would have to authenticate", l.addr)
		}
		if port != "0" && (seen[l.addr] || l.addr == c.Addr) {
			p.add(l.path, "%s is taken by another setting", l.addr)
		}
		seen[l.addr] = true
	}
}
