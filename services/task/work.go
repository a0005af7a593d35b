package task

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/tools"
)

// workers returns the consumer of tool calls.
func (s *Service) workers() *command.Workers {
	return command.NewWorkers(s.deps.Conn, command.WorkersConfig{
		Service: CallQueue, Instance: s.deps.Instance, Concurrency: s.cfg.Calls, AckWait: s.cfg.AckWait,
		MaxDeliver: callDeliveries, Logger: s.deps.Logger, Registry: s.cfg.Registry, OnDead: s.callDead,
	}, s.work)
}

// work takes one tool call, within a task or outside of any.
func (s *Service) work(ctx context.Context, c cmd.Command, d command.Delivery) error {
	if c.Verb == runOutside {
		return s.runOutside(ctx, c)
	}
	return s.run(ctx, c, d)
}

// run runs one tool call and reports its outcome, if the call is this command's. When it
// comes again, its tool may have begun: only a call that bears repetition is run again.
func (s *Service) run(ctx context.Context, c cmd.Command, d command.Delivery) error {
	var job taskCall
	if err := c.Decode(&job); err != nil {
		return command.Permanent(err)
	}
	own, again, err := s.claimCall(ctx, c, job)
	if err != nil || !own {
		return err
	}
	in := job.CallStartedData
	if (again || d.Attempt > 1) && !in.Idempotent { // an older version begins without a claim
		return s.ended(ctx, c, lostCall(in.CallID))
	}
	if lost, err := s.fillCall(ctx, c.Tenant, &in); err != nil || lost != nil {
		if err != nil {
			return err
		}
		return s.ended(ctx, c, *lost)
	}
	began := s.cfg.Now()
	result, err := s.tools.CallWith(ctx, tools.Call{
		ID: in.CallID, Scope: c.Key.String(), Tenant: c.Tenant, Kind: in.Kind, Server: in.Server, Tool: in.Tool, Arguments: in.Arguments,
		Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, Raw: true,
		TaskID: in.TaskID, AgentID: in.AgentID, ClientID: in.ClientID, Agent: true,
	}, s.notes(ctx, c, in))
	if ctx.Err() != nil {
		return context.Cause(ctx) // the next delivery decides
	}
	out := outcome(in.CallID, result, err)
	out.DurationMS = s.cfg.Now().Sub(began).Milliseconds()
	return s.ended(ctx, c, out)
}

// callDead reports a call that no worker lived to bring to an end.
func (s *Service) callDead(ctx context.Context, c cmd.Command, _ string) {
	if c.Verb == runOutside {
		s.outsideDead(ctx, c)
		return
	}
	var job taskCall
	err := c.Decode(&job)
	if err == nil {
		var own bool
		if own, _, err = s.claimCall(ctx, c, job); err == nil && own {
			err = s.ended(ctx, c, lostCall(job.CallID))
		}
	}
	if err != nil {
		s.deps.Logger.Error().Err(err).Str("call", job.CallID).Msg("failed to report end of tool call")
	}
}

// taskCall is a tool call within a task. Each process that has the task sends one: the call's
// log decides which of them runs the tool.
type taskCall struct {
	event.CallStartedData
	Restored time.Time `json:"restored,omitzero"` // when the task's log was: a command that claimed the call before may be lost
}

// claimCall claims the call for the command. own reports whether the command has the call, and
// again whether its tool may have begun before. Other commands for the call have nothing to do: the
// owning one stays in the queue until the task has the outcome.
func (s *Service) claimCall(ctx context.Context, c cmd.Command, in taskCall) (own, again bool, err error) {
	l := s.openCall(callLog(c.Tenant, in.CallID), in.TaskID)
	if err := l.Sync(ctx); err != nil {
		return false, false, err
	}
	o := l.State()
	again = o.by != ""
	claim := event.CallStartedData{ // the task's log holds the arguments, and deletion removes them with it
		TaskHead: event.TaskHead{TaskID: in.TaskID, Attempt: in.Attempt}, CallID: in.CallID, Idempotent: in.Idempotent,
	}
	err = s.appendCall(ctx, l, c.ID+callBegun, claim, func(o *outside) bool { return o.mayClaim(c.ID, in.Restored) })
	return o.by == c.ID, again, err
}
