package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/model"
)

// step does the next thing that the log says is left to do.
func (t *turn) step(ctx context.Context) error {
	if err := t.held(); err != nil {
		return err
	}
	switch st := t.state.Next(t.unit); st.Kind {
	case conversation.StepDiscard:
		return t.discard(ctx, "the worker that wrote it is gone", st.Discard...)
	case conversation.StepCalls, conversation.StepGenerate:
		err := t.enough(ctx, st)
		if err == nil {
			err = t.proceed(ctx, st)
		}
		return t.allowance(ctx, err)
	case conversation.StepWait:
		return t.pause(ctx)
	case conversation.StepFinish:
		return t.finish(ctx, st.Answer)
	case conversation.StepAsk:
		return t.askBudget(ctx)
	case conversation.StepStop:
		return conversation.BudgetFault(st.Use)
	case conversation.StepNone:
	}
	return errEnded
}

// proceed has the model or the tools do something.
func (t *turn) proceed(ctx context.Context, st conversation.Step) error {
	if st.Kind == conversation.StepCalls {
		return t.callTools(ctx, st)
	}
	if st.Rounds >= t.s.cfg.MaxRounds {
		return fault.New(fault.TurnLimit)
	}
	return t.generate(ctx)
}

// discard closes messages that were left half said.
func (t *turn) discard(ctx context.Context, why string, messages ...string) error {
	return t.append(ctx, t.discards(why, messages...)...)
}

// discards are the events that close messages which were left half said.
func (t *turn) discards(why string, messages ...string) []event.Data {
	data := make([]event.Data, 0, len(messages))
	for _, m := range messages {
		data = append(data, event.MessageDiscardedData{
			MessageID: m, RunID: t.runID, ExecutionID: t.job.ExecutionID, Attempt: t.attempt,
			Reason: why, Silent: t.current().Silent(), Part: t.job.Part,
		})
	}
	return data
}

func (t *turn) finish(ctx context.Context, answer conversation.Message) error {
	r := &t.job
	if r.Part.JobID != "" {
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
	if m := t.s.deps.Model; !model.Serves(m.Name(), model.Providers(m), t.otherModel()) {
		return model.Unserved(t.otherModel())
	}
	if due, err := t.awaitRetry(ctx); !due || err != nil {
		return err
	}
	req, err := t.request(ctx)
	if err != nil {
		return err
	}
	exec, msg := t.job.ExecutionID, t.s.cfg.NewID()
	err = t.append(ctx, event.MessageStartedData{
		MessageID: msg, RunID: t.runID, ExecutionID: exec, Attempt: t.attempt,
		Role: event.RoleAssistant, Model: t.model(), Waits: true, Part: t.job.Part,
	})
	if err != nil {
		return err
	}
	talk, hush := t.talk(ctx)
	defer hush()
	reply, err := t.speak(ctx, talk, msg, req)
	if why := cutOff(ctx, talk); err != nil && why != nil {
		return t.interrupted(ctx, msg, why)
	}
	if err != nil {
		return t.retry(ctx, msg, err)
	}
	if len(reply.ToolCalls) > 0 && !hasTools(t.job.Part.Stage) {
		return fault.New(fault.ModelBadReply).Wrap(errors.New("the model calls tools where it was offered none"))
	}
	said := event.MessageCompletedData{
		MessageID: msg, RunID: t.runID, ExecutionID: exec, Attempt: t.attempt, Role: event.RoleAssistant,
		Content: reply.Text, ToolCalls: t.uniqueCalls(reply.ToolCalls), StopReason: reply.StopReason,
		Silent: t.current().Silent(), Part: t.job.Part,
	}
	used, known := t.usage(msg, reply)
	if err := t.s.deps.Quota.Spend(ctx, t.payer(), used.InputTokens+used.OutputTokens, dollars(used)); err != nil {
		return err
	}
	switch {
	case !known:
		return t.append(ctx, said)
	case t.job.Part.JobID == "":
		return t.append(ctx, said, used)
	}
	return t.append(ctx, used, said) // the pipeline may end the unit as soon as its last word is there
}

// interrupted closes a message whose request was cut off. What it used is not known: the
// provider tells at the end. The next step asks people, or ends the unit.
func (t *turn) interrupted(ctx context.Context, msg string, why error) error {
	if err := t.discard(ctx, "the time is used up", msg); err != nil {
		return err
	}
	if errors.Is(why, errTimeUp) {
		return nil
	}
	return why
}

// dollars is what a message cost, as far as that is known.
func dollars(u event.UsageRecordedData) float64 {
	if u.CostUSD == nil {
		return 0
	}
	return *u.CostUSD
}

// usage is what a message consumed. It is known if the provider said so.
func (t *turn) usage(msg string, r model.Reply) (u event.UsageRecordedData, known bool) {
	if !r.Usage.Known {
		return u, false
	}
	usd := t.s.cfg.Prices.cost(r, t.model())
	t.s.metrics.tokens(r, usd)
	return event.UsageRecordedData{
		RunID: t.runID, ExecutionID: t.job.ExecutionID, Attempt: t.attempt, MessageID: msg, Model: r.Model,
		InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens,
		CostUSD: usd, Part: t.job.Part,
	}, true
}

// errFull ends an answer that would not fit into an event.
var errFull = errors.New("the answer is too long")

// stream takes a text piece by piece.
type stream interface {
	Write(text string) error
	Close() error
}

// mute is the stream of texts that are nothing to show while they are written: plans
// are JSON.
type mute struct{}

func (mute) Write(string) error { return nil }
func (mute) Close() error       { return nil }

// deltas streams a message into the log.
func (t *turn) deltas(ctx context.Context, msg string) stream {
	w := &t.job
	if w.Part.Stage == event.StagePlanning {
		return mute{}
	}
	t.what = event.MessageDelta
	exec, part := w.ExecutionID, w.Part
	return t.log.Deltas(ctx, func(n int, text string) (event.Event, error) {
		return event.New(t.log.Ref, fmt.Sprintf("%s.%d", msg, n), source, t.s.cfg.Now(), event.MessageDeltaData{
			MessageID: msg, RunID: t.runID, ExecutionID: exec, Attempt: t.attempt, Text: text, Begins: n == 1, Part: part,
		})
	}, func(*conversation.State) error { return t.saying(msg) })
}

// speak streams the model's text into the log as deltas. Both ends stop each other:
// a lost fence ends the model's request, a failing model ends the stream. A text that
// would not fit into an event is cut there, like one that has used up its tokens.
// The request has a context of its own, which may end before that of the attempt.
func (t *turn) speak(ctx, talk context.Context, msg string, req model.Request) (model.Reply, error) {
	deltas := t.deltas(ctx, msg)
	var said strings.Builder
	room := maxText
	heard, ended := t.s.metrics.request(t.model())
	reply, err := t.s.deps.Model.Generate(talk, req, func(text string) error {
		heard()
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
	ended(err)
	if flushed := deltas.Close(); flushed != nil {
		return reply, flushed // the fence or the bus: it comes before whatever the model made of it
	}
	if errors.Is(err, errFull) {
		return model.Reply{Text: said.String(), StopReason: "length", Model: t.model()}, nil
	}
	return reply, err
}

// uniqueCalls gives calls whose id was used before in the session a new one: some
// servers number the calls of every answer from zero. Units of a pipeline run, which
// cannot see what others are about to use, get new ones anyway, and so do members of
// teams: people answer for calls by their ids, in the whole team.
func (t *turn) uniqueCalls(calls []event.ToolCall) []event.ToolCall {
	out := make([]event.ToolCall, 0, len(calls))
	seen := map[string]bool{}
	for _, c := range calls {
		if c.ID == "" || seen[c.ID] || t.state.Call(c.ID) != nil || t.job.Part.JobID != "" || t.state.Agent != nil {
			c.ID = "call_" + t.s.cfg.NewID()
		}
		seen[c.ID] = true
		out = append(out, c)
	}
	return out
}
