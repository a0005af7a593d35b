package config

import (
	"net"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
)

const (
	// maxTries limits the agents that one harmful task can ruin.
	maxTries = 10
	// maxNested is deeper than any useful tree of tasks, and far from the size limit of one event.
	maxNested = 64
)

// task validates the settings of tasks.
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
			p.add(v.path, "%s is not a valid time", v.d)
		}
	}
	if c.Tries < 1 || c.Tries > maxTries {
		p.add("task.tries", "%d must be from 1 to %d", c.Tries, maxTries)
	}
	if c.MaxDepth < 1 || c.MaxDepth > maxNested {
		p.add("task.max_depth", "%d must be from 1 to %d", c.MaxDepth, maxNested)
	}
}

// assistant validates the settings of the built-in agent.
func (p *problems) assistant(a *Assistant) {
	if a.Enabled && a.Name == "" {
		p.add("assistant.name", "set a name, or set assistant.enabled to false")
	}
}

// asp validates the settings of the Agent Swarm Protocol.
func (p *problems) asp(g *Gateway) {
	if !slices.Contains([]string{ASPMessagesText, ASPMessagesObject}, g.ASPMessages) {
		p.add("gateway.asp_messages", "%q is neither text nor object", g.ASPMessages)
	}
	if !slices.Contains([]command.Vocabulary{command.VocabularySDK, command.VocabularyDocument}, command.Vocabulary(g.ASPStatuses)) {
		p.add("gateway.asp_statuses", "%q is neither sdk nor document", g.ASPStatuses)
	}
}

// original is a setting with an additional address, the default address of a protocol's original server.
type original struct{ path, addr string }

// LegacyOff as an additional address disables that address.
const LegacyOff = "off"

// originals fills in the additional addresses and returns them. It omits the address for ORBIT if the gateway listens there
// anyway.
func (c *Config) originals() []original {
	l := &c.Gateway.Legacy
	host, main, err := net.SplitHostPort(c.Addr)
	var out []original
	for _, v := range []struct {
		name, port string
		addr       *string
	}{
		{"client", "3001", &l.Client},
		{"agent", "3000", &l.Agent},
		{"service", "3002", &l.Service},
		{"myagent", "8080", &l.MyAgent},
		{"orbit", "9000", &l.ORBIT},
		{"team", "8000", &l.Team},
	} {
		if *v.addr == "" && c.Legacy && err == nil && (v.addr != &l.ORBIT || main != v.port) {
			*v.addr = net.JoinHostPort(host, v.port)
		}
		out = append(out, original{"gateway.legacy." + v.name, *v.addr})
	}
	return out
}

// legacy validates the additional addresses by the rules of the gateway's own address.
func (p *problems) legacy(c *Config) {
	seen := map[string]bool{}
	for _, l := range c.originals() {
		if l.addr == "" || l.addr == LegacyOff {
			continue
		}
		p.hostPort(l.path, l.addr)
		host, port, err := net.SplitHostPort(l.addr)
		if err == nil && c.Auth.Empty() && !loopback(host) {
			p.add(l.path, "%s can be reached from other machines without authentication", l.addr)
		}
		if port != "0" && (seen[l.addr] || l.addr == c.Addr) {
			p.add(l.path, "%s is taken by another setting", l.addr)
		}
		seen[l.addr] = true
	}
}
