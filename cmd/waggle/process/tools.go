package process

import (
	"context"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func (p *process) tools(context.Context) (lifecycle.Component, error) {
	c := p.Config.Tools
	file := ""
	if p.Source != nil {
		file = p.Source.File
	}
	secret := p.Config.SecretPaths(file)
	servers := make([]mcp.Config, len(c.Servers))
	for i, s := range c.Servers {
		tenants, err := tenants(s.Tenants)
		if err != nil {
			return nil, fmt.Errorf("tools.servers[%d].tenants: %w", i, err)
		}
		box := c.SandboxOf(&s)
		box.Secret = secret
		servers[i] = mcp.Config{
			Name: s.Name, Command: s.Command, Env: config.Reveal(s.Env), Dir: s.Dir,
			URL: s.URL, Headers: config.Reveal(s.Headers), OAuth: s.OAuth.Client(), Timeout: s.Timeout, OutputCap: s.OutputCap,
			ReadOnly: s.ReadOnly, Idempotent: s.Idempotent, IgnoreHints: s.IgnoreHints,
			KeepOnCancel: s.KeepOnCancel, Tenants: tenants, Sandbox: box, Rules: c.RulesOf(&s),
			PerTenant: s.PerTenant, MaxPrograms: s.PerTenantMax, RestAfter: s.PerTenantRest,
		}
	}
	return service.New(service.Config{
		Workspace: p.Config.Workspace, Builtin: c.Builtin, Servers: servers, Services: c.Services,
		MaxCalls: c.MaxCalls, MaxTenantCalls: c.MaxTenantCalls,
		BuiltinRules: tools.Rules{Approval: c.BuiltinApproval}, ServiceRules: c.RulesOfServices(), Quota: p.quotas(),
		FirstMaxWait: firstToolsMaxWait,
	}, service.Deps{
		Conn: p.conn, Directory: p.directory,
		Logger: p.Logger.With().Str("role", "tools").Logger(), Registry: p.registry,
		Now:        p.clock.Now,
		Signatures: p.signing.Verifier,
	})
}

// firstToolsMaxWait lets a server that answers at once have its tools ready for the first question, and delays the start of a
// process with a slow one no longer than a person notices.
const firstToolsMaxWait = 2 * time.Second

func tenants(names []string) ([]id.Tenant, error) {
	out := make([]id.Tenant, len(names))
	for i, n := range names {
		var err error
		if out[i], err = id.ParseTenant(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}
