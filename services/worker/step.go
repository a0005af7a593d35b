package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/worker/jsontext"
)

// maxText bounds, in bytes as encoded, a text that goes into one event: a stored
// event may have 256 KiB with everything else that it says.
const maxText = 160 << 10

// step does the next thing that the log says is left to do.
func (j *job) step(ctx context.Context) error {
	if err := j.held(); err != nil {
		return err
	}
	switch st := j.state.Next(j.id); st.Kind {
	case conversation.StepDiscard:
		return j.discard(ctx, "the worker that wrote it is gone", st.Discard...)
	case conversation.StepCalls, conversation.StepGenerate:
		err := j.enough(ctx, st)
		if err == nil {
			err = j.proceed(ctx, st)
		}
		return j.allowance(ctx, err)
	case conversation.StepWait:
		return j.pause(ctx)
	case conversation.StepFinish:
		return j.finish(ctx, st.Answer)
	case conversation.StepAsk:
		return j.askBudget(ctx)
	case conversation.StepStop:
		return conversation.BudgetFault(st.Use)
	case conversation.StepNone:
	}
	return errEnded
}

// proceed has the model or the tools do something.
func (j *job) proceed(ctx context.Context, st conversation.Step) error {
	if st.Kind == conversation.StepCalls {
		return j.callTools(ctx, st)
	}
	if st.Rounds >= j.s.cfg.MaxRounds {
		return fault.New(fault.TurnLimit)
	}
	return j.generate(ctx)
}

// discard closes messages that were left half said.
func (j *job) discard(ctx context.Context, why string, messages ...string) error {
	return j.append(ctx, j.discards(why, messages...)...)
}

// discards are the events that close messages which were left half said.
func (j *job) discards(why string, messages ...string) []event.Data {
	data := make([]event.Data, 0, len(messages))
	for _, m := range messages {
		data = append(data, event.MessageDiscardedData{
			MessageID: m, RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt,
			Reason: why, Silent: j.current().Silent(), Part: j.begun.Part,
		})
	}
	return data
}

func (j *job) finish(ctx context.Context, answer conversation.Message) error {
	r := &j.begun
	if r.Part.JobID != "" {
		return errEnded // the pipeline decides about the result
	}
	err := j.append(ctx, event.RunCompletedData{
		RunID: j.runID, ExecutionID: r.ExecutionID, Attempt: j.attempt, MessageID: answer.ID,
		Content: answer.Content, DurationMS: j.s.cfg.Now().Sub(r.Started).Milliseconds(),
	})
	if err != nil {
		return err
	}
	return errEnded
}

// generate has the model say its next message, streaming it into the log.
func (j *job) generate(ctx context.Context) error {
	if m := j.s.deps.Model; !model.Serves(m.Name(), model.Providers(m), j.otherModel()) {
		return model.Unserved(j.otherModel())
	}
	if spec := j.model(); !j.s.cfg.Access.MayUse(j.tenant, spec) {
		return model.Barred(spec)
	}
	if due, err := j.awaitRetry(ctx); !due || err != nil {
		return err
	}
	req, err := j.request(ctx)
	if err != nil {
		return err
	}
	exec, msg := j.begun.ExecutionID, j.s.cfg.NewID()
	err = j.append(ctx, event.MessageStartedData{
		MessageID: msg, RunID: j.runID, ExecutionID: exec, Attempt: j.attempt,
		Role: event.RoleAssistant, Model: j.model(), Waits: true, Part: j.begun.Part,
	})
	if err != nil {
		return err
	}
	talk, hush := j.talk(ctx)
	defer hush()
	reply, err := j.speak(ctx, talk, msg, req)
	if why := cutOff(ctx, talk); err != nil && why != nil {
		return j.interrupted(ctx, msg, why)
	}
	if err != nil {
		return j.retry(ctx, msg, err)
	}
	if len(reply.ToolCalls) > 0 && !hasTools(j.begun.Part.Stage) {
		return fault.New(fault.ModelBadReply).Wrap(errors.New("the model calls tools where it was offered none"))
	}
	said := event.MessageCompletedData{
		MessageID: msg, RunID: j.runID, ExecutionID: exec, Attempt: j.attempt, Role: event.RoleAssistant,
		Content: reply.Text, ToolCalls: j.uniqueCalls(reply.ToolCalls), StopReason: reply.StopReason,
		Silent: j.current().Silent(), Part: j.begun.Part,
	}
	used, known := j.usage(msg, reply)
	if err := j.s.deps.Quota.Spend(ctx, j.payer(), used.InputTokens+used.OutputTokens, dollars(used)); err != nil {
		return err
	}
	switch {
	case !known:
		return j.append(ctx, append(j.unseen(reply.Unseen), said)...)
	case j.begun.Part.JobID == "":
		return j.append(ctx, append(j.unseen(reply.Unseen), said, used)...)
	}
	return j.append(ctx, append(j.unseen(reply.Unseen), used, said)...) // the pipeline may end the job as soon as the log has its last message
}

// interrupted closes a message whose request was cut off. Its usage is unknown, because the
// provider reports it last. The next step asks people, or ends the job.
func (j *job) interrupted(ctx context.Context, msg string, why error) error {
	if err := j.discard(ctx, "the time is used up", msg); err != nil {
		return err
	}
	if errors.Is(why, errTimeUp) {
		return nil
	}
	return why
}

// dollars is the known cost of a message.
func dollars(u event.UsageRecordedData) float64 {
	if u.CostUSD == nil {
		return 0
	}
	return *u.CostUSD
}

// usage is the consumption of a message. It is known if the provider reported it.
func (j *job) usage(msg string, r model.Reply) (u event.UsageRecordedData, known bool) {
	if !r.Usage.Known {
		return u, false
	}
	usd := j.s.cfg.Prices.cost(r, j.model())
	j.s.metrics.tokens(r, usd)
	return event.UsageRecordedData{
		RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, MessageID: msg, Model: r.Model,
		InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens,
		CostUSD: usd, Part: j.begun.Part,
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
func (j *job) deltas(ctx context.Context, msg string) stream {
	w := &j.begun
	if w.Part.Stage == event.StagePlanning {
		return mute{}
	}
	j.what = event.MessageDelta
	exec, part := w.ExecutionID, w.Part
	return j.log.Deltas(ctx, j.s.cfg.DeltaPause, func(n int, text string) (event.Event, error) {
		return event.New(j.log.Ref, fmt.Sprintf("%s.%d", msg, n), source, j.s.cfg.Now(), event.MessageDeltaData{
			MessageID: msg, RunID: j.runID, ExecutionID: exec, Attempt: j.attempt, Text: text, Begins: n == 1, Part: part,
		})
	}, func(*conversation.State) error { return j.saying(msg) })
}

// speak streams the model's text into the log as deltas. Both ends stop each other:
// a lost fence ends the model's request, a failing model ends the stream. A text that
// would not fit into an event is cut there, like one that has used up its tokens.
// The request has a context of its own, which may end before that of the attempt.
func (j *job) speak(ctx, talk context.Context, msg string, req model.Request) (model.Reply, error) {
	deltas := j.deltas(ctx, msg)
	var said strings.Builder
	room := maxText
	heard, ended := j.s.metrics.request(j.model())
	reply, err := j.s.deps.Model.Generate(talk, req, model.Text(func(text string) error {
		heard()
		part, cut := jsontext.Fit(text, room)
		room -= jsontext.Len(part)
		said.WriteString(part)
		if err := deltas.Write(part); err != nil {
			return err
		}
		if cut {
			return errFull
		}
		return nil
	}))
	ended(err)
	if flushed := deltas.Close(); flushed != nil {
		return reply, flushed // the fence or the bus: it comes before whatever the model made of it
	}
	if errors.Is(err, errFull) {
		return model.Reply{Text: said.String(), StopReason: "length", Model: j.model()}, nil
	}
	return reply, err
}

// uniqueCalls gives calls whose id was or may have been used before in the session a new one: some
// servers number the calls of every answer from zero. Jobs of a pipeline run, which
// cannot see what others are about to use, get new ones anyway, and so do members of
// teams: people answer for calls by their ids, in the whole team. Each call gets the policy
// of its tool, as it was offered.
func (j *job) uniqueCalls(calls []event.ToolCall) []event.ToolCall {
	out := make([]event.ToolCall, 0, len(calls))
	seen := map[string]bool{}
	for _, c := range calls {
		_, asked := j.state.Approval(c.ID)
		if c.ID == "" || seen[c.ID] || j.state.Forgot() || asked || j.state.Call(c.ID) != nil || j.begun.Part.JobID != "" || j.state.Agent != nil {
			c.ID = "call_" + j.s.cfg.NewID()
		}
		seen[c.ID] = true
		c.Policy = nil
		if o, ok := j.offered[c.Name]; ok && !o.Client {
			c.Policy = &o.Policy
		}
		out = append(out, c)
	}
	return out
}
