package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// maxLoads bounds how many sockets load an object at once, each of which may take as
	// much memory as the largest message.
	maxLoads = 16
	// loadPause is the pause after an object could not be had.
	loadPause = time.Second
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
func (p *peer) shrink(ctx context.Context, cmd *command.Command) error {
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
	changed, err := p.c.s.payloads.Shrink(ctx, log, data)
	if err != nil || !changed {
		return err
	}
	cmd.Data, err = json.Marshal(data)
	return err
}

// shrinkAsked is shrink for a task that is asked for.
func (p *peer) shrinkAsked(ctx context.Context, ask dialect.Ask) (dialect.Ask, error) {
	t, ok := ask.Data.(command.NewTask)
	if !ok {
		return ask, nil
	}
	log := subject.Log{Tenant: p.c.who().Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(t.TaskID)}
	_, err := p.c.s.payloads.Shrink(ctx, log, &t)
	ask.Data = t
	return ask, err
}

// views are the requests that are answered with a task.
var views = []id.Name{command.Submit, command.ShowTask}

// whole returns the answer to a request with what it refers to. The socket holds it until
// release is called.
func (p *peer) whole(ctx context.Context, ask dialect.Ask, reply json.RawMessage) (out json.RawMessage, release func(), err error) {
	var v command.TaskView
	if slices.Contains(views, ask.Verb) {
		err = json.Unmarshal(reply, &v)
	}
	if err != nil || v.ResultRef == nil {
		return reply, func() {}, err
	}
	if release, err = p.c.hold(ctx); err != nil {
		return nil, nil, err
	}
	if err = p.c.s.loading(ctx, func() error { return p.c.s.payloads.Show(ctx, p.c.who().Tenant, &v) }); err == nil {
		out, err = json.Marshal(v)
	}
	if err != nil {
		release()
	}
	return out, release, err
}

// hold waits until the socket may hold an object: it has one at a time, until release is
// called.
func (c *conn) hold(ctx context.Context) (release func(), err error) {
	select {
	case c.held <- struct{}{}:
		return func() { <-c.held }, nil
	case <-c.sock.Done():
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// loading calls f as soon as few enough sockets load something.
func (s *Server) loading(ctx context.Context, f func() error) error {
	select {
	case s.loads <- struct{}{}:
		defer func() { <-s.loads }()
		return f()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fetched returns an event with what it refers to, however long that takes within ctx.
func (c *conn) fetched(ctx context.Context, log subject.Log, e event.Event) (whole event.Event, err error) {
	err = c.insist(ctx, log, func() (err error) {
		whole, err = c.s.payloads.Event(ctx, log.Tenant, e)
		return err
	})
	return whole, err
}

// insist loads something for a log, again and again while it cannot be had.
func (c *conn) insist(ctx context.Context, log subject.Log, load func() error) error {
	for {
		err := c.s.loading(ctx, load)
		if err == nil || ctx.Err() != nil || errors.Is(err, fault.New(fault.PayloadLost)) {
			return err
		}
		c.s.dep.Logger.Warn().Err(err).Stringer("log", log).Msg("load stored data later")
		select {
		case <-time.After(loadPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
