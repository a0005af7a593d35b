package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Quota limits tenants and principals. Zero and -1 mean no limit.
type Quota struct {
	Tenant    Limits        `yaml:"tenant" doc:"Limits of each tenant as a whole. 0 also means no limit."`
	Principal Limits        `yaml:"principal" doc:"Limits of each principal. Without authentication all local programs are one. 0 also means no limit."`
	Tenants   []TenantQuota `yaml:"tenants"`
}

// Limits are the quotas of a tenant or of a principal, over all processes.
type Limits struct {
	Connections int64   `yaml:"connections,omitempty" doc:"Open sockets, over all gateways; -1 = no limit."`
	Messages    float64 `yaml:"messages,omitempty" doc:"Messages a second, over all gateways; each admits its share, by its share of the connections. -1 = no limit."`
	Sessions    int64   `yaml:"sessions,omitempty" doc:"Open sessions; -1 = no limit."`
	Tasks       int64   `yaml:"tasks,omitempty" doc:"Open tasks of the swarm; -1 = no limit."`
	Teams       int64   `yaml:"teams,omitempty" doc:"Open teams; -1 = no limit."`

	Tokens         int64         `yaml:"tokens,omitempty" doc:"Tokens that models read and write together a day (UTC), as far as their providers count them; -1 = no limit."`
	CostUSD        float64       `yaml:"cost_usd,omitempty" doc:"US dollars a day (UTC), by models.prices; -1 = no limit."`
	ToolCalls      int64         `yaml:"tool_calls,omitempty" doc:"Tool calls of runs, and of people, a day (UTC); -1 = no limit."`
	Time           time.Duration `yaml:"time,omitempty" doc:"How long workers may be busy with runs a day (UTC); concurrent jobs count each, waiting for people does not. -1s = no limit."`
	WorkspaceBytes int64         `yaml:"workspace_bytes,omitempty" doc:"Bytes of the files in a tenant's part of the workspace, including those that tool programs write; tenants only. -1 = no limit."`
	Children       int64         `yaml:"children,omitempty" doc:"Children that one task of a client may have in total, including their children, until it has ended; tenants only. task.max_depth bounds how deep they are nested. -1 = no limit."`

	OnExceeded string        `yaml:"on_exceeded,omitempty" doc:"What happens to a run that reaches a daily limit: \"stop\" = it fails with QUOTA_EXCEEDED; \"ask\" = people decide whether it continues, with the same amount once more. Empty = stop."`
	AskTimeout time.Duration `yaml:"ask_timeout,omitempty" doc:"How long that question stays open before the run fails; 0 = until it is answered."`
}

// TenantQuota replaces the default limits for one tenant. In each number 0 means the default and -1 no limit.
type TenantQuota struct {
	Tenant     string           `yaml:"tenant" doc:"The tenant; unique."`
	Limits     Limits           `yaml:"limits,omitempty" doc:"Limits of the tenant as a whole: 0 = as quota.tenant, -1 = no limit."`
	Principal  Limits           `yaml:"principal,omitempty" doc:"Limits of each of its principals: 0 = as quota.principal, -1 = no limit."`
	Principals []PrincipalQuota `yaml:"principals,omitempty"`
	Budget     *Budget          `yaml:"budget,omitempty" doc:"Budget of each of its runs, replacing the whole setting budget."`
}

// PrincipalQuota replaces the default limits for one principal of a tenant.
type PrincipalQuota struct {
	Subject string `yaml:"subject" doc:"The principal, as in the API key or the claim sub; unique."`
	Limits  Limits `yaml:"limits" doc:"0 = as the tenant's principals, -1 = no limit."`
}

// Budget limits the consumption of one run. Clients may ask for less. Zero means no limit.
type Budget struct {
	Tokens     int64         `yaml:"tokens,omitempty" doc:"Tokens that the models of a run may read and write together, as far as their providers count them; 0 = no limit."`
	CostUSD    float64       `yaml:"cost_usd,omitempty" doc:"US dollars that a run may cost, by models.prices; 0 = no limit."`
	ToolCalls  int           `yaml:"tool_calls,omitempty" doc:"Tool calls of a run; 0 = no limit."`
	Time       time.Duration `yaml:"time,omitempty" doc:"How long workers may be busy with a run; waiting for people does not count. 0 = no limit."`
	OnExceeded string        `yaml:"on_exceeded,omitempty" doc:"What happens to a run that has used up its budget: \"stop\" = it fails with BUDGET_EXCEEDED; \"ask\" = people decide whether it gets the same amount once more. Empty = stop."`
	AskTimeout time.Duration `yaml:"ask_timeout,omitempty" doc:"How long that question stays open before the run fails; 0 = until it is answered."`
}

// Audit sets the contents and the limits of the audit log.
type Audit struct {
	Enabled   bool          `yaml:"enabled" doc:"Write the audit log (stream AUDIT)."`
	MaxAge    time.Duration `yaml:"max_age" doc:"How long records are kept; 0 = 400 days. Only \"waggle bootstrap --change-audit-retention\" changes an existing log."`
	MaxBytes  int64         `yaml:"max_bytes" doc:"Size limit of the audit log in bytes; the oldest records are dropped first. 0 = 512 MiB. Changed as max_age is."`
	Remote    string        `yaml:"remote" doc:"How clients' addresses are recorded: \"hash\" (keyed), \"plain\" or \"none\"."`
	RemoteKey Secret        `yaml:"remote_key" doc:"Key of the hash. Without one each process makes its own, and hashes can be compared within that process only."`
	Waiting   int           `yaml:"waiting" doc:"Records that may wait to be written; at the bound they are dropped and counted. 0 = 10000."`
}

// Limits that are shipped: a team at work stays far below them, and a program that has run away comes to them within
// hours.
const (
	sessionsOfPrincipal, sessionsOfTenant = 2_000, 10_000
	tasksOfPrincipal, tasksOfTenant       = 2_000, 10_000
	teamsOfPrincipal, teamsOfTenant       = 200, 1_000
	tokensOfPrincipal, tokensOfTenant     = 20_000_000, 100_000_000
	workspaceOfTenant                     = 10 << 30
	childrenOfTask                        = 1_000
)

// DefaultQuota returns the shipped limits.
func DefaultQuota() Quota {
	return Quota{
		Tenant:    Limits{Sessions: sessionsOfTenant, Tasks: tasksOfTenant, Teams: teamsOfTenant, Tokens: tokensOfTenant, WorkspaceBytes: workspaceOfTenant, Children: childrenOfTask},
		Principal: Limits{Sessions: sessionsOfPrincipal, Tasks: tasksOfPrincipal, Teams: teamsOfPrincipal, Tokens: tokensOfPrincipal},
	}
}

// explicit replaces zero by -1 where a limit is shipped: in a printed configuration nothing is left out then.
func (q *Quota) explicit() {
	for _, l := range []*Limits{&q.Tenant, &q.Principal} {
		for _, n := range []*int64{&l.Sessions, &l.Tasks, &l.Teams, &l.Tokens} {
			if *n == 0 {
				*n = quota.None
			}
		}
	}
	for _, n := range []*int64{&q.Tenant.WorkspaceBytes, &q.Tenant.Children} {
		if *n == 0 {
			*n = quota.None
		}
	}
}

// Policy converts the quotas for the services.
func (q Quota) Policy() quota.Policy {
	p := quota.Policy{Tenant: quota.Limits(q.Tenant).Bounded(), Principal: quota.Limits(q.Principal).Bounded(), Tenants: map[string]quota.Override{}}
	for _, t := range q.Tenants {
		o := quota.Override{Tenant: quota.Limits(t.Limits), Principal: quota.Limits(t.Principal), Principals: map[string]quota.Limits{}}
		for _, own := range t.Principals {
			o.Principals[own.Subject] = quota.Limits(own.Limits)
		}
		p.Tenants[t.Tenant] = o
	}
	return p
}

// Of converts the budget for the services.
func (b Budget) Of() event.Budget {
	out := event.Budget{
		Tokens: b.Tokens, CostUSD: b.CostUSD, ToolCalls: b.ToolCalls, Seconds: int64(b.Time / time.Second),
		OnExceeded: b.OnExceeded, AskSeconds: int(b.AskTimeout / time.Second),
	}
	if out.OnExceeded == "" {
		out.OnExceeded = event.BudgetStop
	}
	return out
}

// Budgets returns the budgets of tenants with a budget of their own, by tenant.
func (q Quota) Budgets() map[string]event.Budget {
	out := map[string]event.Budget{}
	for _, t := range q.Tenants {
		if t.Budget != nil {
			out[t.Tenant] = t.Budget.Of()
		}
	}
	return out
}

func (p *problems) quota(q *Quota) {
	p.limits("quota.tenant", q.Tenant)
	p.limits("quota.principal", q.Principal)
	p.ofTenants("quota.principal", q.Principal)
	var seen []string
	for i, t := range q.Tenants {
		at := fmt.Sprintf("quota.tenants[%d]", i)
		if _, err := id.ParseTenant(t.Tenant); err != nil {
			p.add(at+".tenant", "%v", err)
		}
		if slices.Contains(seen, t.Tenant) {
			p.add(at+".tenant", "%q is listed twice", t.Tenant)
		}
		seen = append(seen, t.Tenant)
		p.limits(at+".limits", t.Limits)
		p.limits(at+".principal", t.Principal)
		p.ofTenants(at+".principal", t.Principal)
		for k, own := range t.Principals {
			if own.Subject == "" {
				p.add(fmt.Sprintf("%s.principals[%d].subject", at, k), "must not be empty")
			}
			p.limits(fmt.Sprintf("%s.principals[%d].limits", at, k), own.Limits)
			p.ofTenants(fmt.Sprintf("%s.principals[%d].limits", at, k), own.Limits)
		}
		if t.Budget != nil {
			p.budget(at+".budget", *t.Budget)
		}
	}
}

// ofTenants refuses limits of principals that only tenants have.
func (p *problems) ofTenants(at string, l Limits) {
	if l.WorkspaceBytes != 0 {
		p.add(at+".workspace_bytes", "applies to tenants only: set it in quota.tenant or in limits of quota.tenants")
	}
	if l.Children != 0 {
		p.add(at+".children", "applies to tenants only: set it in quota.tenant or in limits of quota.tenants")
	}
}

// limits refuses numbers below the lowest meaningful one.
func (p *problems) limits(at string, l Limits) {
	for _, v := range []struct {
		name string
		n    float64
	}{
		{"connections", float64(l.Connections)},
		{"messages", l.Messages},
		{"sessions", float64(l.Sessions)},
		{"tasks", float64(l.Tasks)},
		{"teams", float64(l.Teams)},
		{"tokens", float64(l.Tokens)},
		{"cost_usd", l.CostUSD},
		{"tool_calls", float64(l.ToolCalls)},
		{"time", l.Time.Seconds()},
		{"workspace_bytes", float64(l.WorkspaceBytes)},
		{"children", float64(l.Children)},
	} {
		if v.n < 0 && v.n != quota.None {
			p.add(at+"."+v.name, "must not be negative, except -1 (no limit)")
		}
	}
	p.exceeding(at, l.OnExceeded, l.AskTimeout)
}

// exceeding refuses unknown reactions to a reached limit.
func (p *problems) exceeding(at, what string, askTimeout time.Duration) {
	if !slices.Contains([]string{"", event.BudgetStop, event.BudgetAsk}, what) {
		p.add(at+".on_exceeded", "%q is neither stop nor ask", what)
	}
	if askTimeout < 0 {
		p.add(at+".ask_timeout", "must not be negative")
	}
	if askTimeout%time.Second != 0 {
		p.add(at+".ask_timeout", "must be whole seconds")
	}
}

func (p *problems) budget(at string, b Budget) {
	if b.Tokens < 0 || b.CostUSD < 0 || b.ToolCalls < 0 || b.Time < 0 {
		p.add(at, "must not be negative")
	}
	if b.Time%time.Second != 0 {
		p.add(at+".time", "must be whole seconds")
	}
	p.exceeding(at, b.OnExceeded, b.AskTimeout)
}

func (p *problems) audit(a *Audit) {
	if !slices.Contains([]string{audit.RemoteHash, audit.RemotePlain, audit.RemoteNone}, a.Remote) {
		p.add("audit.remote", "%q is not one of hash, plain, none", a.Remote)
	}
	if a.MaxAge < 0 {
		p.add("audit.max_age", "must not be negative")
	}
	if a.Waiting < 0 {
		p.add("audit.waiting", "must not be negative")
	}
}
