package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/tools"
)

// CallQueue is the queue of tool calls within tasks, which any replica may take.
var CallQueue = id.MustName("task-call")

var runCall = id.MustName("run") // data: taskCall

// callDeliveries is how often a call is delivered to a worker: once, and several times more so that
// some worker survives to report the outcome.
const callDeliveries = 5

// calls runs the tools that agents call within tasks.
type calls struct {
	*base

	logs    *callLogs
	tools   tools.Toolbox
	outside *outsideCalls // whose commands come in the same queue
}

// queue sends the calls of the task's agent to the workers. A process that has taken over the task
// sends all open calls again: the calls' logs decide which command counts.
func (cs *calls) queue(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
	var restored time.Time
	if c.Source == cmd.SourceRestore {
		restored = c.Time
	}
	for _, in := range h.State().Pending() {
		key := in.CallID
		if !restored.IsZero() {
			key += ".restored"
		}
		err := cs.once(ctx, h, key, cmd.Command{
			ID: in.CallID + "." + uuid.NewString(), Service: CallQueue, Verb: runCall, Data: encode(taskCall{in, restored}),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// newWorkers returns the consumer of tool calls.
func (cs *calls) newWorkers() *command.Workers {
	return command.NewWorkers(cs.deps.Conn, command.WorkersConfig{
		Service: CallQueue, Instance: cs.deps.Instance, Concurrency: cs.cfg.Calls, AckWait: cs.cfg.AckWait,
		MaxDeliver: callDeliveries, Logger: cs.deps.Logger, Registry: cs.cfg.Registry, OnDead: cs.dead,
	}, cs.work)
}

// work takes one tool call, within a task or outside of any.
func (cs *calls) work(ctx context.Context, c cmd.Command, d command.Delivery) error {
	if c.Verb == runOutside {
		return cs.outside.work(ctx, c)
	}
	return cs.run(ctx, c, d)
}

// run runs one tool call and reports its outcome, if the call is this command's. When it
// comes again, its tool may have begun: only a call that bears repetition is run again.
func (cs *calls) run(ctx context.Context, c cmd.Command, d command.Delivery) error {
	var job taskCall
	if err := c.Decode(&job); err != nil {
		return command.Permanent(err)
	}
	own, again, err := cs.claim(ctx, c, job)
	if err != nil || !own {
		return err
	}
	in := job.CallStartedData
	if (again || d.Attempt > 1) && !in.Idempotent { // an older version begins without a claim
		return cs.ended(ctx, c, lostCall(in.CallID))
	}
	if lost, err := cs.logs.fill(ctx, c.Tenant, &in); err != nil || lost != nil {
		if err != nil {
			return err
		}
		return cs.ended(ctx, c, *lost)
	}
	began := cs.cfg.Now()
	result, err := cs.tools.CallWith(ctx, tools.Call{
		ID: in.CallID, Scope: c.Key.String(), Tenant: c.Tenant, Kind: in.Kind, Server: in.Server, Tool: in.Tool, Arguments: in.Arguments,
		Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, Raw: true,
		TaskID: in.TaskID, AgentID: in.AgentID, ClientID: in.ClientID, Agent: true,
	}, cs.notes(ctx, c, in))
	if ctx.Err() != nil {
		return context.Cause(ctx) // the next delivery decides
	}
	out := outcome(in.CallID, result, err)
	out.DurationMS = cs.cfg.Now().Sub(began).Milliseconds()
	return cs.ended(ctx, c, out)
}

// dead reports a call that no worker lived to bring to an end.
func (cs *calls) dead(ctx context.Context, c cmd.Command, _ string) {
	if c.Verb == runOutside {
		cs.outside.dead(ctx, c)
		return
	}
	var job taskCall
	err := c.Decode(&job)
	if err == nil {
		var own bool
		if own, _, err = cs.claim(ctx, c, job); err == nil && own {
			err = cs.ended(ctx, c, lostCall(job.CallID))
		}
	}
	if err != nil {
		cs.deps.Logger.Error().Err(err).Str("call", job.CallID).Msg("failed to report end of tool call")
	}
}

// taskCall is a tool call within a task. Each process that has the task sends one: the call's
// log decides which of them runs the tool.
type taskCall struct {
	event.CallStartedData
	Restored time.Time `json:"restored,omitzero"` // when the task's log was: a command that claimed the call before may be lost
}

// claim claims the call for the command. own reports whether the command has the call, and
// again whether its tool may have begun before. Other commands for the call have nothing to do: the
// owning one stays in the queue until the task has the outcome.
func (cs *calls) claim(ctx context.Context, c cmd.Command, in taskCall) (own, again bool, err error) {
	l := cs.logs.open(callLog(c.Tenant, in.CallID), in.TaskID)
	if err := l.Sync(ctx); err != nil {
		return false, false, err
	}
	o := l.State()
	again = o.by != ""
	claim := event.CallStartedData{ // the task's log holds the arguments, and deletion removes them with it
		TaskHead: event.TaskHead{TaskID: in.TaskID, Attempt: in.Attempt}, CallID: in.CallID, Idempotent: in.Idempotent,
	}
	err = cs.logs.append(ctx, l, c.ID+callBegun, claim, func(o *outside) bool { return o.mayClaim(c.ID, in.Restored) })
	return o.by == c.ID, again, err
}

// notes returns what sends a service's notifications on to the task. Those that the
// bus does not take are lost: the call is not harmed.
func (cs *calls) notes(ctx context.Context, c cmd.Command, in event.CallStartedData) func(tools.Notification) {
	n := 0
	return func(note tools.Notification) {
		n++
		err := cs.send(ctx, cmd.Command{
			ID: fmt.Sprintf("%s.note.%d", in.CallID, n), Service: cmd.Task, Verb: cmd.NotifyCall, Tenant: c.Tenant, Key: c.Key,
			Data: encode(event.CallNotifiedData{
				CallID: in.CallID, Server: in.Server, ServerName: in.ServerName,
				NotificationType: note.Type, Message: note.Message, Data: note.Data, At: note.At,
			}),
		})
		if err != nil {
			cs.deps.Logger.Debug().Err(err).Str("call", in.CallID).Msg("tool call notification dropped")
		}
	}
}

// ended reports the outcome of a call to its task.
func (cs *calls) ended(ctx context.Context, c cmd.Command, out event.CallFinishedData) error {
	_, err := cs.payloads.Shrink(ctx, subject.Log{Tenant: c.Tenant, Kind: id.KindTask, Entity: c.Key}, &out)
	switch {
	case errors.Is(err, fault.New(fault.MessageTooBig)):
		full := fault.From(err, "")
		out.Status, out.Result, out.Code, out.Error = callError, nil, string(full.Code), full.Public()
	case err != nil:
		return err
	}
	report := cmd.Command{
		ID: out.CallID + ".ended", Service: cmd.Task, Verb: cmd.EndCall, Tenant: c.Tenant, Key: c.Key, Data: encode(out),
	}
	return cs.send(ctx, report)
}

// Outcomes of calls.
const (
	callSuccess = "success"
	callError   = "error"
	callUnknown = "unknown"
)

// lostCall is the outcome of a call whose tool may have begun, and whose result is lost.
func lostCall(callID string) event.CallFinishedData {
	lost := fault.New(fault.ServiceLost)
	return event.CallFinishedData{CallID: callID, Status: callUnknown, Code: string(lost.Code), Error: lost.Public()}
}

// outcome says what became of a call.
func outcome(callID string, r tools.Result, err error) event.CallFinishedData {
	out := event.CallFinishedData{CallID: callID, Status: callSuccess, Result: r.Data}
	if err != nil {
		f := fault.From(err, "")
		out.Status, out.Result, out.Code, out.Error, out.Details = callError, nil, string(f.Code), f.Public(), f.Details
		switch f.Code {
		case fault.ToolLost, fault.ServiceLost:
			out.Status = callUnknown
		case fault.ToolBadInput:
			out.Field = f.Field
		}
		return out
	}
	if len(out.Result) == 0 {
		out.Result = encode(r.Text)
	}
	if r.IsError {
		out.Status, out.Code, out.Error = callError, string(fault.ToolFailed), fault.New(fault.ToolFailed).Public()
	}
	return out
}
