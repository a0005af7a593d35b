package process

import (
	"context"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process/own"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/survey"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
	"github.com/waggle-dev/waggle/services/session"
)

// survey returns the component that measures streams and queues. It belongs to the role session, which every installation
// has.
func (p *process) survey(context.Context) (lifecycle.Component, error) {
	l, _ := permission.Of(permission.Session, p.conn.Partitions())
	services := append(Services(), cmd.Member)
	return survey.New(p.conn, p.directory, survey.Config{
		Service: cmd.Session, Instance: p.instance, Services: services, Streams: l.Streams,
		Registry: p.registry, Logger: p.Logger.With().Str("role", "session").Logger(),
	})
}

// Services returns the roles of processes, named as in the directory.
func Services() []id.Name {
	out := make([]id.Name, len(config.Roles))
	for i, r := range config.Roles {
		out[i] = id.MustName(r)
	}
	return out
}

func (p *process) session(context.Context) (lifecycle.Component, error) {
	keys, err := own.StateKeys(p.Config, p.Use.Embedded)
	if err != nil {
		return nil, err
	}
	return session.New(session.Config{
		TTL: p.Config.Session.TTL, StateKeys: keys, Access: p.Config.Access.Policy(), Registry: p.registry, Quota: p.quotas(), Audit: p.audit, Now: p.clock.Now,
	}, p.manages("session"))
}
