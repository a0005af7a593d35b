package task

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
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

// outside is the fold of the log of such a call. A tool that could not start may be tried again,
// so the log may have several starts; a tool that has started has one outcome.
type outside struct {
	task    string // set only in a log in which a call within a task is claimed
	started *event.CallStartedData
	by      string // the command that started it
	begun   time.Time
	ended   *event.CallFinishedData
	endedAt uint64 // sequence of the outcome
}

// Suffixes of the ids of events in a call's log. The command's id comes before them.
const (
	callBegun = ".started"
	callOver  = ".finished"
)

func (o *outside) fold(e event.Event) error {
	switch e.Type {
	case event.CallStarted:
		d, err := event.As[event.CallStartedData](e)
		if err != nil || d.TaskID != o.task {
			return err // a participant has reused the id of a call within a task
		}
		o.started, o.ended = &d, nil
		o.by, o.begun = strings.TrimSuffix(e.ID, callBegun), e.Time
	case event.CallFinished:
		d, err := event.As[event.CallFinishedData](e)
		if err != nil || d.TaskID != o.task {
			return err
		}
		o.started, o.ended, o.endedAt = nil, &d, e.Sequence
	default: // of a later version
	}
	return nil
}

// settled reports whether the call has its final outcome, which every repeat gets.
func (o *outside) settled() bool { return o.ended != nil && !notBegun(fault.Code(o.ended.Code)) }

// open reports whether the tool runs, or ran when its worker died.
func (o *outside) open() bool { return o.started != nil }

// mayBegin reports whether a command may start the call if its sender has seen the log up to the
// sequence: no command has claimed the call, and the sender has no answer yet.
func (o *outside) mayBegin(seen uint64) bool { return !o.settled() && !o.open() && o.endedAt <= seen }

// mayEnd is mayBegin for the outcome that the command reports.
func (o *outside) mayEnd(commandID string, seen uint64) bool {
	return !o.settled() && (!o.open() || o.by == commandID) && o.endedAt <= seen
}

// notBegun reports whether a call that failed with the code has not started.
func notBegun(code fault.Code) bool {
	switch code {
	case fault.ToolNotFound, fault.ServerNotFound, fault.ServiceNotFound, fault.ToolBadInput, fault.ToolDenied, fault.ToolsDown, fault.ToolsBusy,
		fault.Overloaded, fault.ServiceBusy, fault.QuotaExceeded:
		return true
	}
	return false
}

func callLog(t id.Tenant, callID string) subject.Log {
	return subject.Log{Tenant: t, Kind: id.KindCall, Entity: id.EntityFromExternal(callID)}
}

// logOfCall returns the log of the call outside of any task that a command is for.
func logOfCall(c cmd.Command) subject.Log {
	return subject.Log{Tenant: c.Tenant, Kind: id.KindCall, Entity: c.Key}
}

// runTool runs a tool outside of tasks, once per id, and answers with the outcome. A failure of the
// tool is an outcome, not an error. The tool runs to its end even if the participant disconnects.
func (s *Service) runTool(ctx context.Context, in cmd.ParticipantRequest) (cmd.ToolOutcome, error) {
	d, err := data[cmd.ToolRequest](in)
	if err != nil {
		return cmd.ToolOutcome{}, err
	}
	if d.CallID == "" {
		d.CallID = uuid.NewString()
	}
	log := callLog(in.Tenant, d.CallID)
	end, err := s.outcomeOutside(ctx, ctx, s.openCall(log, ""), in, d)
	if err != nil {
		return cmd.ToolOutcome{}, err
	}
	return s.told(ctx, in.Tenant, d, end)
}

// told returns the outcome of a call as its participant gets it. A tool that could not start is an error.
func (s *Service) told(ctx context.Context, t id.Tenant, d cmd.ToolRequest, end *event.CallFinishedData) (cmd.ToolOutcome, error) {
	if notBegun(fault.Code(end.Code)) {
		return cmd.ToolOutcome{}, fault.Newf(fault.Code(end.Code), "%s", end.Error).At(end.Field)
	}
	if err := s.payloads.Show(ctx, t, end); err != nil {
		return cmd.ToolOutcome{}, err
	}
	return cmd.ToolOutcome{
		ToolRequest: d, ServerName: end.ServerName, Status: end.Status, Result: end.Result, Code: end.Code, Error: end.Error,
		Details: end.Details, DurationMS: end.DurationMS,
	}, nil
}

// startTool is runTool for a caller that reads the outcome of a long call in the call's log.
func (s *Service) startTool(ctx context.Context, in cmd.ParticipantRequest) (cmd.ToolOutcome, error) {
	d, err := data[cmd.ToolStart](in)
	switch {
	case err != nil:
		return cmd.ToolOutcome{}, err
	case d.CallID == "":
		return cmd.ToolOutcome{}, fault.New(fault.InvalidField).At("call_id")
	}
	l := s.openCall(callLog(in.Tenant, d.CallID), "")
	waiting, cancel := context.WithTimeoutCause(ctx, time.Duration(max(0, d.WaitMS))*time.Millisecond, errNotOver)
	defer cancel()
	end, err := s.outcomeOutside(ctx, waiting, l, in, d.ToolRequest)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(waiting), errNotOver) {
		return s.startedTool(ctx, l, in, d.ToolRequest)
	}
	if err != nil {
		return cmd.ToolOutcome{}, err
	}
	return s.told(ctx, in.Tenant, d.ToolRequest, end)
}

// errNotOver ends the wait for the outcome of a call.
var errNotOver = errors.New("the call takes longer")

// startedTool answers for a call that takes longer than its caller waits.
func (s *Service) startedTool(ctx context.Context, l *ledger.Log[outside], in cmd.ParticipantRequest, d cmd.ToolRequest) (cmd.ToolOutcome, error) {
	if err := l.Sync(ctx); err != nil {
		return cmd.ToolOutcome{}, err
	}
	switch o := l.State(); {
	case o.settled():
		return s.told(ctx, in.Tenant, d, o.ended)
	case o.open():
		return cmd.ToolOutcome{ToolRequest: d, Status: cmd.CallRunning}, nil
	}
	return cmd.ToolOutcome{ToolRequest: d, Status: cmd.CallQueued}, nil
}

// outcomeOutside returns the outcome of a call, for which it waits as long as the second context lasts. It starts the call if
// no command has.
func (s *Service) outcomeOutside(ctx, waiting context.Context, l *ledger.Log[outside], in cmd.ParticipantRequest, d cmd.ToolRequest) (*event.CallFinishedData, error) {
	if err := l.Sync(ctx); err != nil {
		return nil, err
	}
	o := l.State()
	if !o.settled() && !o.open() {
		if err := s.beginOutside(ctx, in, d, l.Cursor().Seq); err != nil {
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

// openCall returns the log of a call, of the task or of none.
func (s *Service) openCall(ref subject.Log, task string) *ledger.Log[outside] {
	return ledger.Open(ledger.Config[outside]{Store: s.deps.Log, Source: source, Now: s.cfg.Now, Fold: func(o *outside, e event.Event) error {
		o.task = task
		return o.fold(e)
	}}, ref)
}

// beginOutside sends the call to the workers.
func (s *Service) beginOutside(ctx context.Context, in cmd.ParticipantRequest, d cmd.ToolRequest, seen uint64) error {
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
	tool := s.toolOf(ctx, in.Tenant, d)
	call.ServerName, call.Idempotent = tool.ServerName, tool.Idempotent
	if _, err := s.payloads.Shrink(ctx, callLog(in.Tenant, d.CallID), &call.CallStartedData); err != nil {
		return err
	}
	return s.Send(ctx, cmd.Command{
		ID: uuid.NewString(), Service: CallQueue, Verb: runOutside, Tenant: in.Tenant, Key: id.EntityFromExternal(d.CallID),
		Principal: in.Principal, Data: encode(call),
	})
}

// runOutside runs a call outside of any task, unless another command has claimed it: the log
// records the claim before the tool starts. If the command is delivered again after that, its
// worker has died: only a repeatable call runs again.
func (s *Service) runOutside(ctx context.Context, c cmd.Command) error {
	var in outsideCall
	if err := c.Decode(&in); err != nil {
		return command.Permanent(err)
	}
	l := s.openCall(logOfCall(c), "")
	if err := l.Sync(ctx); err != nil {
		return err
	}
	o := l.State()
	again := o.open() && o.by == c.ID
	if err := s.begin(ctx, c, in, l); err != nil || !o.open() || o.by != c.ID {
		return err
	}
	if again && !in.Idempotent {
		return s.endOutside(ctx, c, in, lostCall(in.CallID), l)
	}
	if lost, err := s.fillCall(ctx, c.Tenant, &in.CallStartedData); err != nil || lost != nil {
		if err != nil {
			return err
		}
		return s.endOutside(ctx, c, in, *lost, l)
	}
	began := s.cfg.Now()
	result, err := s.tools.Call(ctx, tools.Call{
		ID: in.CallID, Scope: "asp", Tenant: c.Tenant, Kind: in.Kind, Server: in.Server, Tool: in.Tool, Arguments: in.Arguments,
		Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, Raw: true, Priority: in.Priority, AgentID: in.AgentID, ClientID: in.ClientID,
		Agent: in.AgentID != "", Approval: approvalOf(in.Proof),
	})
	if ctx.Err() != nil {
		return context.Cause(ctx) // the next worker decides
	}
	out := outcome(in.CallID, result, err)
	out.DurationMS = s.cfg.Now().Sub(began).Milliseconds()
	return s.endOutside(ctx, c, in, out, l)
}

// overDay takes a person's call off the quota of the day. It returns the outcome of a call for which none is left, nil for
// one that may start.
func (s *Service) overDay(ctx context.Context, c cmd.Command, in outsideCall) (*event.CallFinishedData, error) {
	if in.AgentID != "" {
		return nil, nil //nolint:nilnil // agents have tasks, which have a quota of their own
	}
	err := s.cfg.Daily.Call(ctx, quota.Payer{Tenant: c.Tenant, Principal: c.Principal})
	o, over := errors.AsType[*quota.Over](err)
	if !over {
		return nil, err
	}
	s.cfg.Daily.Refuse(o)
	f := fault.From(err, "")
	return &event.CallFinishedData{CallID: in.CallID, Status: callError, Code: string(f.Code), Error: f.Public()}, nil
}

// begin takes the call off the quota of the day and claims it, unless it may not begin. A call over the quota gets its outcome.
func (s *Service) begin(ctx context.Context, c cmd.Command, in outsideCall, l *ledger.Log[outside]) error {
	if l.State().mayBegin(in.Seen) {
		over, err := s.overDay(ctx, c, in)
		if err != nil {
			return err
		}
		if over != nil {
			return s.endOutside(ctx, c, in, *over, l)
		}
	}
	return s.claim(ctx, c, in, l)
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
func (s *Service) claim(ctx context.Context, c cmd.Command, in outsideCall, l *ledger.Log[outside]) error {
	return s.appendOutside(ctx, c, callBegun, in.CallStartedData, l, func(o *outside) bool { return o.mayBegin(in.Seen) })
}

// endOutside records the outcome of a call, once.
func (s *Service) endOutside(ctx context.Context, c cmd.Command, in outsideCall, out event.CallFinishedData, l *ledger.Log[outside]) error {
	out.TaskHead, out.CallID, out.CallRequest, out.Kind = in.TaskHead, in.CallID, in.CallRequest, in.Kind
	out.Server, out.ServerName, out.Tool = in.Server, in.ServerName, in.Tool
	if _, err := s.payloads.Shrink(ctx, logOfCall(c), &out); err != nil {
		return err
	}
	return s.appendOutside(ctx, c, callOver, out, l, func(o *outside) bool { return o.mayEnd(c.ID, in.Seen) })
}

// appendOutside appends an event of the command to the call's log if it is missing.
func (s *Service) appendOutside(ctx context.Context, c cmd.Command, what string, data event.Data, l *ledger.Log[outside], missing func(*outside) bool) error {
	return s.appendCall(ctx, l, c.ID+what, data, missing)
}

// appendCall appends an event to a call's log if it is missing.
func (s *Service) appendCall(ctx context.Context, l *ledger.Log[outside], eventID string, data event.Data, missing func(*outside) bool) error {
	e, err := event.New(l.Ref, eventID, source, s.cfg.Now(), data)
	if err != nil {
		return command.Permanent(err)
	}
	e.TraceParent = telemetry.Inject(ctx)
	return l.Append(ctx, func(o *outside) ([]event.Event, error) {
		if !missing(o) {
			return nil, nil
		}
		return []event.Event{e}, nil
	})
}

// outsideDead records that no worker completed a call.
func (s *Service) outsideDead(ctx context.Context, c cmd.Command) {
	var in outsideCall
	err := c.Decode(&in)
	if err == nil {
		err = s.endOutside(ctx, c, in, lostCall(in.CallID), s.openCall(logOfCall(c), ""))
	}
	if err != nil {
		s.deps.Logger.Error().Err(err).Str("call", in.CallID).Msg("failed to record end of tool call")
	}
}

// mayClaim reports whether a command may claim a call within a task: it is not claimed, or
// was before its task's log was restored from a backup.
func (o *outside) mayClaim(commandID string, restored time.Time) bool {
	return o.by == "" || o.by != commandID && o.begun.Before(restored)
}
