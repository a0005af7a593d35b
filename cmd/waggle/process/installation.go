package process

import (
	"context"
	"maps"
	"slices"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/internal/letters"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/installation"
	"github.com/waggle-dev/waggle/services/task"
)

// installation returns the component that answers operators' requests about the installation. It belongs to the role session,
// which alone may remove messages.
func (p *process) installation(context.Context) (lifecycle.Component, error) {
	return installation.New(installation.Config{
		Conn: p.conn, Log: p.log, Queues: slices.Concat(slices.Collect(maps.Values(queues))...),
		Quota: p.Config.Quota.Policy(), Now: p.clock.Now, Logger: p.Logger.With().Str("role", "session").Logger(), Registry: p.registry,
	}), nil
}

// queues are the services whose commands a role handles.
var queues = map[string][]id.Name{
	config.RoleWorker: {cmd.Worker}, config.RolePipeline: {cmd.Pipeline}, config.RoleSession: {cmd.Session},
	config.RoleTask: {cmd.Task, task.CallQueue}, config.RoleTeam: {cmd.Team, cmd.Member},
}

// letters returns the builder of the component that returns dead letters to the queues of a role.
func (p *process) letters(role string) builder {
	return func(context.Context) (lifecycle.Component, error) {
		return letters.New(p.conn, p.log).NewServer(letters.Config{
			Queues: queues[role], Logger: p.Logger.With().Str("role", role).Logger(), Registry: p.registry,
		}), nil
	}
}
