package service

import (
	"fmt"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
	"github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/swarm"
)

const (
	// defaultWorkspace is the folder of the file tools without configuration.
	defaultWorkspace = "workspace"
	// everyService stands for all services without rules of their own.
	everyService = "*"
	// defaultMaxCalls allows one tenant eight agents with eight parallel calls each, and others half as many.
	defaultMaxCalls = 96
)

// Config selects the tools.
type Config struct {
	// Workspace is the folder of the built-in server. Empty means ./workspace. New creates a missing folder, with a notes.md
	// in it.
	Workspace string
	Builtin   bool         // offer the built-in server, named "workspace"
	Servers   []mcp.Config // the other servers
	Services  []string     // ids or names of the services of the swarm whose tools models are offered; "*" = all
	// BuiltinRules are those of the built-in server; an empty approval means never: it is confined to the tenant's folder.
	BuiltinRules tools.Rules
	// ServiceRules are those of services of the swarm, by id or name; "*" = all without their own. Services without
	// rules have the strict ones, and their output is untrusted.
	ServiceRules map[string]tools.Rules
	// Quota limits the bytes of the tenants' folders; without a policy unlimited.
	Quota    quota.Config
	MaxCalls int // maximum of concurrent calls; further ones are OVERLOADED. 0 = 96
	// MaxTenantCalls is the maximum of concurrent calls of one tenant; further ones are TOOLS_BUSY. 0 = two thirds of MaxCalls.
	MaxTenantCalls int
	Waits          swarm.Waits // for services of the swarm
	// FirstMaxWait bounds how long Start waits until each of Servers has connected or has failed to, so that the first question
	// finds their tools. 0 = not at all.
	FirstMaxWait time.Duration
}

// withDefaults checks the configuration and fills in defaults. Errors name the option.
func (c Config) withDefaults() (Config, error) {
	if c.Workspace == "" {
		c.Workspace = defaultWorkspace
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = defaultMaxCalls
	}
	if c.BuiltinRules.Approval == "" {
		c.BuiltinRules.Approval = event.ApprovalNever
	}
	if err := c.BuiltinRules.Check(); err != nil {
		return c, fmt.Errorf("tools.builtin_%w", err)
	}
	for name, rules := range c.ServiceRules {
		if err := rules.Check(); err != nil {
			return c, fmt.Errorf("tools.service_rules of %q: %w", name, err)
		}
	}
	if c.MaxTenantCalls == 0 {
		c.MaxTenantCalls = max(1, c.MaxCalls*2/3)
	}
	switch {
	case c.MaxCalls < 0:
		return c, fmt.Errorf("tools.max_calls: must not be negative")
	case c.MaxTenantCalls < 0 || c.MaxTenantCalls > c.MaxCalls:
		return c, fmt.Errorf("tools.max_tenant_calls: must be 1 to %d, the value of tools.max_calls", c.MaxCalls)
	}
	c.Servers = slices.Clone(c.Servers)
	var names []string
	if c.Builtin {
		names = append(names, tools.BuiltinServer)
	}
	for i := range c.Servers {
		if err := c.Servers[i].Complete(); err != nil {
			return c, fmt.Errorf("tools.servers[%d].%w", i, err)
		}
		names = append(names, c.Servers[i].Name)
	}
	return c, offer.CheckProviders(names)
}

// rulesOf returns the rules of the service of that id and name.
func (c *Config) rulesOf(id, name string) tools.Rules {
	for _, key := range []string{id, name, everyService} {
		if rules, ok := c.ServiceRules[key]; ok {
			return rules
		}
	}
	return tools.Rules{Untrusted: true, Agents: true}
}
