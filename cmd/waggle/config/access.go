package config

import (
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Access sets who sees sessions, teams and tasks and answers their questions, and which models tenants use. Operators see and answer
// everything of their tenant.
type Access struct {
	See     string         `yaml:"see" doc:"Who sees a session, a team or a task, and so may write to it, stop and close it: \"owner\" = who opened it, founded the team or asked for the task, \"team\" = also the principals of its groups (access.tenants[].groups), \"tenant\" = all of the tenant. Principals with the role viewer watch everything."`
	Answer  string         `yaml:"answer" doc:"Who may answer a question: \"asker\" = whose message the run answers, \"owner\" = who opened the session, founded the team or asked for the task, \"tenant\" = all who see it."`
	Models  []string       `yaml:"models" doc:"Models that tenants may use, as in the setting model; empty = all that are configured."`
	Tenants []TenantAccess `yaml:"tenants"`
}

// TenantAccess replaces the settings for one tenant.
type TenantAccess struct {
	Tenant string              `yaml:"tenant" doc:"The tenant; unique."`
	See    string              `yaml:"see,omitempty" doc:"Who sees a session, a team or a task; empty = as access.see."`
	Answer string              `yaml:"answer,omitempty" doc:"Who may answer a question; empty = as access.answer."`
	Models []string            `yaml:"models,omitempty" doc:"Models that it may use; empty = as access.models."`
	Groups map[string][]string `yaml:"groups,omitempty" doc:"Principals, by the name of their group, that see each other's sessions, teams and tasks where see is \"team\"."`
}

// Policy converts the settings for the services.
func (a *Access) Policy() access.Policy {
	p := access.Policy{Default: access.Settings{See: a.See, Answer: a.Answer, Models: a.Models}, Tenants: map[string]access.Settings{}}
	for _, t := range a.Tenants {
		s := p.Default
		if t.See != "" {
			s.See = t.See
		}
		if t.Answer != "" {
			s.Answer = t.Answer
		}
		if len(t.Models) > 0 {
			s.Models = t.Models
		}
		for _, group := range t.Groups {
			s.Groups = append(s.Groups, group)
		}
		p.Tenants[t.Tenant] = s
	}
	return p
}

// access validates who sees and answers what.
func (p *problems) access(a *Access) {
	one := func(path, value string, known ...string) {
		if !slices.Contains(known, value) {
			p.add(path, "%q is not one of %q", value, known)
		}
	}
	one("access.see", a.See, access.Owner, access.Group, access.Tenant)
	one("access.answer", a.Answer, access.Asker, access.Owner, access.Tenant)
	seen := map[string]bool{}
	for i, t := range a.Tenants {
		path := fmt.Sprintf("access.tenants[%d].", i)
		if _, err := id.ParseTenant(t.Tenant); err != nil || seen[t.Tenant] {
			p.add(path+"tenant", "%q is not a tenant, or is listed twice", t.Tenant)
		}
		seen[t.Tenant] = true
		one(path+"see", t.See, "", access.Owner, access.Group, access.Tenant)
		one(path+"answer", t.Answer, "", access.Asker, access.Owner, access.Tenant)
	}
}
