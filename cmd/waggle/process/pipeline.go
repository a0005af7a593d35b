package process

import (
	"context"

	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/services/manager"
	"github.com/waggle-dev/waggle/services/pipeline"
)

func (p *process) pipeline(context.Context) (lifecycle.Component, error) {
	c := p.Config.Pipeline
	return pipeline.New(pipeline.Config{
		ConfirmPlan: c.ConfirmPlan, ConfirmTimeout: c.ConfirmTimeout, OnBusy: c.OnBusy, MaxConcurrent: c.MaxConcurrent,
		TaskTimeout: c.TaskTimeout, Tries: c.TaskAttempts, Backoff: c.RetryBackoff,
	}, p.manages("pipeline"))
}

// manages returns what a service that manages sessions works with.
func (p *process) manages(role string) manager.Deps {
	return manager.Deps{
		Conn: p.conn, Log: p.log, Commands: p.commands, Directory: p.directory,
		Instance: p.instance, Logger: p.Logger.With().Str("role", role).Logger(),
	}
}
