package process

import (
	"context"

	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/services/session"
)

func (p *process) session(context.Context) (lifecycle.Component, error) {
	return session.New(session.Config{TTL: p.Config.Session.TTL}, session.Deps{
		Conn: p.conn, Log: p.log, Commands: p.commands, Directory: p.directory,
		Instance: p.instance, Logger: p.Logger.With().Str("role", "session").Logger(), Registry: p.registry,
	})
}
