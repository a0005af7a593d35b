package task

import (
	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// shows reports whether the principal sees a task of the owner. all says that it sees every task of the tenant.
func (s *Service) shows(t id.Tenant, owner, principal string, all bool) bool {
	return s.cfg.Rules.Access.MaySee(t, owner, access.Person{Subject: principal, Operator: all})
}
