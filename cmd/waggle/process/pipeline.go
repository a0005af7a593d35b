package process

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/pipeline"
)

func (p *process) pipeline(context.Context) (lifecycle.Component, error) {
	return pipeline.New(runs(p.Config, p.clock.Now), p.manages("pipeline"))
}

// runs returns the settings of runs of sessions and of members.
func runs(all config.Config, now func() time.Time) pipeline.Config {
	c := all.Pipeline
	return pipeline.Config{
		ConfirmPlan: c.ConfirmPlan, ConfirmTimeout: c.ConfirmTimeout, OnBusy: c.OnBusy, MaxConcurrent: c.MaxConcurrent,
		TaskTimeout: c.TaskTimeout, Tries: c.TaskAttempts, Backoff: c.RetryBackoff, MaxWait: all.Worker.RunRetryTime,
		Budget: all.Budget.Of(), Budgets: all.Quota.Budgets(), Access: all.Access.Policy(), Now: now,
	}
}

// manages returns the dependencies of a service that manages sessions.
func (p *process) manages(role string) ledger.Deps {
	return ledger.Deps{
		Conn: p.conn, Log: p.log, Commands: p.commands, Directory: p.directory,
		Instance: p.instance, Logger: p.Logger.With().Str("role", role).Logger(),
		Registry: p.registry, Signatures: p.signing.Verifier, Audit: p.audit,
	}
}
