package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/worker/jsontext"
)

// parallelCalls bounds the tool calls of one message that run at once.
const parallelCalls = 8

// unknownOutcome is the result, for people and the model, of a call that was started, lost, and
// must not be repeated.
const unknownOutcome = "Outcome unknown: the tool was started, but its result was lost or did not come in time. " +
	"It may or may not have had its effect and was not run again. Check before you repeat it."

// tools returns the tools on offer. A missing tool service is waited for briefly:
// one that restarts is back within seconds.
func (j *job) tools(ctx context.Context) ([]tools.Tool, error) {
	const patience, pause = 10 * time.Second, 250 * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fault.New(fault.ToolsDown))
	defer cancel()
	for {
		list, err := j.caller.List(ctx, j.tenant)
		if err == nil {
			return j.withClients(list), nil
		}
		if !errors.Is(err, fault.New(fault.ToolsDown)) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// withClients adds the tools that the client of the run carries out. A server's tool of the same name counts.
func (j *job) withClients(list []tools.Tool) []tools.Tool {
	r := j.state.Run(j.runID)
	if r == nil {
		return list
	}
	for _, c := range r.Spec.ClientTools {
		if slices.ContainsFunc(list, func(t tools.Tool) bool { return t.Name == c.Name }) {
			continue
		}
		schema := c.InputSchema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		list = append(slices.Clone(list), tools.Tool{Name: c.Name, Description: c.Description, InputSchema: schema, Client: true})
	}
	return list
}

// shadowing tells people, with the first message of a job, which of the client's tools the model is not offered: they have the names of
// other tools.
func (j *job) shadowing() (out []event.Data) {
	r, w := j.state.Run(j.runID), j.current()
	if r == nil || w == nil || len(w.Messages) > 0 {
		return nil
	}
	for _, c := range r.Spec.ClientTools {
		if o, known := j.offered[c.Name]; known && !o.Client {
			out = append(out, event.NoticeData{
				Level: "warning", Code: event.ToolLeftOut, RunID: j.runID,
				Message: fmt.Sprintf("The model is not offered the client's tool %s: another tool has this name. Give it another one.", c.Name),
			})
		}
	}
	return out
}

// callTools asks people about the calls that they have to allow, and brings those that
// may run to an outcome: several side by side, begun in their order. Intent and start are
// in the log before a tool runs, the result after. A call that a dead attempt had started
// is repeated only if its tool is idempotent. The log's writer belongs to this goroutine
// alone.
func (j *job) callTools(ctx context.Context, st conversation.Step) error {
	offered, err := j.tools(ctx)
	if err != nil {
		return err
	}
	byName := make(map[string]tools.Tool, len(offered))
	for _, o := range offered {
		byName[o.Name] = o
	}
	j.servers = byName
	if err := j.ask(ctx, st.Ask, byName); err != nil {
		return err
	}
	return j.runTools(ctx, st.Calls, byName)
}

func (j *job) runTools(ctx context.Context, calls []event.ToolCall, offered map[string]tools.Tool) error {
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
			ok, err := j.prepare(ctx, c, offered[c.Name])
			if err != nil {
				return err
			}
			if ok {
				running++
				call := j.callOf(c)
				wg.Go(func() { results <- j.callTool(ctx, c, call, offered[c.Name]) })
			}
			continue
		}
		select {
		case o := <-results:
			running--
			if err := j.settle(ctx, o); err != nil {
				return err
			}
		case <-j.answered:
			if err := j.log.Sync(ctx); err != nil {
				return err
			}
			calls = j.allowed(begun)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if over := j.denied; over != nil {
		j.denied = nil
		return over
	}
	return nil
}

// allowed returns the calls that may run and have not begun yet: people may answer
// while others run.
func (j *job) allowed(begun map[string]bool) []event.ToolCall {
	var out []event.ToolCall
	for _, c := range j.state.Next(j.id).Calls {
		if !begun[c.ID] {
			out = append(out, c)
		}
	}
	return out
}

// prepare records intent and start of one call. It reports false when the call
// already has its outcome: it must not be repeated, or may not run.
func (j *job) prepare(ctx context.Context, c event.ToolCall, offered tools.Tool) (bool, error) {
	exec := j.begun.ExecutionID
	known := j.state.Call(c.ID)
	if known != nil && known.Status == conversation.CallStarted && !known.Idempotent {
		return false, j.append(ctx, event.ToolUnknownData{
			CallID: c.ID, RunID: j.runID, ExecutionID: exec, Attempt: j.attempt, Tool: c.Name, Message: unknownOutcome, Part: j.begun.Part,
		})
	}
	if c.Invalid != "" {
		return false, j.refuse(ctx, c, fault.Newf(fault.ToolBadInput, "%s", c.Invalid))
	}
	if why := j.forbidden(c, offered); why != nil {
		return false, j.refuse(ctx, c, why)
	}
	if ok, err := j.count(ctx, known); !ok {
		return false, err
	}
	data := append(j.intent(c, offered), event.ToolStartedData{
		CallID: c.ID, RunID: j.runID, ExecutionID: exec, Attempt: j.attempt, Tool: c.Name,
		Retry: known != nil && known.Status == conversation.CallStarted, Arguments: c.Arguments, Part: j.begun.Part,
	})
	return true, j.append(ctx, data...)
}

// count takes a call off the daily quota, once for all its attempts. It reports false if the quota
// is used up; running calls finish first.
func (j *job) count(ctx context.Context, known *conversation.Call) (bool, error) {
	if known != nil || j.denied != nil {
		return known != nil, nil //nolint:nilerr // the calls that run are let finish first
	}
	err := j.s.deps.Quota.Call(ctx, j.payer())
	if errors.As(err, &j.denied) { // which is looked at when the calls that run have ended
		return false, nil
	}
	return err == nil, err
}

// intent is the record that a call is about to be made, once.
func (j *job) intent(c event.ToolCall, offered tools.Tool) []event.Data {
	if j.state.Call(c.ID) != nil {
		return nil
	}
	asked, _ := j.state.Approval(c.ID)
	return []event.Data{event.ToolCalledData{
		CallID: c.ID, RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, Tool: c.Name,
		Description: "Executing " + c.Name, Arguments: c.Arguments, Digest: digest(c),
		Idempotent: offered.Repeatable(c.Arguments), InputID: asked.InputID, Part: j.begun.Part,
	}}
}

// digest binds a decision to one exact call.
func digest(c event.ToolCall) string { return signature.Digest(c.Name, c.Arguments) }

type outcome struct {
	call   event.ToolCall
	tool   tools.Tool // as offered
	result tools.Result
	err    error
	took   time.Duration
}

// callOf is the call as the tool service gets it.
func (j *job) callOf(c event.ToolCall) tools.Call {
	call := tools.Call{
		ID: c.ID, Scope: j.log.Ref.Name(), Tenant: j.tenant, Tool: c.Name, Arguments: c.Arguments,
		Timeout: j.s.cfg.ToolTimeout, AgentID: j.agentID(), Asked: j.state.Asks(c.ID),
	}
	if conversation.TeamTool(c.Name) { // of others it was decided when the model asked for the call
		call.Tainted = j.state.Tainted
	}
	if asked, ok := j.state.Approval(c.ID); ok {
		call.Approval = &tools.Approval{Kind: j.log.Ref.Kind, Entity: j.log.Ref.Entity, Proof: asked.Proof, Definition: asked.Shown}
	}
	return call
}

// untrusted reports whether what the tool says may hold instructions of strangers: by the policy
// under which it ran, or under which it was offered.
func (o outcome) untrusted() bool { return o.result.Untrusted || o.tool.Policy.Untrusted }

func (j *job) callTool(ctx context.Context, c event.ToolCall, call tools.Call, offered tools.Tool) (o outcome) {
	ctx, span := telemetry.Start(ctx, "execute_tool "+c.Name, trace.SpanKindInternal)
	began := j.s.cfg.Now()
	defer func() {
		o.took = j.s.cfg.Now().Sub(began)
		telemetry.End(span, o.err)
	}()
	if o.call, o.tool = c, offered; ctx.Err() != nil { // no tool starts after the end
		o.err = context.Cause(ctx)
		return o
	}
	o.result, o.err = j.caller.Call(ctx, call)
	return o
}

// settle appends the outcome of a call. An interrupted call gets none: the worker that resumes the
// run decides about it.
func (j *job) settle(ctx context.Context, o outcome) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	exec, took := j.begun.ExecutionID, o.took.Milliseconds()
	switch {
	case j.unknowable(o):
		return j.append(ctx, event.ToolUnknownData{
			CallID: o.call.ID, RunID: j.runID, ExecutionID: exec, Attempt: j.attempt,
			Tool: o.call.Name, Message: unknownOutcome, Part: j.begun.Part,
		})
	case o.err != nil || o.result.IsError:
		f := j.toolFault(o)
		return j.append(ctx, event.ToolFailedData{
			CallID: o.call.ID, RunID: j.runID, ExecutionID: exec, Attempt: j.attempt, Tool: o.call.Name,
			Code: string(f.Code), Message: f.Public(), DurationMS: took, Untrusted: o.untrusted(), Part: j.begun.Part,
		})
	}
	products, err := j.products(ctx, o)
	if err != nil {
		return err
	}
	files, lost, err := j.pictures(ctx, o)
	if err != nil {
		return err
	}
	text, cut := jsontext.Fit(o.result.Text, maxText)
	return j.append(ctx, append(append(products, lost...), event.ToolCompletedData{
		CallID: o.call.ID, RunID: j.runID, ExecutionID: exec, Attempt: j.attempt, Tool: o.call.Name,
		Result: text, Truncated: cut || o.result.Truncated, Bytes: o.result.Bytes, DurationMS: took,
		Untrusted: o.untrusted(), Files: files, Part: j.begun.Part,
	})...)
}

// unknowable reports whether a tool that may not be repeated was left in the
// middle: its server went away, or its time ran out.
func (j *job) unknowable(o outcome) bool {
	if j.state.Call(o.call.ID).Idempotent {
		return false
	}
	return errors.Is(o.err, fault.New(fault.ToolLost)) || errors.Is(o.err, fault.New(fault.ToolTimeout))
}

func (j *job) toolFault(o outcome) *fault.Fault {
	if o.err != nil {
		return j.s.asFault(o.err)
	}
	text, _ := jsontext.Fit(o.result.Text, maxText)
	return fault.Newf(fault.ToolFailed, "%s", text)
}

// String names the attempt in logs.
func (j *job) String() string { return fmt.Sprintf("run %s attempt %d", j.runID, j.attempt) }
