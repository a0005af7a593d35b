package process

import (
	"context"

	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/services/session"
)

func (p *process) session(context.Context) (lifecycle.Component, error) {
	keys, err := stateKeys(p.Config, p.Use.Embedded)
	if err != nil {
		return nil, err
	}
	return session.New(session.Config{
		TTL: p.Config.Session.TTL, StateKeys: keys, Registry: p.registry,
	}, p.manages("session"))
}
