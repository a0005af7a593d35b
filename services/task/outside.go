package task

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/quota"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/tools"
)

// runOutside is the verb of a tool call outside of any task; data: outsideCall. Each
// repeat of the request may send one: the call's log decides which of them runs the tool.
var runOutside = id.MustName("run-outside")

// outsideCall is a tool call outside of any task.
type outsideCall struct {
	event.CallStartedData
	Priority string       `json:"priority,omitempty"`
	Proof    *event.Proof `json:"proof,omitempty"` // that a person has asked for the call
	Seen     uint64       `json:"seen"`            // the sequence up to which the sender has seen the call's log: it waits for a later outcome
}

// outsideCalls runs the tools that participants call outside of any task.
type outsideCalls struct {
	*base

	logs  *callLogs
	shelf *shelf
	tools tools.Toolbox
}

// run runs a tool outside of tasks, once per id, and answers with the outcome. A failure of the
// tool is an outcome, not an error. The tool runs to its end even if the participant disconnects.
func (oc *outsideCalls) run(ctx context.Context, in cmd.ParticipantRequest) (cmd.ToolOutcome, error) {
	d, err := data[cmd.ToolRequest](in)
	if err != nil {
		return cmd.ToolOutcome{}, err
	}
	if d.CallID == "" {
		d.CallID = uuid.NewString()
	}
	log := callLog(in.Tenant, d.CallID)
	end, err := oc.await(ctx, ctx, oc.logs.open(log, ""), in, d)
	if err != nil {
		return cmd.ToolOutcome{}, err
	}
	return oc.told(ctx, in.Tenant, d, end)
}

// told returns the outcome of a call as its participant gets it. A tool that could not start is an error.
func (oc *outsideCalls) told(ctx context.Context, t id.Tenant, d cmd.ToolRequest, end *event.CallFinishedData) (cmd.ToolOutcome, error) {
	if notBegun(fault.Code(end.Code)) {
		return cmd.ToolOutcome{}, fault.Newf(fault.Code(end.Code), "%s", end.Error).At(end.Field)
	}
	if err := oc.payloads.Show(ctx, t, end); err != nil {
		return cmd.ToolOutcome{}, err
	}
	return cmd.ToolOutcome{
		ToolRequest: d, ServerName: end.ServerName, Status: end.Status, Result: end.Result, Code: end.Code, Error: end.Error,
		Details: end.Details, DurationMS: end.DurationMS,
	}, nil
}

// start is run for a caller that reads the outcome of a long call in the call's log.
func (oc *outsideCalls) start(ctx context.Context, in cmd.ParticipantRequest) (cmd.ToolOutcome, error) {
	d, err := data[cmd.ToolStart](in)
	switch {
	case err != nil:
		return cmd.ToolOutcome{}, err
	case d.CallID == "":
		return cmd.ToolOutcome{}, fault.New(fault.InvalidField).At("call_id")
	}
	l := oc.logs.open(callLog(in.Tenant, d.CallID), "")
	waiting, cancel := context.WithTimeoutCause(ctx, time.Duration(max(0, d.WaitMS))*time.Millisecond, errNotOver)
	defer cancel()
	end, err := oc.await(ctx, waiting, l, in, d.ToolRequest)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(waiting), errNotOver) {
		return oc.started(ctx, l, in, d.ToolRequest)
	}
	if err != nil {
		return cmd.ToolOutcome{}, err
	}
	return oc.told(ctx, in.Tenant, d.ToolRequest, end)
}

// errNotOver ends the wait for the outcome of a call.
var errNotOver = errors.New("the call takes longer")

// started answers for a call that takes longer than its caller waits.
func (oc *outsideCalls) started(ctx context.Context, l *ledger.Log[outside], in cmd.ParticipantRequest, d cmd.ToolRequest) (cmd.ToolOutcome, error) {
	if err := l.Sync(ctx); err != nil {
		return cmd.ToolOutcome{}, err
	}
	switch o := l.State(); {
	case o.settled():
		return oc.told(ctx, in.Tenant, d, o.ended)
	case o.open():
		return cmd.ToolOutcome{ToolRequest: d, Status: cmd.CallRunning}, nil
	}
	return cmd.ToolOutcome{ToolRequest: d, Status: cmd.CallQueued}, nil
}

// await returns the outcome of a call, for which it waits as long as the second context lasts. It starts the call if
// no command has.
func (oc *outsideCalls) await(ctx, waiting context.Context, l *ledger.Log[outside], in cmd.ParticipantRequest, d cmd.ToolRequest) (*event.CallFinishedData, error) {
	if err := l.Sync(ctx); err != nil {
		return nil, err
	}
	o := l.State()
	if !o.settled() && !o.open() {
		if err := oc.queue(ctx, in, d, l.Cursor().Seq); err != nil {
			return nil, err
		}
	}
	if !o.settled() {
		if err := l.Await(waiting, func(e event.Event) bool { return e.Type == event.CallFinished && o.ended != nil }); err != nil {
			return nil, err
		}
	}
	return o.ended, nil
}

// queue sends the call to the workers.
func (oc *outsideCalls) queue(ctx context.Context, in cmd.ParticipantRequest, d cmd.ToolRequest, seen uint64) error {
	call := outsideCall{Priority: d.Priority, Proof: in.Proof, Seen: seen, CallStartedData: event.CallStartedData{
		CallID: d.CallID, CallRequest: in.RequestID, Kind: d.Kind, Server: d.Server, Tool: d.Tool, Arguments: d.Arguments, TimeoutMS: max(0, d.TimeoutMS),
	}}
	if len(call.Arguments) == 0 {
		call.Arguments = json.RawMessage("{}")
	}
	call.Principal = in.Principal
	call.Attempt = 1 // a call outside of tasks has one attempt
	switch in.Kind {
	case cmd.ParticipantClient:
		call.ClientID = in.ID
	case cmd.ParticipantAgent:
		call.AgentID, call.AgentName = in.ID, in.Name
	}
	tool := oc.shelf.toolOf(ctx, in.Tenant, d)
	call.ServerName, call.Idempotent = tool.ServerName, tool.Idempotent
	if _, err := oc.payloads.Shrink(ctx, callLog(in.Tenant, d.CallID), &call.CallStartedData); err != nil {
		return err
	}
	return oc.send(ctx, cmd.Command{
		ID: uuid.NewString(), Service: CallQueue, Verb: runOutside, Tenant: in.Tenant, Key: id.EntityFromExternal(d.CallID),
		Principal: in.Principal, Data: encode(call),
	})
}

// work runs a call outside of any task, unless another command has claimed it: the log
// records the claim before the tool starts. If the command is delivered again after that, its
// worker has died: only a repeatable call runs again.
func (oc *outsideCalls) work(ctx context.Context, c cmd.Command) error {
	var in outsideCall
	if err := c.Decode(&in); err != nil {
		return command.Permanent(err)
	}
	l := oc.logs.open(logOfCall(c), "")
	if err := l.Sync(ctx); err != nil {
		return err
	}
	o := l.State()
	again := o.open() && o.by == c.ID
	if err := oc.begin(ctx, c, in, l); err != nil || !o.open() || o.by != c.ID {
		return err
	}
	if again && !in.Idempotent {
		return oc.end(ctx, c, in, lostCall(in.CallID), l)
	}
	if lost, err := oc.logs.fill(ctx, c.Tenant, &in.CallStartedData); err != nil || lost != nil {
		if err != nil {
			return err
		}
		return oc.end(ctx, c, in, *lost, l)
	}
	began := oc.cfg.Now()
	result, err := oc.tools.Call(ctx, tools.Call{
		ID: in.CallID, Scope: "asp", Tenant: c.Tenant, Kind: in.Kind, Server: in.Server, Tool: in.Tool, Arguments: in.Arguments,
		Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, Raw: true, Priority: in.Priority, AgentID: in.AgentID, ClientID: in.ClientID,
		Agent: in.AgentID != "", Approval: approvalOf(in.Proof),
	})
	if ctx.Err() != nil {
		return context.Cause(ctx) // the next worker decides
	}
	out := outcome(in.CallID, result, err)
	out.DurationMS = oc.cfg.Now().Sub(began).Milliseconds()
	return oc.end(ctx, c, in, out, l)
}

// overDay takes a person's call off the quota of the day. It returns the outcome of a call for which none is left, nil for
// one that may start.
func (oc *outsideCalls) overDay(ctx context.Context, c cmd.Command, in outsideCall) (*event.CallFinishedData, error) {
	if in.AgentID != "" {
		return nil, nil //nolint:nilnil // agents have tasks, which have a quota of their own
	}
	err := oc.cfg.Daily.Call(ctx, quota.Payer{Tenant: c.Tenant, Principal: c.Principal})
	o, over := errors.AsType[*quota.Over](err)
	if !over {
		return nil, err
	}
	oc.cfg.Daily.Refuse(o)
	f := fault.From(err, "")
	return &event.CallFinishedData{CallID: in.CallID, Status: callError, Code: string(f.Code), Error: f.Public()}, nil
}

// begin takes the call off the quota of the day and claims it, unless it may not begin. A call over the quota gets its outcome.
func (oc *outsideCalls) begin(ctx context.Context, c cmd.Command, in outsideCall, l *ledger.Log[outside]) error {
	if l.State().mayBegin(in.Seen) {
		over, err := oc.overDay(ctx, c, in)
		if err != nil {
			return err
		}
		if over != nil {
			return oc.end(ctx, c, in, *over, l)
		}
	}
	return oc.claim(ctx, c, in, l)
}

// approvalOf is a person's own request as an approval.
func approvalOf(proof *event.Proof) *tools.Approval {
	if proof == nil {
		return nil
	}
	return &tools.Approval{Proof: proof}
}

// claim records that the command starts the call, unless another command has claimed it or the
// sender has its answer.
func (oc *outsideCalls) claim(ctx context.Context, c cmd.Command, in outsideCall, l *ledger.Log[outside]) error {
	return oc.append(ctx, c, callBegun, in.CallStartedData, l, func(o *outside) bool { return o.mayBegin(in.Seen) })
}

// end records the outcome of a call, once.
func (oc *outsideCalls) end(ctx context.Context, c cmd.Command, in outsideCall, out event.CallFinishedData, l *ledger.Log[outside]) error {
	out.TaskHead, out.CallID, out.CallRequest, out.Kind = in.TaskHead, in.CallID, in.CallRequest, in.Kind
	out.Server, out.ServerName, out.Tool = in.Server, in.ServerName, in.Tool
	if _, err := oc.payloads.Shrink(ctx, logOfCall(c), &out); err != nil {
		return err
	}
	return oc.append(ctx, c, callOver, out, l, func(o *outside) bool { return o.mayEnd(c.ID, in.Seen) })
}

// append appends an event of the command to the call's log if it is missing.
func (oc *outsideCalls) append(ctx context.Context, c cmd.Command, what string, data event.Data, l *ledger.Log[outside], missing func(*outside) bool) error {
	return oc.logs.append(ctx, l, c.ID+what, data, missing)
}

// dead records that no worker completed a call.
func (oc *outsideCalls) dead(ctx context.Context, c cmd.Command) {
	var in outsideCall
	err := c.Decode(&in)
	if err == nil {
		err = oc.end(ctx, c, in, lostCall(in.CallID), oc.logs.open(logOfCall(c), ""))
	}
	if err != nil {
		oc.deps.Logger.Error().Err(err).Str("call", in.CallID).Msg("failed to record end of tool call")
	}
}
