package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// generator has the model say its next message.
type generator struct {
	*attempt

	model    *choice
	offer    *offer
	composer *composer
	budget   *budget
	retries  *retries

	blind    bool // people know that the model is not given images
	toolless bool // people know that the model answers without tools
}

// generate has the model say its next message, streaming it into the log.
func (g *generator) generate(ctx context.Context) error {
	if m := g.s.deps.Model; !model.Serves(m.Name(), model.Providers(m), g.model.spec()) {
		return model.Unserved(g.model.spec())
	}
	if spec := g.model.name(); !g.s.cfg.Access.MayUse(g.tenant, spec) {
		return model.Barred(spec)
	}
	if due, err := g.retries.await(ctx); !due || err != nil {
		return err
	}
	if told := g.model.avoidFailed(); len(told) > 0 {
		if err := g.append(ctx, told...); err != nil {
			return err
		}
	}
	req, err := g.composer.request(ctx)
	if err != nil {
		return err
	}
	msg := g.s.cfg.NewID()
	err = g.append(ctx, event.MessageStartedData{
		MessageID: msg, RunID: g.runID, ExecutionID: g.begun.ExecutionID, Attempt: g.number,
		Role: event.RoleAssistant, Model: g.model.name(), Waits: true, Part: g.begun.Part,
	})
	if err != nil {
		return err
	}
	talk, hush := g.budget.talk(ctx)
	defer hush()
	reply, err := g.speak(ctx, talk, msg, req)
	if why := cutOff(ctx, talk); err != nil && why != nil {
		return g.interrupted(ctx, msg, why)
	}
	if err != nil {
		return g.retries.after(ctx, msg, err)
	}
	if len(reply.ToolCalls) > 0 && !hasTools(g.begun.Part.Stage) {
		return fault.New(fault.ModelBadReply).Wrap(errors.New("the model calls tools where it was offered none"))
	}
	return g.completed(ctx, msg, reply)
}

// speak streams the model's text and reasoning into the log as deltas. Both ends stop each other: a lost fence ends the
// model's request, a failing model ends the stream. A text that would not fit into an event is cut there, like one that has
// used up its tokens, and reasoning that would not fit is no longer shown. The request has a context of its own, which may
// end before that of the attempt.
func (g *generator) speak(ctx, talk context.Context, msg string, req model.Request) (model.Reply, error) {
	s := &speech{attempt: g.attempt, ctx: ctx, msg: msg, mute: g.begun.Part.Stage == event.StagePlanning}
	var said strings.Builder
	textRoom, thoughtRoom := maxText, maxText
	heard, ended := g.s.metrics.request(g.model.name())
	reply, err := g.s.deps.Model.Generate(talk, req, model.Listener{
		Text: func(text string) error {
			heard()
			part, cut := fit(text, textRoom)
			textRoom -= encodedLen(part)
			said.WriteString(part)
			if err := s.write(false, part); err != nil {
				return err
			}
			if cut {
				return errFull
			}
			return nil
		},
		Reasoning: func(text string) error {
			part, _ := fit(text, thoughtRoom)
			if thoughtRoom -= encodedLen(part); part == "" {
				return nil
			}
			return s.write(true, part)
		},
	})
	ended(err)
	if flushed := s.Close(); flushed != nil {
		return reply, flushed // the fence or the bus: it comes before whatever the model made of it
	}
	if errors.Is(err, errFull) {
		return model.Reply{Text: said.String(), StopReason: model.StopLength, Model: g.model.name()}, nil
	}
	return reply, err
}

// completed appends a whole message with what belongs to it.
func (g *generator) completed(ctx context.Context, msg string, reply model.Reply) error {
	used, known := g.usage(msg, reply)
	if err := g.budget.spend(ctx, used); err != nil {
		return err
	}
	before := slices.Concat(g.unseen(reply.Unseen), g.leftOut(reply.LeftOut), g.offer.shadowing())
	before = append(before, g.reasoning(msg, reply)...)
	said := []event.Data{event.MessageCompletedData{
		MessageID: msg, RunID: g.runID, ExecutionID: g.begun.ExecutionID, Attempt: g.number, Role: event.RoleAssistant,
		Content: reply.Text, ToolCalls: g.offer.check(fitting(reply.ToolCalls, reply.Text)), StopReason: reply.StopReason, StopDetail: reply.StopDetail,
		Silent: g.current().Silent(), Part: g.begun.Part,
	}}
	var about []event.Data
	if known {
		about = append(about, used)
	}
	about = append(about, g.ending(reply)...)
	if g.begun.Part.JobID != "" { // the pipeline may end the job as soon as the log has its last message
		return g.append(ctx, slices.Concat(before, about, said)...)
	}
	return g.append(ctx, slices.Concat(before, said, about)...)
}

// reasoning is what the model thought before the message, and wants back with it.
func (g *generator) reasoning(msg string, r model.Reply) []event.Data {
	if r.Reasoning == "" && r.PassBack == nil {
		return nil
	}
	text, _ := fit(r.Reasoning, maxText)
	return []event.Data{event.ReasoningCompletedData{
		MessageID: msg, RunID: g.runID, ExecutionID: g.begun.ExecutionID, Attempt: g.number, Content: text, PassBack: r.PassBack, Part: g.begun.Part,
	}}
}

// ending tells people that a message is not what it seems, and operators if its end is unknown here.
func (g *generator) ending(r model.Reply) []event.Data {
	if r.StopDetail != "" {
		g.s.deps.Logger.Warn().Str("log", g.log.Ref.Name()).Str("job", g.id).Str("model", g.model.name()).Str("reason", r.StopDetail).
			Msg("model response ended for unknown reason")
	}
	code, text, ok := event.AnswerNotice(r.StopReason, r.StopDetail)
	if !ok || len(r.ToolCalls) > 0 { // the job continues
		return nil
	}
	return []event.Data{event.NoticeData{Level: "warning", Code: code, Message: text, RunID: g.runID}}
}

// interrupted closes a message whose request was cut off. Its usage is unknown, because the
// provider reports it last. The next step asks people, or ends the job.
func (g *generator) interrupted(ctx context.Context, msg string, why error) error {
	if err := g.discard(ctx, "the time is used up", msg); err != nil {
		return err
	}
	if errors.Is(why, errTimeUp) {
		return nil
	}
	return why
}

// usage is the consumption of a message. It is known if the provider reported it.
func (g *generator) usage(msg string, r model.Reply) (u event.UsageRecordedData, known bool) {
	if !r.Usage.Known {
		return u, false
	}
	usd := g.s.cfg.Prices.cost(r, g.model.name())
	g.s.metrics.tokens(g.model.name(), r.Usage, usd)
	return event.UsageRecordedData{
		RunID: g.runID, ExecutionID: g.begun.ExecutionID, Attempt: g.number, MessageID: msg, Model: r.Model,
		InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens,
		CostUSD: usd, TokenDetails: r.Usage.TokenDetails, Part: g.begun.Part,
	}, true
}

// leftOut tells operators once which tools the model is not offered, and people in each run that has none at all.
func (g *generator) leftOut(all []model.LeftOut) (out []event.Data) {
	for _, l := range all {
		if g.s.leftOut.first(g.model.name() + " " + l.Tool + " " + l.Reason) {
			g.s.deps.Logger.Warn().Str("log", g.log.Ref.Name()).Str("job", g.id).Str("model", g.model.name()).Str("tool", l.Tool).Str("reason", l.Reason).
				Msg("tool not offered to model")
			if g.model.name() == g.s.deps.Model.Name() {
				g.s.lacks(card.LeftOut{Tool: l.Tool, Why: l.Reason})
			}
		}
		if l.Tool == "" && !g.toolless {
			g.toolless = true
			out = append(out, event.NoticeData{
				Level: "warning", Code: event.ToolLeftOut, RunID: g.runID, Message: fmt.Sprintf("The model %s answers without tools: %s.", g.model.name(), l.Reason),
			})
		}
	}
	return out
}

// unseen tells people once that the model was not given images of the conversation.
func (g *generator) unseen(n int) []event.Data {
	if n == 0 || g.blind {
		return nil
	}
	g.blind = true
	return []event.Data{event.NoticeData{
		Level: "warning", Code: string(fault.ModelRefused), RunID: g.runID,
		Message: fmt.Sprintf("The model %s does not take the images of this conversation (%d). It was told that they are left out.", g.model.name(), n),
	}}
}

// once remembers of what the log has told. It is safe for concurrent use.
type once struct {
	mu   sync.Mutex
	told map[string]bool
}

// maxTold bounds the memory: when it is full, the log tells everything anew.
const maxTold = 1000

// first reports whether the text has not come before.
func (o *once) first(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told[text] {
		return false
	}
	if o.told == nil || len(o.told) >= maxTold {
		o.told = map[string]bool{}
	}
	o.told[text] = true
	return true
}
