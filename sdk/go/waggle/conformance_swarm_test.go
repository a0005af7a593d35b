package waggle_test

import (
	"context"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/sdk"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

func (p *program) createTask(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	t := api.NewTask{AgentName: s.Agent, Data: body(s.Data)}
	if s.Capability != "" {
		t.Capabilities = []string{s.Capability}
	}
	task, err := p.client.CreateTask(ctx, t)
	p.made[s.Task] = task
	return sdk.Sight{"task": task}, err
}

func (p *program) retryTask(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	again, err := p.client.RetryTask(ctx, p.named(s.Task))
	p.made[s.Run] = again
	return sdk.Sight{"task": again, "other": again != p.named(s.Task)}, err
}

func (p *program) taskResult(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	result, err := p.client.TaskResult(ctx, p.named(s.Task))
	return sdk.Sight{"result": result}, err
}

func (p *program) listTasks(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	all, err := p.client.Tasks(ctx)
	ids, has := []string{}, false
	for _, one := range all {
		ids = append(ids, one.TaskID)
		has = has || one.TaskID == p.named(s.Task)
	}
	return sdk.Sight{"ids": ids, "has": has}, err
}

func (p *program) showTask(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	d, err := p.client.ShowTask(ctx, p.named(s.Task))
	return sdk.Sight{"task": d.TaskID, "status": d.Status}, err
}

func (p *program) cancelTask(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	return sdk.Sight{}, p.client.CancelTask(ctx, p.named(s.Task), s.Reason)
}

func (p *program) messageTask(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	return sdk.Sight{}, p.client.MessageTask(ctx, p.named(s.Task), body(s.Data))
}

func (p *program) createTeam(ctx context.Context, s sdk.Step) (sdk.Sight, error) {
	before := p.made[s.Team]
	v, err := p.client.CreateTeam(ctx, api.NewTeam{ID: s.ID, TeamDefinition: waggle.TeamDefinition{
		Name: s.Team, Coordinator: "Boss", Members: []event.MemberDefinition{{Name: "Boss"}, {Name: "Coder"}},
	}})
	p.made[s.Team] = v.TeamID
	return sdk.Sight{"team": v.TeamID, "same": v.TeamID == before}, err
}
