package worker

import (
	"context"
	"errors"
	"slices"

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
		Content: answer.Content, StopReason: answer.Stop, DurationMS: j.s.cfg.Now().Sub(r.Started).Milliseconds(),
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
	if told := j.choose(); len(told) > 0 {
		if err := j.append(ctx, told...); err != nil {
			return err
		}
	}
	req, err := j.request(ctx)
	if err != nil {
		return err
	}
	msg := j.s.cfg.NewID()
	err = j.append(ctx, event.MessageStartedData{
		MessageID: msg, RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt,
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
	return j.completed(ctx, msg, reply)
}

// completed appends a whole message with what belongs to it.
func (j *job) completed(ctx context.Context, msg string, reply model.Reply) error {
	used, known := j.usage(msg, reply)
	if err := j.s.deps.Quota.Spend(ctx, j.payer(), used.InputTokens+used.OutputTokens, dollars(used)); err != nil {
		return err
	}
	before := slices.Concat(j.unseen(reply.Unseen), j.leftOut(reply.LeftOut), j.shadowing())
	before = append(before, j.reasoning(msg, reply)...)
	said := []event.Data{event.MessageCompletedData{
		MessageID: msg, RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, Role: event.RoleAssistant,
		Content: reply.Text, ToolCalls: j.checkedCalls(fitting(reply.ToolCalls, reply.Text)), StopReason: reply.StopReason, StopDetail: reply.StopDetail,
		Silent: j.current().Silent(), Part: j.begun.Part,
	}}
	var about []event.Data
	if known {
		about = append(about, used)
	}
	about = append(about, j.ending(reply)...)
	if j.begun.Part.JobID != "" { // the pipeline may end the job as soon as the log has its last message
		return j.append(ctx, slices.Concat(before, about, said)...)
	}
	return j.append(ctx, slices.Concat(before, said, about)...)
}

// reasoning is what the model thought before the message, and wants back with it.
func (j *job) reasoning(msg string, r model.Reply) []event.Data {
	if r.Reasoning == "" && r.PassBack == nil {
		return nil
	}
	text, _ := jsontext.Fit(r.Reasoning, maxText)
	return []event.Data{event.ReasoningCompletedData{
		MessageID: msg, RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, Content: text, PassBack: r.PassBack, Part: j.begun.Part,
	}}
}

// ending tells people that a message is not what it seems, and operators if its end is unknown here.
func (j *job) ending(r model.Reply) []event.Data {
	if r.StopDetail != "" {
		j.s.deps.Logger.Warn().Str("log", j.log.Ref.Name()).Str("job", j.id).Str("model", j.model()).Str("reason", r.StopDetail).
			Msg("model response ended for unknown reason")
	}
	code, text, ok := event.AnswerNotice(r.StopReason, r.StopDetail)
	if !ok || len(r.ToolCalls) > 0 { // the turn continues
		return nil
	}
	return []event.Data{event.NoticeData{Level: "warning", Code: code, Message: text, RunID: j.runID}}
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
	j.s.metrics.tokens(j.model(), r.Usage, usd)
	return event.UsageRecordedData{
		RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, MessageID: msg, Model: r.Model,
		InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens,
		CostUSD: usd, TokenDetails: r.Usage.TokenDetails, Part: j.begun.Part,
	}, true
}
