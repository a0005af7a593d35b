// Package top shows at a terminal what a gateway serves, second by second: sessions, what waits for people, agents, tasks, teams,
// the parts of the installation and their queues. Questions are answered from it.
package top

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"
)

// Run shows the view until the person leaves or ctx ends.
func Run(ctx context.Context, opt Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := tea.NewProgram(
		newModel(ctx, opt), tea.WithContext(ctx), tea.WithInput(opt.In), tea.WithOutput(opt.Out), tea.WithEnvironment(opt.Environ), tea.WithoutSignalHandler(),
	).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}
