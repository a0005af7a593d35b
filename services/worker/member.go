package worker

import (
	"context"
	"fmt"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/worker/teamtools"
)

// equip gives a member of a team its tools. Everybody else has those of the tool servers.
func (j *job) equip() error {
	a := j.state.Agent
	if a == nil {
		return nil
	}
	team, err := id.ParseEntity(a.TeamID)
	if err != nil {
		return fmt.Errorf("team of agent %s: %w", a.MemberID, err)
	}
	j.caller, err = j.s.teams.Toolbox(teamtools.Member{
		Tenant: j.tenant, Team: team, Name: a.Name, AgentID: a.MemberID, RunID: j.runID, Colleagues: a.Colleagues, Tools: a.Tools,
	}, j.s.deps.Tools)
	return err
}

// agentID is the id of the member that is worked for, empty in a session.
func (j *job) agentID() string {
	if j.state.Agent == nil {
		return ""
	}
	return j.state.Agent.MemberID
}

// otherModel is the model that replaces the worker's: that of a member's definition, or the one that stands in for it.
func (j *job) otherModel() string {
	if j.state.Agent != nil && j.state.Agent.Model != "" {
		return j.state.Agent.Model
	}
	if w := j.current(); w != nil && w.Instead != "" {
		return w.Instead
	}
	return j.standIn
}

// model is the specification of the model that is asked.
func (j *job) model() string { return model.Asked(j.s.deps.Model, j.otherModel()) }

// products are the events of a member's call besides its result: a to-do list, a file. They precede
// the result, so that a worker that dies between the two leaves a call without a result, and no
// product is missing.
func (j *job) products(ctx context.Context, o outcome) ([]event.Data, error) {
	if j.state.Agent == nil {
		return nil, nil
	}
	switch {
	case o.tool.Kind == teamtools.Kind && o.tool.Own == cmd.ToolUpdateTodos:
		list, err := teamtools.Todos(o.call.Arguments)
		if err != nil {
			return nil, nil //nolint:nilerr // the tool has refused it
		}
		return []event.Data{event.TodosUpdatedData{RunID: j.runID, CallID: o.call.ID, Todos: list}}, nil
	case o.tool.Kind == tools.KindMCP && o.tool.Server == tools.BuiltinServer:
		return j.artifact(ctx, o)
	}
	return nil, nil
}
