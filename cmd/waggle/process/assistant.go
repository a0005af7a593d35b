package process

import (
	"context"

	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/services/worker/builtin"
)

// assistant returns the built-in agent of the swarm, which runs beside the worker.
func (p *process) assistant(context.Context) (lifecycle.Component, error) {
	c := p.Config.Assistant
	return builtin.New(builtin.Config{
		Name: c.Name, Capabilities: c.Capabilities, Description: c.Description, Concurrency: c.Concurrency, Now: p.clock.Now,
	}, builtin.Deps{
		Conn: p.conn, Log: p.log, Commands: p.commands, Directory: p.directory,
		Logger: p.Logger.With().Str("role", "worker").Logger(),
	})
}
