// Package sight decides which sessions, teams, tasks and calls of tools outside of them a principal of a gateway sees.
package sight

import (
	"cmp"
	"context"
	"sync"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxOwners bounds the owners of logs that a gateway remembers, at a few hundred bytes each.
const maxOwners = 1 << 16

// Sight decides which logs a principal sees. It is safe for concurrent use.
type Sight struct {
	Policy access.Policy
	Log    *eventlog.Store

	mu     sync.Mutex
	owners map[subject.Log]string
}

// PersonOf returns the principal as the settings of access know it.
func PersonOf(p auth.Principal) access.Person {
	return access.Person{Subject: p.Subject, Operator: p.Has(auth.RoleOperator), Viewer: p.Has(auth.RoleViewer)}
}

// SeesAll reports whether the principal sees every session, team and task of its tenant.
func (s *Sight) SeesAll(p auth.Principal) bool {
	return s == nil || p.Has(auth.RoleOperator) || p.Has(auth.RoleViewer) || s.Policy.Of(p.Tenant).See == access.Tenant
}

// owned are the kinds of logs that have an owner.
var owned = map[id.Kind]bool{id.KindSession: true, id.KindTeam: true, id.KindMember: true, id.KindTask: true, id.KindCall: true}

// Sees reports whether the principal sees a log of its tenant. A log without events has no owner, and of a deleted one nothing is
// left to be seen. The owner of a log whose first event has expired is unknown: then only those see it who see all.
func (s *Sight) Sees(ctx context.Context, p auth.Principal, log subject.Log) (bool, error) {
	if !p.Owns(log) {
		return false, nil
	}
	if !owned[log.Kind] || s.SeesAll(p) {
		return true, nil
	}
	s.mu.Lock()
	owner, known := s.owners[log]
	s.mu.Unlock()
	if !known {
		first, _, err := s.Log.Ends(ctx, log)
		if err != nil {
			return false, err
		}
		if first == nil || first.Type.Tombstone() {
			return true, nil
		}
		if owner, known, err = ownerOf(first.Event); err != nil || !known {
			return false, err
		}
		s.remember(log, owner)
	}
	return s.Policy.MaySee(log.Tenant, owner, PersonOf(p)), nil
}

// SeesOwner reports whether the principal sees a log of its tenant whose owner is known.
func (s *Sight) SeesOwner(p auth.Principal, owner string) bool {
	return s.SeesAll(p) || s.Policy.MaySee(p.Tenant, owner, PersonOf(p))
}

// SeesCommand reports whether the principal sees the session that a command is for. The services of teams and tasks decide about
// their commands themselves: agents report on tasks that they do not see.
func (s *Sight) SeesCommand(ctx context.Context, p auth.Principal, c command.Command) (bool, error) {
	if c.Service != command.Session && c.Service != command.Pipeline {
		return true, nil
	}
	return s.Sees(ctx, p, subject.Log{Tenant: c.Tenant, Kind: id.KindSession, Entity: c.Key})
}

// remember keeps the owner of a log, which does not change.
func (s *Sight) remember(log subject.Log, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owners) >= maxOwners || s.owners == nil {
		s.owners = map[subject.Log]string{}
	}
	s.owners[log] = owner
}

// ownerOf returns the owner of the log that the event begins.
func ownerOf(e event.Event) (owner string, known bool, err error) {
	switch e.Type {
	case event.SessionCreated:
		d, err := event.As[event.SessionCreatedData](e)
		return cmp.Or(d.Principal, d.Owner), err == nil, err
	case event.SessionRestored:
		d, err := event.As[event.SessionRestoredData](e)
		return d.Principal, err == nil, err
	case event.TeamCreated:
		d, err := event.As[event.TeamCreatedData](e)
		return d.Principal, err == nil, err
	case event.MemberCreated:
		d, err := event.As[event.MemberCreatedData](e)
		return d.Principal, err == nil, err
	case event.TaskCreated:
		d, err := event.As[event.TaskCreatedData](e)
		return d.Principal, err == nil, err
	case event.CallStarted:
		d, err := event.As[event.CallStartedData](e)
		return d.Principal, err == nil && d.Principal != "", err
	}
	return "", false, nil
}
