package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/agent/model"
	"github.com/waggle-dev/waggle/services/conversation"
)

// step does the next thing that the log says is left to do.
func (t *turn) step(ctx context.Context) error {
	if err := t.held(); err != nil {
		return err
	}
	switch st := t.state.Next(t.unit); st.Kind {
	case conversation.StepDiscard:
		return t.discard(ctx, st.Discard)
	case conversation.StepCalls:
		return t.callTools(ctx, st.Calls)
	case conversation.StepGenerate:
		if st.Rounds >= t.s.cfg.MaxRounds {
			return fault.New(fault.TurnLimit)
		}
		return t.generate(ctx)
	case conversation.StepFinish:
		return t.finish(ctx, st.Answer)
	case conversation.StepNone:
	}
	return errEnded
}

// discard closes the messages that a dead attempt left half said.
func (t *turn) discard(ctx context.Context, messages []string) error {
	data := make([]event.Data, 0, len(messages))
	for _, m := range messages {
		data = append(data, event.MessageDiscardedData{
			MessageID: m, RunID: t.runID, ExecutionID: t.current().ExecutionID, Attempt: t.attempt,
			Reason: "the worker that wrote it is gone", Part: t.current().Part,
		})
	}
	return t.append(ctx, data...)
}

func (t *turn) finish(ctx context.Context, answer conversation.Message) error {
	r := t.current()
	if r.Part.WorkID != "" {
		return errEnded // what becomes of it is the pipeline's business
	}
	err := t.append(ctx, event.RunCompletedData{
		RunID: t.runID, ExecutionID: r.ExecutionID, Attempt: t.attempt, MessageID: answer.ID,
		Content: answer.Content, DurationMS: t.s.cfg.Now().Sub(r.Started).Milliseconds(),
	})
	if err != nil {
		return err
	}
	return errEnded
}

// generate has the model say its next message, streaming it into the log.
func (t *turn) generate(ctx context.Context) error {
	req, err := t.request(ctx)
	if err != nil {
		return err
	}
	exec, msg := t.current().ExecutionID, t.s.cfg.NewID()
	err = t.append(ctx, event.MessageStartedData{
		MessageID: msg, RunID: t.runID, ExecutionID: exec, Attempt: t.attempt,
		Role: event.RoleAssistant, Model: t.s.deps.Model.Name(), Part: t.current().Part,
	})
	if err != nil {
		return err
	}
	reply, err := t.speak(ctx, msg, req)
	if err != nil {
		return err
	}
	calls := t.uniqueCalls(reply.ToolCalls)
	data := []event.Data{event.MessageCompletedData{
		MessageID: msg, RunID: t.runID, ExecutionID: exec, Attempt: t.attempt,
		Role: event.RoleAssistant, Content: reply.Text, ToolCalls: calls, StopReason: reply.StopReason, Part: t.current().Part,
	}}
	if reply.Usage.Known {
		t.s.metrics.tokens(reply)
		data = append(data, event.UsageRecordedData{
			RunID: t.runID, ExecutionID: exec, Attempt: t.attempt, MessageID: msg, Model: reply.Model,
			InputTokens: reply.Usage.InputTokens, OutputTokens: reply.Usage.OutputTokens, Part: t.current().Part,
		})
	}
	return t.append(ctx, data...)
}

// errFull ends an answer that would not fit into an event.
var errFull = errors.New("the answer is too long")

// speak streams the model's text into the log as deltas. Both ends stop each other:
// a lost fence ends the model's request, a failing model ends the stream. A text that
// would not fit into an event is cut there, like one that has used up its tokens.
func (t *turn) speak(ctx context.Context, msg string, req model.Request) (model.Reply, error) {
	exec := t.current().ExecutionID
	t.what = event.MessageDelta
	deltas := t.writer.Deltas(ctx, func(n int, text string) (event.Event, error) {
		return event.New(t.log, fmt.Sprintf("%s.%d", msg, n), source, t.s.cfg.Now(), event.MessageDeltaData{
			MessageID: msg, RunID: t.runID, ExecutionID: exec, Attempt: t.attempt, Text: text, Part: t.current().Part,
		})
	}, t.held)
	var said strings.Builder
	room := maxText
	reply, err := t.s.deps.Model.Generate(ctx, req, func(text string) error {
		part, cut := fit(text, room)
		room -= jsonLen(part)
		said.WriteString(part)
		if err := deltas.Write(part); err != nil {
			return err
		}
		if cut {
			return errFull
		}
		return nil
	})
	if flushed := deltas.Close(); flushed != nil {
		return reply, flushed // the fence or the bus: it comes before whatever the model made of it
	}
	if errors.Is(err, errFull) {
		return model.Reply{Text: said.String(), StopReason: "length", Model: t.s.deps.Model.Name()}, nil
	}
	return reply, err
}

// uniqueCalls gives calls whose id was used before in the session a new one: some
// servers number the calls of every answer from zero.
func (t *turn) uniqueCalls(calls []event.ToolCall) []event.ToolCall {
	out := make([]event.ToolCall, 0, len(calls))
	seen := map[string]bool{}
	for _, c := range calls {
		if c.ID == "" || seen[c.ID] || t.state.Call(c.ID) != nil {
			c.ID = "call_" + t.s.cfg.NewID()
		}
		seen[c.ID] = true
		out = append(out, c)
	}
	return out
}

// request is what the model is asked: the conversation so far and the tools.
func (t *turn) request(ctx context.Context) (model.Request, error) {
	offered, err := t.tools(ctx)
	if err != nil {
		return model.Request{}, err
	}
	b := t.state.Brief(t.unit, t.s.cfg.HistoryBytes)
	lines, dropped := append(b.History, b.Own...), b.Dropped
	req := model.Request{
		System: t.s.cfg.System, MaxTokens: t.s.cfg.MaxTokens,
		NewID: func() string { return "call_" + t.s.cfg.NewID() }, Now: t.s.cfg.Now(),
	}
	if dropped > 0 {
		req.System += fmt.Sprintf("\n\nThe %d oldest exchanges of this conversation are left out.", dropped)
	}
	for _, l := range lines {
		req.Messages = append(req.Messages, model.Message{
			Role: l.Role, Content: l.Content, ToolCalls: l.ToolCalls, ToolCallID: l.ToolCallID, IsError: l.IsError,
		})
	}
	for _, o := range offered {
		req.Tools = append(req.Tools, model.ToolSpec{Name: o.Name, Description: o.Description, InputSchema: o.InputSchema})
	}
	return req, nil
}
