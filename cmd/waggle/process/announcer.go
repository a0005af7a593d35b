package process

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// announcer starts last: when it starts, all components run.
type announcer struct {
	tell func()
	over atomic.Bool
}

// Name implements lifecycle.Component.
func (*announcer) Name() string { return "announcer" }

// Start implements lifecycle.Component.
func (a *announcer) Start(ctx context.Context) error {
	if a.over.Load() {
		return errors.New("announcer: started after stop")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	a.tell()
	return nil
}

// Drain implements lifecycle.Component.
func (*announcer) Drain(context.Context) error { return nil }

// Stop implements lifecycle.Component.
func (a *announcer) Stop() { a.over.Store(true) }

// Failed implements lifecycle.Component.
func (*announcer) Failed() <-chan error { return nil }

// flushTimeout bounds how long an unreachable trace collector may delay the end.
const flushTimeout = 3 * time.Second

// flush sends the remaining spans to the collector.
func (p *process) flush(ctx context.Context, shutdown func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := shutdown(ctx); err != nil {
		p.Logger.Warn().Err(err).Msg("failed to export last traces")
	}
}
