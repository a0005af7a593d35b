package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/tools"
)

// parallelCalls bounds the tool calls of one message that run at once.
const parallelCalls = 8

// unknownOutcome is the result, for people and the model, of a call that was started, lost, and
// must not be repeated.
const unknownOutcome = "Outcome unknown: the tool was started, but its result was lost or did not come in time. " +
	"It may or may not have had its effect and was not run again. Check before you repeat it."

// calls brings the tool calls of a message to their outcomes.
type calls struct {
	*attempt

	offer     *offer
	products  *products
	questions *questions
	budget    *budget

	servers map[string]tools.Tool // by name, those of the calls that run
	denied  *quota.Over           // a call was not begun
}

// bring asks people about the calls that they have to allow, and brings those that
// may run to an outcome: several side by side, begun in their order. Intent and start are
// in the log before a tool runs, the result after. A call that a dead attempt had started
// is repeated only if its tool is idempotent. The log's writer belongs to this goroutine
// alone.
func (cs *calls) bring(ctx context.Context, st conversation.Action) error {
	offered, err := cs.offer.list(ctx)
	if err != nil {
		return err
	}
	byName := make(map[string]tools.Tool, len(offered))
	for _, o := range offered {
		byName[o.Name] = o
	}
	cs.servers = byName
	if err := cs.ask(ctx, st.Ask, byName); err != nil {
		return err
	}
	return cs.runTools(ctx, st.Calls, byName)
}

// ask asks people about the calls, all at once. A tool that is not on offer cannot run, so people are not asked about it.
func (cs *calls) ask(ctx context.Context, list []event.ToolCall, offered map[string]tools.Tool) error {
	known := make([]event.ToolCall, 0, len(list))
	for _, c := range list {
		if _, ok := offered[c.Name]; ok {
			known = append(known, c)
		} else if err := cs.refuse(ctx, c, fault.New(fault.ToolNotFound)); err != nil {
			return err
		}
	}
	return cs.questions.aboutCalls(ctx, known, offered)
}

func (cs *calls) runTools(ctx context.Context, calls []event.ToolCall, offered map[string]tools.Tool) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
	}()
	results := make(chan outcome, parallelCalls)
	begun := map[string]bool{}
	for running := 0; len(calls) > 0 || running > 0; {
		if len(calls) > 0 && running < parallelCalls {
			c := calls[0]
			calls, begun[c.ID] = calls[1:], true
			ok, err := cs.prepare(ctx, c, offered[c.Name])
			if err != nil {
				return err
			}
			if ok {
				running++
				call := cs.callOf(c)
				wg.Go(func() { results <- cs.callTool(ctx, c, call, offered[c.Name]) })
			}
			continue
		}
		select {
		case o := <-results:
			running--
			if err := cs.settle(ctx, o); err != nil {
				return err
			}
		case <-cs.questions.answered:
			if err := cs.log.Sync(ctx); err != nil {
				return err
			}
			calls = cs.allowed(begun)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if over := cs.denied; over != nil {
		cs.denied = nil
		return over
	}
	return nil
}

// allowed returns the calls that may run and have not begun yet: people may answer
// while others run.
func (cs *calls) allowed(begun map[string]bool) []event.ToolCall {
	var out []event.ToolCall
	for _, c := range cs.state.Next(cs.id).Calls {
		if !begun[c.ID] {
			out = append(out, c)
		}
	}
	return out
}

// prepare records intent and start of one call. It reports false when the call
// already has its outcome: it must not be repeated, or may not run.
func (cs *calls) prepare(ctx context.Context, c event.ToolCall, offered tools.Tool) (bool, error) {
	exec := cs.begun.ExecutionID
	known := cs.state.Call(c.ID)
	if known != nil && known.Status == conversation.CallStarted && !known.Idempotent {
		return false, cs.end(ctx, event.ToolUnknownData{
			CallID: c.ID, RunID: cs.runID, ExecutionID: exec, Attempt: cs.number, Tool: c.Name, Message: unknownOutcome, Part: cs.begun.Part,
		})
	}
	if c.Invalid != "" {
		return false, cs.refuse(ctx, c, fault.Newf(fault.ToolBadInput, "%s", c.Invalid))
	}
	if why := cs.forbidden(c, offered); why != nil {
		return false, cs.refuse(ctx, c, why)
	}
	if ok, err := cs.count(ctx, known); !ok {
		return false, err
	}
	data := append(cs.intent(c, offered), event.ToolStartedData{
		CallID: c.ID, RunID: cs.runID, ExecutionID: exec, Attempt: cs.number, Tool: c.Name,
		Retry: known != nil && known.Status == conversation.CallStarted, Arguments: c.Arguments, Part: cs.begun.Part,
	})
	return true, cs.append(ctx, data...)
}

// count takes a call off the daily quota, once for all its attempts. It reports false if the quota
// is used up; running calls finish first.
func (cs *calls) count(ctx context.Context, known *conversation.Call) (bool, error) {
	if known != nil || cs.denied != nil {
		return known != nil, nil //nolint:nilerr // the calls that run are let finish first
	}
	err := cs.budget.call(ctx)
	if errors.As(err, &cs.denied) { // which is looked at when the calls that run have ended
		return false, nil
	}
	return err == nil, err
}

// intent is the record that a call is about to be made, once.
func (cs *calls) intent(c event.ToolCall, offered tools.Tool) []event.Data {
	if cs.state.Call(c.ID) != nil {
		return nil
	}
	asked, _ := cs.state.Approval(c.ID)
	return []event.Data{event.ToolCalledData{
		CallID: c.ID, RunID: cs.runID, ExecutionID: cs.begun.ExecutionID, Attempt: cs.number, Tool: c.Name,
		Description: "Executing " + c.Name, Arguments: c.Arguments, Digest: digest(c),
		Idempotent: offered.Repeatable(c.Arguments), InputID: asked.QuestionID, Part: cs.begun.Part,
	}}
}

// digest binds a decision to one exact call.
func digest(c event.ToolCall) string { return signature.Digest(c.Name, c.Arguments) }

// callOf is the call as the tool service gets it.
func (cs *calls) callOf(c event.ToolCall) tools.Call {
	call := tools.Call{
		ID: c.ID, Scope: cs.log.Ref.Name(), Tenant: cs.tenant, Tool: c.Name, Arguments: c.Arguments,
		Timeout: cs.s.cfg.ToolTimeout, AgentID: cs.agentID(), Asked: cs.state.Asks(c.ID),
	}
	if conversation.TeamTool(c.Name) { // of others it was decided when the model asked for the call
		call.Tainted = cs.state.Tainted
	}
	if asked, ok := cs.state.Approval(c.ID); ok {
		call.Approval = &tools.Approval{Kind: cs.log.Ref.Kind, Entity: cs.log.Ref.Entity, Proof: asked.Proof, Definition: asked.Shown}
	}
	return call
}

func (cs *calls) callTool(ctx context.Context, c event.ToolCall, call tools.Call, offered tools.Tool) (o outcome) {
	ctx, span := telemetry.Start(ctx, "execute_tool "+c.Name, trace.SpanKindInternal)
	began := cs.s.cfg.Now()
	defer func() {
		o.took = cs.s.cfg.Now().Sub(began)
		telemetry.End(span, o.err)
	}()
	if o.call, o.tool = c, offered; ctx.Err() != nil { // no tool starts after the end
		o.err = context.Cause(ctx)
		return o
	}
	o.result, o.err = cs.offer.caller.Call(ctx, call)
	return o
}

// settle appends the outcome of a call. An interrupted call gets none: the worker that resumes the
// job decides about it.
func (cs *calls) settle(ctx context.Context, o outcome) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	exec, took := cs.begun.ExecutionID, o.took.Milliseconds()
	switch {
	case cs.unknowable(o):
		return cs.end(ctx, event.ToolUnknownData{
			CallID: o.call.ID, RunID: cs.runID, ExecutionID: exec, Attempt: cs.number,
			Tool: o.call.Name, Message: unknownOutcome, Part: cs.begun.Part,
		})
	case o.err != nil || o.result.IsError:
		f := cs.toolFault(o)
		return cs.end(ctx, event.ToolFailedData{
			CallID: o.call.ID, RunID: cs.runID, ExecutionID: exec, Attempt: cs.number, Tool: o.call.Name,
			Code: string(f.Code), Message: f.Public(), DurationMS: took, Untrusted: o.untrusted(), Part: cs.begun.Part,
		})
	}
	products, err := cs.products.of(ctx, o)
	if err != nil {
		return err
	}
	files, lost, err := cs.products.pictures(ctx, o)
	if err != nil {
		return err
	}
	text, cut := fit(o.result.Text, maxText)
	return cs.end(ctx, append(append(products, lost...), event.ToolCompletedData{
		CallID: o.call.ID, RunID: cs.runID, ExecutionID: exec, Attempt: cs.number, Tool: o.call.Name,
		Result: text, Truncated: cut || o.result.Truncated, Bytes: o.result.Bytes, DurationMS: took,
		Untrusted: o.untrusted(), Files: files, Part: cs.begun.Part,
	})...)
}

// unknowable reports whether a tool that may not be repeated was left in the
// middle: its server went away, or its time ran out.
func (cs *calls) unknowable(o outcome) bool {
	if cs.state.Call(o.call.ID).Idempotent {
		return false
	}
	return errors.Is(o.err, fault.New(fault.ToolLost)) || errors.Is(o.err, fault.New(fault.ToolTimeout))
}

func (cs *calls) toolFault(o outcome) *fault.Fault {
	if o.err != nil {
		return cs.s.asFault(o.err)
	}
	text, _ := fit(o.result.Text, maxText)
	return fault.Newf(fault.ToolFailed, "%s", text)
}

// refuse gives a call its outcome without running it.
func (cs *calls) refuse(ctx context.Context, c event.ToolCall, why *fault.Fault) error {
	return cs.end(ctx, append(cs.intent(c, tools.Tool{}), event.ToolFailedData{
		CallID: c.ID, RunID: cs.runID, ExecutionID: cs.begun.ExecutionID, Attempt: cs.number, Tool: c.Name,
		Code: string(why.Code), Message: why.Public(), Part: cs.begun.Part,
	})...)
}

// end appends the outcome of a call, with what belongs to it.
func (cs *calls) end(ctx context.Context, data ...event.Data) error {
	err := cs.append(ctx, data...)
	if err == nil {
		cs.audit(data)
	}
	return err
}

// audit records the calls of tools that the events end.
func (cs *calls) audit(list []event.Data) {
	for _, data := range list {
		r := audit.Record{Principal: cs.principal(), Kind: string(cs.log.Ref.Kind), Entity: cs.log.Ref.Entity.String()}
		var call, tool string
		switch d := data.(type) {
		case event.ToolCompletedData:
			call, tool, r.Outcome, r.DurationMS = d.CallID, d.Tool, audit.Done, d.DurationMS
		case event.ToolFailedData:
			call, tool, r.Outcome, r.Code, r.DurationMS = d.CallID, d.Tool, audit.Failed, d.Code, d.DurationMS
		case event.ToolUnknownData:
			call, tool, r.Outcome = d.CallID, d.Tool, audit.Unknown
		default:
			continue
		}
		r.Call, r.Tool = call, tool
		if t, ok := cs.servers[tool]; ok && t.Own != "" {
			r.Server, r.Tool = t.Server, t.Own
		}
		if known := cs.state.Call(call); known != nil {
			r.Digest = signature.Digest(known.Tool, known.Arguments)
		}
		asked, _ := cs.state.Approval(call)
		r.Input = asked.QuestionID
		cs.s.deps.Audit.Record(audit.ToolCalled, cs.tenant, r)
	}
}

// outcome is the end of a call.
type outcome struct {
	call   event.ToolCall
	tool   tools.Tool // as offered
	result tools.Result
	err    error
	took   time.Duration
}

// untrusted reports whether what the tool says may hold instructions of strangers: by the policy
// under which it ran, or under which it was offered.
func (o outcome) untrusted() bool { return o.result.Untrusted || o.tool.Policy.Untrusted }
