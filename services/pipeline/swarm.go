package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
)

// briefBytes bounds the results of other tasks that go with a task to an agent of the swarm:
// enough context, and far below the limit of a command.
const briefBytes = 64 << 10

// swarmTask is the data of a task for an agent of the swarm.
type swarmTask struct {
	ID          string          `json:"id"`
	Title       string          `json:"title"`
	Description string          `json:"description,omitempty"`
	Context     json.RawMessage `json:"context,omitempty"`
	Question    string          `json:"question,omitempty"` // purpose of the whole plan
	Inputs      []swarmInput    `json:"inputs,omitempty"`   // results of the tasks that it depends on
}

type swarmInput struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Output string `json:"output"`
}

// inSwarm reports whether a connected agent of the swarm has the capability.
func (s *Service) inSwarm(tenant id.Tenant, capability string) bool {
	return slices.ContainsFunc(s.deps.Directory.All(cmd.WhatAgent), func(m directory.Member) bool {
		var p cmd.Participant
		return json.Unmarshal(m.Data, &p) == nil && p.Tenant == tenant && slices.Contains(p.Capabilities, capability)
	})
}

// delegate gives a job to the swarm, as a task whose id follows from the job.
func (s *Service) delegate(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command, w *conversation.Job) error {
	b := l.State().Brief(w.ID, briefBytes)
	t := swarmTask{
		ID: b.Step.ID, Title: b.Step.Title, Description: b.Step.Description, Context: b.Step.Context, Question: b.Question,
	}
	room := briefBytes
	for _, in := range b.Needs {
		text := in.Output[:min(len(in.Output), room)]
		room -= len(text)
		t.Inputs = append(t.Inputs, swarmInput{ID: in.Step.ID, Title: in.Step.Title, Output: text})
	}
	data, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode a task for the swarm: %w", err)
	}
	task, err := id.ParseEntity(conversation.SwarmTask(l.Ref, w.ID))
	if err != nil {
		return fmt.Errorf("name a task for the swarm: %w", err)
	}
	return s.sendTo(ctx, c.Tenant, task, cmd.Task, cmd.CreateTask, w.ID+".create", cmd.NewTask{
		TaskID: task.String(), Capabilities: []string{b.Step.Capability}, TaskType: "solve", Data: data,
		TimeoutMS: s.rules.StepTimeout.Milliseconds(), Session: l.Ref.Entity.String(), RunID: w.RunID, JobID: w.Part.JobID, Owner: l.State().Owner(),
	})
}

// recall cancels the swarm task of a job whose result the run no longer needs.
func (s *Service) recall(ctx context.Context, c cmd.Command, workID, swarmTask string) error {
	task, err := id.ParseEntity(swarmTask)
	if err != nil {
		return fmt.Errorf("recall %s: %w", workID, err)
	}
	return s.sendTo(ctx, c.Tenant, task, cmd.Task, cmd.CancelTask, workID+".recall", cmd.CancelTaskData{
		TaskID: swarmTask, Reason: "the result is not needed any more",
	})
}

// recallLate recalls a job that an agent of the swarm claimed when the run no longer needed it:
// the log does not show such a claim.
func (s *Service) recallLate(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command) error {
	if c.Verb != cmd.AssignJob {
		return nil
	}
	var d cmd.AssignedJob
	if err := c.Decode(&d); err != nil || l.State().Wants(d.JobRef) {
		return err
	}
	return s.recall(ctx, c, d.Job(), d.TaskID)
}

// handOn sends an answer to a question of an agent of the swarm to the task's log, which takes one. It is sent again when the
// command is: that log knows it by the command's id.
func (s *Service) handOn(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command) error {
	m, ok := l.State().Handed(c, s.rules)
	if !ok {
		return nil
	}
	task, err := id.ParseEntity(m.TaskID)
	if err != nil {
		return fmt.Errorf("hand on an answer: %w", err)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", cmd.MessageTask, err)
	}
	return s.Send(ctx, cmd.Command{
		ID: c.ID, Again: c.Again, Service: cmd.Task, Verb: cmd.MessageTask, Tenant: c.Tenant, Key: task,
		Principal: c.Principal, Operator: c.Operator, Origin: c.Proof(), ReplyTo: c.ReplyTo, Data: data,
	})
}
