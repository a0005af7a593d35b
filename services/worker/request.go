package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/prompt"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// hasTools reports whether the model may call tools in a stage. Plans and aggregates use given data
// only.
func hasTools(stage string) bool { return stage == event.ModeChat || stage == event.StageSolving }

// request returns the request to the model: the conversation so far, the data of the stage in a
// pipeline run, and the tools.
func (j *job) request(ctx context.Context) (model.Request, error) {
	b := j.state.Brief(j.id, j.s.cfg.HistoryBytes)
	req := model.Request{
		Model: j.otherModel(), System: j.system(b), MaxTokens: j.s.cfg.MaxTokens,
		NewID: func() string { return "call_" + j.s.cfg.NewID() }, Now: j.s.cfg.Now(),
	}
	var offered []tools.Tool
	var err error
	if b.Stage != event.StageAggregation { // a planner has to know the tools of the steps
		if offered, err = j.tools(ctx); err != nil {
			return model.Request{}, err
		}
	}
	if req.Messages, err = j.messages(ctx, b.History); err != nil {
		return model.Request{}, err
	}
	if b.Stage != "" {
		text, err := prompt.Write(j.data(b, offered))
		if err != nil {
			return model.Request{}, err
		}
		asked, err := j.messages(ctx, []conversation.Line{{Role: event.RoleUser, Content: text, Files: b.Files}})
		if err != nil {
			return model.Request{}, err
		}
		req.Messages = append(req.Messages, asked...)
	}
	own, err := j.messages(ctx, b.Own)
	if err != nil {
		return model.Request{}, err
	}
	req.Messages = append(req.Messages, own...)
	if b.Stage == event.StagePlanning {
		req.Schema = prompt.PlanSchema()
	}
	if !hasTools(b.Stage) {
		return req, nil
	}
	j.offered = make(map[string]tools.Tool, len(offered))
	for _, o := range offered {
		j.offered[o.Name] = o
		req.Tools = append(req.Tools, model.ToolSpec{Name: o.Name, Description: o.Description, InputSchema: o.InputSchema})
	}
	return req, nil
}

// system returns the system prompt.
func (j *job) system(b conversation.Brief) string {
	s := j.s.cfg.System
	if s == "" && hasTools(b.Stage) {
		s = defaultSystem
	}
	if b.Stage != "" {
		s = prompt.System(b.Stage, s)
	}
	if a := j.state.Agent; a != nil {
		s = prompt.Member(*a, s)
	}
	if b.Dropped > 0 {
		s += fmt.Sprintf("\n\nThe %d oldest exchanges of this conversation are left out.", b.Dropped)
	}
	return s
}

// data returns the input of the model in a stage. Results have the same limit as the
// conversation.
func (j *job) data(b conversation.Brief, offered []tools.Tool) prompt.Data {
	d := prompt.Data{
		Question: b.Question, Context: b.Context, Feedback: b.Feedback, Task: b.Task,
		Inputs:  prompt.Share(results(b.Inputs), j.s.cfg.HistoryBytes),
		Results: prompt.Share(results(b.Results), j.s.cfg.HistoryBytes),
	}
	if b.Stage != event.StagePlanning {
		return d
	}
	for _, o := range offered {
		about, _, _ := strings.Cut(strings.TrimSpace(o.Description), "\n")
		d.Tools = append(d.Tools, o.Name+": "+about)
	}
	d.Capabilities = capabilities(j.s.deps.Directory, j.log.Ref.Tenant)
	return d
}

// capabilities is what steps of a plan may ask for: what workers can do beside anything,
// and what agents of the tenant can.
func capabilities(d *directory.Directory, tenant id.Tenant) []string {
	out := card.Capabilities(d)
	for _, m := range d.All(command.WhatAgent) {
		var p command.Participant
		if json.Unmarshal(m.Data, &p) == nil && p.Tenant == tenant {
			out = append(out, p.Capabilities...)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(c string) bool { return c == card.General })
}

func results(all []conversation.Result) []prompt.Result {
	var out []prompt.Result
	for _, r := range all {
		out = append(out, prompt.Result{ID: r.Task.ID, Title: r.Task.Title, Status: r.Status, Output: r.Output, Error: r.Error})
	}
	return out
}
