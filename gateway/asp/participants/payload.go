package participants

import (
	"context"
	"encoding/json"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// small is the length of data none of which needs to be stored, however it is escaped.
	small = payload.Inline / 8
)

// sizeable makes the data of each command of the task service that may be too large.
var sizeable = map[id.Name]func() event.Large{
	command.FinishTask:  func() event.Large { return new(command.TaskResult) },
	command.SpawnTask:   func() event.Large { return new(command.SpawnChild) },
	command.MessageTask: func() event.Large { return new(command.TaskMessage) },
	command.NotifyTask:  func() event.Large { return new(command.TaskNotification) },
	command.AskTask:     func() event.Large { return new(command.TaskQuestion) },
	command.CallTool:    func() event.Large { return new(command.ToolRequest) },
}

// shrink stores what is too large for a command as objects of the task that it is about.
func (p *Participant) shrink(ctx context.Context, cmd *command.Command) error {
	build := sizeable[cmd.Verb]
	if build == nil || cmd.Service != command.Task || len(cmd.Data) <= small {
		return nil
	}
	data := build()
	if err := cmd.Decode(data); err != nil {
		return err
	}
	log := subject.Log{Tenant: cmd.Tenant, Kind: id.KindTask, Entity: cmd.Key}
	if child, ok := data.(*command.SpawnChild); ok {
		log.Entity = id.EntityFromExternal(child.ChildID)
	}
	changed, err := p.g.Payloads.Shrink(ctx, log, data)
	if err != nil || !changed {
		return err
	}
	cmd.Data, err = json.Marshal(data)
	return err
}

// shrinkAsked is shrink for a task that is asked for.
func (p *Participant) shrinkAsked(ctx context.Context, ask dialect.Inquiry) (dialect.Inquiry, error) {
	s, ok := ask.(dialect.Submit)
	if !ok {
		return ask, nil
	}
	t := command.NewTask(s)
	_, err := p.g.Payloads.Shrink(ctx, p.logOf(t.TaskID), &t)
	return dialect.Submit(t), err
}

// whole returns the answer to a request with what it refers to. The socket holds it until
// release is called.
func (p *Participant) whole(ctx context.Context, ask dialect.Inquiry, reply json.RawMessage) (out json.RawMessage, release func(), err error) {
	var v command.TaskView
	switch ask.(type) {
	case dialect.Submit, dialect.ShowTask: // they are answered with a task
		err = json.Unmarshal(reply, &v)
	}
	if err != nil || v.ResultRef == nil {
		return reply, func() {}, err
	}
	if release, err = p.c.Slot().Hold(ctx, p.c.Done()); err != nil {
		return nil, nil, err
	}
	if err = p.g.Streams.Loader.Do(ctx, func() error { return p.g.Payloads.Show(ctx, p.c.Client().Principal().Tenant, &v) }); err == nil {
		out, err = json.Marshal(v)
	}
	if err != nil {
		release()
	}
	return out, release, err
}
