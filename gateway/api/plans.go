package api

import (
	"net/http"

	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// plans are what runs of sessions are about to do, in steps.
type plans struct {
	*parts
	sessions sessions
}

// maxAction bounds the body of an action, which is at most an id and a reason.
const maxAction = 16 << 10

func (p plans) routes() []Route {
	return []Route{
		{
			Method: "POST", Path: "/sessions/{id}/runs/{run}/steps/{step}/cancel", ID: "cancelStep", Tag: "sessions", Summary: "Cancel a step of a run. The run last is the active one.",
			Body: wire.StepAction{}, Example: `{"reason":"not needed any more"}`, Answers: taken("The step is cancelled."),
			Faults: actionFaults(fault.RunOver, fault.RunNotFound, fault.TaskNotFound), Handler: p.server.Serve(p.step(cmd.CancelStep)),
		},
		{
			Method: "POST", Path: "/sessions/{id}/runs/{run}/steps/{step}/restart", ID: "restartStep", Tag: "sessions",
			Summary: "Restart a step of the active run, or of the last one in a new run. The run last is either.",
			Body:    wire.StepAction{}, Example: `{"reason":"the disk was full","max_attempts":3}`, Answers: taken("The step is restarted. The run may be a new one."),
			Faults: actionFaults(fault.RunOver, fault.RunNotFound, fault.TaskNotFound), Handler: p.server.Serve(p.step(cmd.RestartStep)),
		},
		{
			Method: "POST", Path: "/sessions/{id}/plan/cancel", ID: "cancelPlan", Tag: "sessions", Summary: "Give up the plan that is being made or waits for its confirmation.",
			Body: wire.CancelPlan{}, Example: `{"reason":"not needed any more"}`, Answers: taken("The plan is given up."), Faults: actionFaults(fault.RunOver),
			Handler: p.server.Serve(p.cancel),
		},
		{
			Method: "POST", Path: "/sessions/{id}/replan", ID: "replanSession", Tag: "sessions", Summary: "Have another plan made, in the active run or in a new one.",
			Body: wire.NewPlan{}, Example: `{"question":"what does notes.md say?"}`, Answers: taken("Another plan is being made."),
			Faults:  actionFaults(fault.RunOver, fault.SessionClosed, fault.SessionBusy, fault.QueueFull, fault.ModelNotFound),
			Handler: p.server.Serve(p.replan),
		},
	}
}

// lastRun stands for the active run, or for the last one.
const lastRun = "last"

// step returns the handler of a request about a step of a run.
func (p plans) step(verb id.Name) respond.Handler {
	return func(r *http.Request, who *edge.Client) (any, error) {
		log, err := p.sessions.existing(r, who)
		if err != nil {
			return nil, err
		}
		var b wire.StepAction
		if err := request.Decode(r, maxAction, &b, false); err != nil {
			return nil, err
		}
		if b.MaxAttempts < 0 || b.MaxAttempts > maxOption {
			return nil, fault.Newf(fault.InvalidField, "max_attempts must be a number from 1 to %d.", maxOption).At("max_attempts")
		}
		run, step := r.PathValue("run"), r.PathValue("step")
		c := cmd.Command{Service: cmd.Pipeline, Verb: verb, Key: log.Entity}
		if c.ID, err = edge.CommandID(b.ID, verb.String(), run, step); err != nil {
			return nil, err
		}
		if run == lastRun {
			run = ""
		}
		ref := cmd.StepRef{RunID: run, StepID: step, Reason: b.Reason, MaxAttempts: b.MaxAttempts}
		e, err := act(r, who, log, c, ref, func(e event.Event) bool {
			return e.ID == c.ID+".cancelled."+step || e.ID == c.ID+".restarted."+step
		})
		if err != nil {
			return nil, err
		}
		return carriedOut(c.ID, e)
	}
}

// carriedOut answers a request about a run with the event that it has caused.
func carriedOut(commandID string, e event.Event) (any, error) {
	var of struct {
		RunID string `json:"run_id"`
	}
	if e.Sequence > 0 {
		if err := e.Decode(&of); err != nil {
			return nil, err
		}
	}
	return respond.Accepted{Answer: wire.Accepted{Accepted: true, CommandID: commandID, RunID: of.RunID, Seq: e.Sequence}}, nil
}

// cancel gives up the plan of the active run, whose steps have not begun.
func (p plans) cancel(r *http.Request, who *edge.Client) (any, error) {
	log, err := p.sessions.existing(r, who)
	if err != nil {
		return nil, err
	}
	var b wire.CancelPlan
	if err := request.Decode(r, maxAction, &b, false); err != nil {
		return nil, err
	}
	c := cmd.Command{Service: cmd.Pipeline, Verb: cmd.CancelPlan, Key: log.Entity}
	if c.ID, err = edge.CommandID(b.ID, cmd.CancelPlan.String()); err != nil {
		return nil, err
	}
	e, err := act(r, who, log, c, cmd.CancelRun{Reason: b.Reason}, func(e event.Event) bool { return e.ID == c.ID+".plan-cancelled" })
	if err != nil {
		return nil, err
	}
	return carriedOut(c.ID, e)
}

// replan has another plan made: for the active run, or in a new one.
func (p plans) replan(r *http.Request, who *edge.Client) (any, error) {
	log, err := p.sessions.existing(r, who)
	if err != nil {
		return nil, err
	}
	var b wire.NewPlan
	if err := request.Decode(r, maxMessage, &b, false); err != nil {
		return nil, err
	}
	in := cmd.ReplanRun{Question: b.Question}
	if in.RunSpec, err = spec(b.RunOptions); err != nil {
		return nil, err
	}
	in.Mode = event.ModePlan
	c := cmd.Command{Service: cmd.Pipeline, Verb: cmd.Replan, Key: log.Entity}
	if c.ID, err = edge.CommandID(b.ID, cmd.Replan.String()); err != nil {
		return nil, err
	}
	is := received(c.ID)
	e, err := act(r, who, log, c, in, func(e event.Event) bool { return e.ID == c.ID+".plan-cancelled" || is(e) })
	switch {
	case err != nil:
		return nil, err
	case e.Type == event.MessageRefused:
		return took(c.ID, e)
	}
	return carriedOut(c.ID, e)
}
