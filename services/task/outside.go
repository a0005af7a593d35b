package task

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/tools"
)

// runOutside is the verb of a tool call outside of any task; data: outsideCall. Each
// repeat of the request may send one: the call's log decides which of them runs the tool.
var runOutside = id.MustName("run-outside")

// outsideCall is a tool call outside of any task.
type outsideCall struct {
	event.CallStartedData
	Priority string `json:"priority,omitempty"`
	Seen     uint64 `json:"seen"` // of the call's log, by who asks: it waits for an outcome after that
}

// outside is the fold of the log of such a call. A tool that was not begun may be tried
// again, so there can be several beginnings; a tool that was begun has one outcome.
type outside struct {
	task    string // empty, but for the log in which a call within a task is claimed
	started *event.CallStartedData
	by      string // the command that began it
	begun   time.Time
	ended   *event.CallFinishedData
	endedAt uint64 // sequence of the outcome
	broken  error
}

// Ends of the ids of the events of a call's log. Before them is the command's id.
const (
	callBegun = ".started"
	callOver  = ".finished"
)

func (o *outside) observe(e *eventlog.Entry) {
	switch e.Type {
	case event.CallStarted:
		d, err := event.As[event.CallStartedData](e.Event)
		if err == nil && d.TaskID != o.task {
			return // an outsider has chosen the id of a call within a task
		}
		o.started, o.ended, o.broken = &d, nil, errors.Join(o.broken, err)
		o.by, o.begun = strings.TrimSuffix(e.ID, callBegun), e.Time
	case event.CallFinished:
		d, err := event.As[event.CallFinishedData](e.Event)
		if err == nil && d.TaskID != o.task {
			return
		}
		o.started, o.ended, o.endedAt, o.broken = nil, &d, e.Sequence, errors.Join(o.broken, err)
	default: // of a later version
	}
}

// settled reports whether the call has the outcome that every repeat gets.
func (o *outside) settled() bool { return o.ended != nil && !notBegun(fault.Code(o.ended.Code)) }

// open reports whether the tool is being run, or was when its worker died.
func (o *outside) open() bool { return o.started != nil }

// mayBegin reports whether a command may begin the call whose sender has seen the log up to
// a sequence: the call is nobody's, and the sender has no answer yet.
func (o *outside) mayBegin(seen uint64) bool { return !o.settled() && !o.open() && o.endedAt <= seen }

// mayEnd is mayBegin for the outcome that the command reports.
func (o *outside) mayEnd(commandID string, seen uint64) bool {
	return !o.settled() && (!o.open() || o.by == commandID) && o.endedAt <= seen
}

// notBegun reports whether a call that failed with the code was not begun.
func notBegun(code fault.Code) bool {
	switch code {
	case fault.ToolNotFound, fault.ServerNotFound, fault.ServiceNotFound, fault.ToolBadInput, fault.ToolsDown, fault.Overloaded, fault.ServiceBusy:
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

// runTool runs a tool outside of any task, once however often it is asked for under the
// same id, and answers with the outcome: that the tool failed is one, and no error. The
// tool is run to its end also if nobody waits any more.
func (s *Service) runTool(ctx context.Context, in cmd.PeerRequest) (cmd.ToolOutcome, error) {
	d, err := data[cmd.ToolRequest](in)
	if err != nil {
		return cmd.ToolOutcome{}, err
	}
	if d.CallID == "" {
		d.CallID = uuid.NewString()
	}
	log := callLog(in.Tenant, d.CallID)
	o, w := s.outsideLog(log)
	if err := w.Sync(ctx); err != nil {
		return cmd.ToolOutcome{}, err
	}
	if !o.settled() && !o.open() {
		if err := s.beginOutside(ctx, in, d, w.Seq()); err != nil {
			return cmd.ToolOutcome{}, err
		}
	}
	if !o.settled() {
		if err := s.awaitOutside(ctx, log, w.Cursor(), o); err != nil {
			return cmd.ToolOutcome{}, err
		}
	}
	end := o.ended
	if o.broken != nil {
		return cmd.ToolOutcome{}, o.broken
	}
	if notBegun(fault.Code(end.Code)) {
		return cmd.ToolOutcome{}, fault.Newf(fault.Code(end.Code), "%s", end.Error)
	}
	if err := s.payloads.Show(ctx, in.Tenant, end); err != nil {
		return cmd.ToolOutcome{}, err
	}
	return cmd.ToolOutcome{
		ToolRequest: d, ServerName: end.ServerName, Status: end.Status, Result: end.Result, Code: end.Code, Error: end.Error, DurationMS: end.DurationMS,
	}, nil
}

func (s *Service) outsideLog(log subject.Log) (*outside, *eventlog.Writer) {
	o := &outside{}
	return o, s.deps.Log.Writer(log, o.observe)
}

// beginOutside hands the call to the workers.
func (s *Service) beginOutside(ctx context.Context, in cmd.PeerRequest, d cmd.ToolRequest, seen uint64) error {
	call := outsideCall{Priority: d.Priority, Seen: seen, CallStartedData: event.CallStartedData{
		CallID: d.CallID, CallRequest: in.RequestID, Kind: d.Kind, Server: d.Server, Tool: d.Tool, Arguments: d.Arguments, TimeoutMS: max(0, d.TimeoutMS),
	}}
	if len(call.Arguments) == 0 {
		call.Arguments = json.RawMessage("{}")
	}
	call.Attempt = 1 // outside of tasks there is no other
	switch in.Kind {
	case cmd.PeerClient:
		call.ClientID = in.ID
	case cmd.PeerAgent:
		call.AgentID, call.AgentName = in.ID, in.Name
	}
	tool := s.toolOf(ctx, in.Tenant, d)
	call.ServerName, call.Idempotent = tool.ServerName, tool.Idempotent
	if _, err := s.payloads.Shrink(ctx, callLog(in.Tenant, d.CallID), &call.CallStartedData); err != nil {
		return err
	}
	return s.Send(ctx, cmd.Command{
		ID: uuid.NewString(), Service: callService, Verb: runOutside, Tenant: in.Tenant, Key: id.EntityFromExternal(d.CallID),
		Principal: in.Principal, Data: encode(call),
	})
}

// awaitOutside waits for the next outcome in the call's log.
func (s *Service) awaitOutside(ctx context.Context, log subject.Log, after eventlog.Cursor, o *outside) error {
	for e, err := range s.deps.Log.Tail(ctx, log, after) {
		if err != nil {
			return err
		}
		if o.observe(e); e.Type == event.CallFinished {
			return nil
		}
	}
	return context.Cause(ctx)
}

// runOutside runs a call outside of any task, if no other command does or has: the log says
// whose it is before the tool begins. When the command comes again after that, its worker
// has died: only a call that bears repetition is run again.
func (s *Service) runOutside(ctx context.Context, c cmd.Command) error {
	var in outsideCall
	if err := c.Decode(&in); err != nil {
		return command.Permanent(err)
	}
	o, w := s.outsideLog(logOfCall(c))
	if err := w.Sync(ctx); err != nil {
		return err
	}
	again := o.open() && o.by == c.ID
	if err := s.claim(ctx, c, in, o, w); err != nil || !o.open() || o.by != c.ID {
		return err
	}
	if again && !in.Idempotent {
		return s.endOutside(ctx, c, in, lostCall(in.CallID), o, w)
	}
	if lost, err := s.fillCall(ctx, c.Tenant, &in.CallStartedData); err != nil || lost != nil {
		if err != nil {
			return err
		}
		return s.endOutside(ctx, c, in, *lost, o, w)
	}
	began := s.cfg.Now()
	result, err := s.tools.Call(ctx, tools.Call{
		ID: in.CallID, Scope: "asp", Tenant: c.Tenant, Kind: in.Kind, Server: in.Server, Tool: in.Tool, Arguments: in.Arguments,
		Timeout: time.Duration(in.TimeoutMS) * time.Millisecond, Raw: true, Priority: in.Priority, AgentID: in.AgentID, ClientID: in.ClientID,
	})
	if ctx.Err() != nil {
		return context.Cause(ctx) // the worker that has it next decides
	}
	var out event.CallFinishedData
	out.Status, out.Result, out.Code, out.Error = outcome(result, err)
	out.DurationMS = s.cfg.Now().Sub(began).Milliseconds()
	return s.endOutside(ctx, c, in, out, o, w)
}

// claim records that the command begins the call, unless the call is another command's, or
// the peer that sent this one has its answer.
func (s *Service) claim(ctx context.Context, c cmd.Command, in outsideCall, o *outside, w *eventlog.Writer) error {
	return s.appendOutside(ctx, c, callBegun, in.CallStartedData, o, w, func() bool { return o.mayBegin(in.Seen) })
}

// endOutside records the outcome of a call, once.
func (s *Service) endOutside(ctx context.Context, c cmd.Command, in outsideCall, out event.CallFinishedData, o *outside, w *eventlog.Writer) error {
	out.TaskHead, out.CallID, out.CallRequest, out.Kind = in.TaskHead, in.CallID, in.CallRequest, in.Kind
	out.Server, out.ServerName, out.Tool = in.Server, in.ServerName, in.Tool
	if _, err := s.payloads.Shrink(ctx, logOfCall(c), &out); err != nil {
		return err
	}
	return s.appendOutside(ctx, c, callOver, out, o, w, func() bool { return o.mayEnd(c.ID, in.Seen) })
}

// appendOutside appends an event of the command to the call's log if it is missing.
func (s *Service) appendOutside(ctx context.Context, c cmd.Command, what string, data event.Data, o *outside, w *eventlog.Writer, missing func() bool) error {
	return s.appendCall(ctx, logOfCall(c), c.ID+what, data, o, w, missing)
}

// appendCall appends an event to a call's log if it is missing.
func (s *Service) appendCall(ctx context.Context, log subject.Log, eventID string, data event.Data, o *outside, w *eventlog.Writer, missing func() bool) error {
	e, err := event.New(log, eventID, source, s.cfg.Now(), data)
	if err != nil {
		return command.Permanent(err)
	}
	e.TraceParent = telemetry.Inject(ctx)
	return w.Append(ctx, func() ([]event.Event, error) {
		switch {
		case o.broken != nil:
			return nil, command.Permanent(o.broken)
		case missing():
			return []event.Event{e}, nil
		}
		return nil, nil
	})
}

// outsideDead records that no worker lived to bring a call to an end.
func (s *Service) outsideDead(ctx context.Context, c cmd.Command) {
	var in outsideCall
	err := c.Decode(&in)
	if err == nil {
		o, w := s.outsideLog(logOfCall(c))
		err = s.endOutside(ctx, c, in, lostCall(in.CallID), o, w)
	}
	if err != nil {
		s.deps.Logger.Error().Err(err).Str("call", in.CallID).Msg("record that a tool call was given up")
	}
}
