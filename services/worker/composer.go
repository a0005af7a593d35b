package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/prompt"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// composer writes the requests to the model.
type composer struct {
	*attempt

	model  *choice
	offer  *offer
	images map[string]string // of the conversation, in base64, by their digests
}

// hasTools reports whether the model may call tools in a stage. Plans and aggregates use given data
// only.
func hasTools(stage string) bool { return stage == event.ModeChat || stage == event.StageSolving }

// request returns the request to the model: the conversation so far, the data of the stage in a
// pipeline run, and the tools.
func (c *composer) request(ctx context.Context) (model.Request, error) {
	b := c.state.Brief(c.id, c.s.cfg.HistoryBytes)
	req := model.Request{
		Model: c.model.spec(), System: c.system(b), MaxTokens: c.s.cfg.MaxTokens,
		NewID: func() string { return "call_" + c.s.cfg.NewID() }, Now: c.s.cfg.Now(),
	}
	var offered []tools.Tool
	var err error
	if b.Stage != event.StageAggregation { // a planner has to know the tools of the steps
		if offered, err = c.offer.list(ctx); err != nil {
			return model.Request{}, err
		}
	}
	if req.Messages, err = c.messages(ctx, b.History); err != nil {
		return model.Request{}, err
	}
	if b.Stage != "" {
		text, err := prompt.Write(c.data(b, offered))
		if err != nil {
			return model.Request{}, err
		}
		asked, err := c.messages(ctx, []conversation.Line{{Role: event.RoleUser, Content: text, Files: b.Files}})
		if err != nil {
			return model.Request{}, err
		}
		req.Messages = append(req.Messages, asked...)
	}
	own, err := c.messages(ctx, b.Own)
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
	req.Tools = c.offer.show(offered)
	return req, nil
}

// system returns the system prompt.
func (c *composer) system(b conversation.Brief) string {
	s := c.s.cfg.System
	if s == "" && hasTools(b.Stage) {
		s = defaultSystem
	}
	if b.Stage != "" {
		s = prompt.System(b.Stage, s)
	}
	if a := c.state.Agent; a != nil {
		s = prompt.Member(*a, s)
	}
	if b.Dropped > 0 {
		s += fmt.Sprintf("\n\nThe %d oldest exchanges of this conversation are left out.", b.Dropped)
	}
	return s
}

// data returns the input of the model in a stage. Results have the same limit as the
// conversation.
func (c *composer) data(b conversation.Brief, offered []tools.Tool) prompt.Data {
	d := prompt.Data{
		Question: b.Question, Context: b.Context, Feedback: b.Feedback, Task: b.Step,
		Inputs:  prompt.Share(results(b.Needs), c.s.cfg.HistoryBytes),
		Results: prompt.Share(results(b.Results), c.s.cfg.HistoryBytes),
	}
	if b.Stage != event.StagePlanning {
		return d
	}
	for _, o := range offered {
		about, _, _ := strings.Cut(strings.TrimSpace(o.Description), "\n")
		d.Tools = append(d.Tools, o.Name+": "+about)
	}
	d.Capabilities = capabilities(c.s.deps.Directory, c.log.Ref.Tenant)
	return d
}

// capabilities is what steps of a plan may ask for: what workers can do apart from anything,
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
		out = append(out, prompt.Result{ID: r.Step.ID, Title: r.Step.Title, Status: r.Status, Output: r.Output, Error: r.Error})
	}
	return out
}

// maxImages bounds the images of one request, the newest ones: the least that a provider documents for one request is 20.
const maxImages = 20

// messages returns lines of the conversation as the model gets them, with the images that their files hold. Texts of files are
// in the lines already.
func (c *composer) messages(ctx context.Context, lines []conversation.Line) ([]model.Message, error) {
	pictures := 0
	for _, l := range lines {
		for _, f := range l.Files {
			if f.Picture() {
				pictures++
			}
		}
	}
	out := make([]model.Message, 0, len(lines))
	for _, l := range lines {
		m := model.Message{Role: l.Role, Content: l.Content, ToolCalls: l.ToolCalls, ToolCallID: l.ToolCallID, IsError: l.IsError, Reasoning: l.Reasoning, PassBack: l.PassBack}
		for _, f := range l.Files {
			if f.Picture() {
				pictures--
			}
			if err := c.show(ctx, &m, f, pictures >= maxImages); err != nil {
				return nil, err
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// show adds a file to a message, or says why the model does not see it.
func (c *composer) show(ctx context.Context, m *model.Message, f event.File, old bool) error {
	switch {
	case f.Text():
		return nil
	case !f.Picture():
		m.Content += fmt.Sprintf("\n(This file of the type %s is not shown to you: models are given texts and images.)", f.MediaType)
		return nil
	case old:
		m.Content += "\n(This image is left out: newer ones take its place.)"
		return nil
	}
	data, err := c.image(ctx, f)
	if errors.Is(err, fault.New(fault.PayloadLost)) {
		m.Content += "\n(This image is left out: it has expired.)"
		return nil
	}
	if err == nil {
		m.Images = append(m.Images, model.Image{MediaType: f.Media(), Data: data})
	}
	return err
}

// image loads the data of an image, in base64. It has to belong to the log: a log that was imported names those of another one.
func (c *composer) image(ctx context.Context, f event.File) (string, error) {
	if f.Object.Log != c.log.Ref.Local() {
		return "", fault.New(fault.PayloadLost)
	}
	if data, known := c.images[f.Object.Digest]; known {
		return data, nil
	}
	raw, err := c.s.payloads.Get(ctx, c.tenant, f.Object)
	if err != nil {
		return "", err
	}
	var data string
	if err := json.Unmarshal(raw, &data); err != nil {
		return "", fault.New(fault.PayloadLost).Wrap(err)
	}
	if c.images == nil {
		c.images = map[string]string{}
	}
	c.images[f.Object.Digest] = data
	return data, nil
}
