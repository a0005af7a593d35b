// Package demo is Waggle's built-in model: deterministic, offline and no language
// model at all.
package demo

import (
	"context"

	"github.com/waggle-dev/waggle/services/agent/model"
)

// Model is the built-in model. It has no state and may be shared.
type Model struct{}

var _ model.Model = (*Model)(nil)

// New returns the built-in model.
func New() *Model { return &Model{} }

// Provider opens the built-in model for the specification "demo".
func Provider() model.Provider {
	return model.Provider{Prefix: "demo", Open: func(string, model.Env) (model.Model, error) { return New(), nil }}
}

// Name implements model.Model.
func (m *Model) Name() string { return "demo" }

// Close implements model.Model. There is nothing to release.
func (m *Model) Close() error { return nil }

// Generate implements model.Model.
func (m *Model) Generate(ctx context.Context, _ model.Request, onText func(string) error) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, err
	}
	const text = "I am Waggle's built-in demo model, no language model."
	if err := onText(text); err != nil {
		return model.Reply{}, err
	}
	return model.Reply{Text: text, StopReason: model.StopEnd, Model: m.Name()}, nil
}
