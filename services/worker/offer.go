package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/schema"
	"github.com/waggle-dev/waggle/services/worker/teamtools"
)

// offer is the tools of an attempt.
type offer struct {
	*attempt

	caller  tools.Caller          // the tools of the one that is worked for
	offered map[string]tools.Tool // to the model, in the newest request
}

// equip gives a member of a team its tools. Everybody else has those of the tool servers.
func (o *offer) equip() error {
	a := o.state.Agent
	if a == nil {
		return nil
	}
	team, err := id.ParseEntity(a.TeamID)
	if err != nil {
		return fmt.Errorf("team of agent %s: %w", a.MemberID, err)
	}
	o.caller, err = o.s.teams.Toolbox(teamtools.Member{
		Tenant: o.tenant, Team: team, Name: a.Name, AgentID: a.MemberID, RunID: o.runID, Colleagues: a.Colleagues, Tools: a.Tools,
	}, o.s.deps.Tools)
	return err
}

// list returns the tools on offer. A missing tool service is waited for briefly:
// one that restarts is back within seconds.
func (o *offer) list(ctx context.Context) ([]tools.Tool, error) {
	const maxWait, pause = 10 * time.Second, 250 * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, maxWait, fault.New(fault.ToolsDown))
	defer cancel()
	for {
		list, err := o.caller.List(ctx, o.tenant)
		if err == nil {
			return o.withClients(list), nil
		}
		if !errors.Is(err, fault.New(fault.ToolsDown)) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// withClients adds the tools that the client of the run carries out. A server's tool of the same name counts.
func (o *offer) withClients(list []tools.Tool) []tools.Tool {
	r := o.state.Run(o.runID)
	if r == nil {
		return list
	}
	for _, c := range r.Spec.ClientTools {
		if slices.ContainsFunc(list, func(t tools.Tool) bool { return t.Name == c.Name }) {
			continue
		}
		schema := c.InputSchema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		list = append(slices.Clone(list), tools.Tool{Name: c.Name, Description: c.Description, InputSchema: schema, Client: true})
	}
	return list
}

// show offers the tools to the model, and returns them as it is told of them.
func (o *offer) show(list []tools.Tool) []model.ToolSpec {
	o.offered = make(map[string]tools.Tool, len(list))
	out := make([]model.ToolSpec, 0, len(list))
	for _, t := range list {
		o.offered[t.Name] = t
		out = append(out, model.ToolSpec{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	return out
}

// shadowing tells people, with the first message of a job, which of the client's tools the model is not offered: they have the names of
// other tools.
func (o *offer) shadowing() (out []event.Data) {
	r, w := o.state.Run(o.runID), o.current()
	if r == nil || w == nil || len(w.Messages) > 0 {
		return nil
	}
	for _, c := range r.Spec.ClientTools {
		if t, known := o.offered[c.Name]; known && !t.Client {
			out = append(out, event.NoticeData{
				Level: "warning", Code: event.ToolLeftOut, RunID: o.runID,
				Message: fmt.Sprintf("The model is not offered the client's tool %s: another tool has this name. Give it another one.", c.Name),
			})
		}
	}
	return out
}

// check gives calls whose id was or may have been used before in the session a new one: some
// servers number the calls of every answer from zero. Jobs of a pipeline run, which
// cannot see what others are about to use, get new ones anyway, and so do members of
// teams: people answer for calls by their ids, in the whole team. Each call gets the policy
// of its tool, as it was offered.
func (o *offer) check(calls []event.ToolCall) []event.ToolCall {
	out := make([]event.ToolCall, 0, len(calls))
	seen := map[string]bool{}
	for _, c := range calls {
		_, asked := o.state.Approval(c.ID)
		if c.ID == "" || seen[c.ID] || o.state.Forgot() || asked || o.state.Call(c.ID) != nil || o.begun.Part.JobID != "" || o.state.Agent != nil {
			c.ID = "call_" + o.s.cfg.NewID()
		}
		seen[c.ID] = true
		c.Policy = nil
		if t, ok := o.offered[c.Name]; ok && !t.Client {
			c.Policy = &t.Policy
		}
		out = append(out, o.checked(c))
	}
	return out
}

// checked returns the call with the reason why it cannot be made, if its arguments do not fit the tool: people are not asked
// about it.
func (o *offer) checked(c event.ToolCall) event.ToolCall {
	t, ok := o.offered[c.Name]
	if !ok || c.Invalid != "" {
		return c
	}
	s, err := schema.Compile(t.InputSchema)
	if err != nil {
		return c // the tool's server checks the arguments
	}
	if _, err := s.Arguments(c.Arguments); err != nil {
		c.Invalid = o.s.asFault(err).Public()
	}
	return c
}
