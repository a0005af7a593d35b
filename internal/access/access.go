// Package access holds the operator's settings of who sees a session, a team or a task, who answers its questions, and which models a
// tenant may use. It is pure: services and gateways decide with it.
package access

import (
	"cmp"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Settings of who sees a session, a team or a task, and of who answers a question. Operators always do both.
const (
	Owner  = "owner"  // the principal that opened the session, founded the team or asked for the task
	Asker  = "asker"  // only of answers: the principal whose message the run answers
	Group  = "team"   // only of who sees: the owner and the members of its groups
	Tenant = "tenant" // every principal of the tenant
)

// Settings are those of one tenant. The zero value has the safe defaults: the owner sees and answers, and every
// configured model may be used.
type Settings struct {
	See    string     // owner, team, tenant; empty = owner
	Answer string     // asker, owner, tenant; empty = owner
	Groups [][]string // subjects of principals that see each other's sessions, teams and tasks, where See is team
	Models []string   // empty = all
}

// Policy holds the settings of all tenants.
type Policy struct {
	Default Settings
	Tenants map[string]Settings // in place of the default
}

// Person is the principal that wants something.
type Person struct {
	Subject  string
	Operator bool
	Viewer   bool // has the role viewer: it may watch everything in its tenant
}

// Of returns the settings of a tenant.
func (p Policy) Of(t id.Tenant) Settings {
	s, own := p.Tenants[t.String()]
	if !own {
		s = p.Default
	}
	s.See, s.Answer = cmp.Or(s.See, Owner), cmp.Or(s.Answer, Owner)
	return s
}

// MaySee reports whether the person may see a session, a team or a task of the owner. One without an owner is of an earlier version:
// all of the tenant see it.
func (p Policy) MaySee(t id.Tenant, owner string, who Person) bool {
	if who.Operator || who.Viewer || owner == "" || owner == who.Subject {
		return true
	}
	switch s := p.Of(t); s.See {
	case Tenant:
		return true
	case Group:
		return slices.ContainsFunc(s.Groups, func(group []string) bool {
			return slices.Contains(group, owner) && slices.Contains(group, who.Subject)
		})
	}
	return false
}

// MayAnswer reports whether the person may answer a question of a run that answers the asker, in a session, a team or a task of the
// owner. Every principal of the tenant answers where neither is known.
func (p Policy) MayAnswer(t id.Tenant, owner, asker string, who Person) bool {
	if who.Operator || owner == "" && asker == "" {
		return true
	}
	switch p.Of(t).Answer {
	case Tenant:
		return true
	case Asker:
		return who.Subject != "" && who.Subject == cmp.Or(asker, owner)
	}
	return who.Subject != "" && who.Subject == cmp.Or(owner, asker)
}

// MayUse reports whether the tenant may use the model.
func (p Policy) MayUse(t id.Tenant, model string) bool {
	s := p.Of(t)
	return len(s.Models) == 0 || slices.Contains(s.Models, model)
}
