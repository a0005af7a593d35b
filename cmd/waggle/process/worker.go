package process

import (
	"context"

	"github.com/waggle-dev/waggle/services/tools/remote"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/provider"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/worker"
)

func (p *process) worker(ctx context.Context) (lifecycle.Component, error) {
	daily, err := p.ofDay(ctx)
	if err != nil {
		return nil, err
	}
	m, err := p.model()
	if err != nil {
		return nil, err
	}
	c := p.Config.Worker
	var check func(context.Context) error
	if from := provider.Of(p.Config); from != nil {
		check = from.Works
	}
	return worker.New(worker.Config{
		Concurrency: c.Concurrency, MaxAttempts: c.MaxAttempts, MaxRounds: c.MaxRounds, MaxTokens: c.MaxTokens,
		ModelTries: c.ModelTries, RetryTime: c.RetryTime, RunRetryTime: c.RunRetryTime, ToolTimeout: c.ToolTimeout, JobTimeout: c.JobTimeout, System: c.System, DeltaPause: c.DeltaPause,
		Check: check, Capabilities: c.Capabilities, Prices: prices(p.Config.Models), Fallbacks: p.Config.Models.Fallbacks, Access: p.Config.Access.Policy(), Now: p.clock.Now,
	}, worker.Deps{
		Conn: p.conn, Log: p.log, Commands: p.commands, Directory: p.directory,
		Tools: remote.NewClient(p.conn), Model: m, Quota: daily,
		Instance: p.instance, Logger: p.Logger.With().Str("role", "worker").Logger(), Registry: p.registry,
		Signatures: p.signing.Verifier, Audit: p.audit,
	})
}

// model returns the model of the process.
func (p *process) model() (model.Model, error) {
	if p.opened != nil {
		return p.opened, nil
	}
	m, err := OpenModel(p.Config)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() { _ = m.Close() })
	p.opened, p.running.Model = m, m.Name()
	return m, nil
}

// trials returns the component that tries the model for operators.
func (p *process) trials(context.Context) (lifecycle.Component, error) {
	m, err := p.model()
	if err != nil {
		return nil, err
	}
	return worker.Trials(worker.Config{Now: p.clock.Now}, worker.Deps{
		Conn: p.conn, Model: m, Logger: p.Logger.With().Str("role", "worker").Logger(), Registry: p.registry,
	}), nil
}

func prices(m config.Models) worker.Prices {
	out := worker.Prices{}
	for _, p := range m.Prices {
		out[p.Model] = worker.Price{InputPerMillion: p.Input, OutputPerMillion: p.Output, CachedPerMillion: p.Cached, CacheWritePerMillion: p.CacheWrite}
	}
	return out
}
