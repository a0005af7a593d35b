package lifecycle

import (
	"context"
	"time"

	"github.com/rs/zerolog"
)

// Group runs components together.
type Group struct {
	log    zerolog.Logger
	budget time.Duration
	parts  []Component
}

// NewGroup returns an empty group.
func NewGroup(log zerolog.Logger, budget time.Duration) *Group {
	return &Group{log: log, budget: budget}
}

// Add appends components in the order of their start.
func (g *Group) Add(c ...Component) { g.parts = append(g.parts, c...) }

// Run starts the components in order and returns when all have ended.
func (g *Group) Run(ctx context.Context) error {
	for _, c := range g.parts {
		if err := c.Start(ctx); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}
