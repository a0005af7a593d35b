package myagent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// with decodes the event's data for f.
func with[T event.Data](f func(*Codec, event.Event, T) wire.Frame) func(*Codec, event.Event) (wire.Frame, error) {
	return func(c *Codec, e event.Event) (wire.Frame, error) {
		d, err := eventdata.As[T](e)
		if err != nil {
			return wire.Frame{}, err
		}
		return f(c, e, d), nil
	}
}

// Encode implements dialect.Codec. It gives one frame for any event but a part of a
// text: for one that cannot be read a system.error, for one of an unknown type a
// system.notice.
// Events of members of a team have the frames that they have in their own logs, with the
// member in their metadata.
func (c *Codec) Encode(e event.Event) [][]byte {
	e = ahead(event.Unwrap(e))
	build, ok := c.frames[e.Type]
	if !ok {
		build = neutral
	}
	f, err := build(c, e)
	if err == nil && f.Event == "" {
		return nil
	}
	if err == nil {
		var b []byte
		if b, err = c.sealed(e, f); err == nil {
			return [][]byte{b}
		}
	}
	return [][]byte{c.damaged(e)}
}

// damaged stands for an event that cannot be read: a viewer must not mistake a damaged
// log for silence, and its seq must not be missing.
func (c *Codec) damaged(e event.Event) []byte {
	f := fault.Newf(fault.Internal, "An event of this session could not be shown. Tell the operator its seq.")
	b, err := c.sealed(e, c.tell(trouble{Fault: f}))
	if err != nil {
		panic("myagent: " + err.Error()) // A frame without raw members can always be encoded.
	}
	return b
}

// sealed fills in what all frames of a log have and encodes the frame. A direct message is in
// no log and has neither seq nor event_id.
func (*Codec) sealed(e event.Event, f wire.Frame) ([]byte, error) {
	f.SessionID = sessionOf(e.Subject)
	if e.Via.Route != "" {
		f.Metadata = wire.Placed(f.Metadata, wire.Member{Route: e.Via.Route, AgentID: e.Via.AgentID, TeamID: e.Via.TeamID})
	}
	f.Timestamp = wire.Stamp(e.Time)
	if e.Sequence > 0 {
		f.Seq, f.EventID = e.Sequence, eventID(f.SessionID, cursor(e))
	}
	return f.Encode()
}

// ahead returns the first event of a session as a gateway shows it before it is stored: it has the
// time at which the session was named, and no place in a stream.
func ahead(e event.Event) event.Event {
	if e.Type != event.SessionCreated || e.Sequence != 1 {
		return e
	}
	e.Stream = 0
	if at, ok := id.Stamp(sessionOf(e.Subject)); ok {
		e.Time = at
	}
	return e
}

// eventID names a position in a session: <session>-<position>, as the ids of the original
// are <connection>-<seq>. So a client that has nothing but the last one that it saw can
// come back with it.
func eventID(session, position string) string { return session + "-" + position }

// cursor is where a client comes back after the event: <seq>, and where it is stored if
// that is known.
func cursor(e event.Event) string {
	seq := strconv.FormatUint(e.Sequence, 10)
	if e.Stream == 0 {
		return seq
	}
	return seq + "." + strconv.FormatUint(e.Stream, 10)
}

// sessionOf returns the id in the name of a log: tenant.kind.id.
func sessionOf(log string) string { return log[strings.LastIndexByte(log, '.')+1:] }

// neutral shows an event in its neutral form. One that says nothing is a notice without data: it keeps the seq of the
// frames dense.
func neutral(c *Codec, e event.Event) (wire.Frame, error) {
	n, err := narrate.Of(e)
	if err != nil {
		return wire.Frame{}, err
	}
	at := run(n.Run, n.Execution)
	switch n.Kind {
	case narrate.Failure:
		return c.agentError(n.Whole(), wire.ErrorMeta{Context: at, ErrorType: n.Code, Operation: string(e.Type), MessageID: n.ID}), nil
	case narrate.Question:
		return c.asked(n), nil
	case narrate.Answer:
		return finalAnswer(n.Whole(), wire.FinalAnswerMeta{Context: at, Status: "success"}, nil), nil
	case narrate.Message:
		return wire.Frame{Event: wire.UserMessage, Content: n.Whole(), Metadata: wire.EchoMeta{Context: at, MessageID: n.ID}}, nil
	case narrate.Silent, narrate.Note:
	}
	return c.notice(first(n.Whole(), c.words.other), wire.NoticeMeta{
		Work: wire.Work{Context: at}, Action: string(e.Type), MessageID: n.ID, Member: n.By,
	}), nil
}

// asked is a question that takes yes or no. The feedback of a yes is the answer to an agent.
func (c *Codec) asked(n narrate.Narration) wire.Frame {
	yes := c.words.allow
	if n.Ask.Scope == narrate.ScopeTask {
		yes = c.words.answer
	}
	return wire.Frame{
		Event: wire.AgentUserConfirm, StepID: &n.Ask.ID, Content: n.Whole(), ShowContent: n.Whole(),
		Metadata: wire.ConfirmMeta{
			Context: run(n.Run, n.Execution), Scope: n.Ask.Scope, Summary: n.Whole(),
			TimeoutSeconds: n.Ask.TimeoutSeconds, Required: true,
			Options: []wire.Option{{Value: event.DecisionApprove, Label: yes}, {Value: event.DecisionReject, Label: c.words.deny}},
		},
	}
}

// notice returns a system.notice that changes nothing for its viewers.
func (*Codec) notice(text string, m wire.NoticeMeta) wire.Frame {
	m.Type, m.Severity = first(m.Type, "info"), first(m.Severity, "low")
	return wire.Frame{Event: wire.SystemNotice, Content: wire.NoticeContent{Message: text}, Metadata: m, ShowContent: text}
}

// run names the run that an event belongs to.
func run(runID, execution string) wire.Context {
	return wire.Context{RunID: runID, ExecutionID: execution}
}

// work names the piece of a run that an event belongs to.
func work(runID, execution string, p event.Part) wire.Work {
	w := wire.Work{Context: run(runID, execution), Stage: p.Stage, TaskID: p.StepID}
	if p.StepID != "" {
		w.StepID = *solveStep(p.StepID)
	}
	return w
}

// solveStep returns the wire's step_id of a step of the plan.
func solveStep(stepID string) *string {
	s := "solve_" + stepID
	return &s
}

// spent says what a piece of work consumed.
func spent(u event.Usage) wire.Spent {
	return wire.Spent{LLMCalls: u.LLMCalls, TokensUsed: tokens(u), CostUSD: u.CostUSD}
}

// tokens are absent where no provider gave any.
func tokens(u event.Usage) *wire.Tokens {
	if u.InputTokens == nil && u.OutputTokens == nil {
		return nil
	}
	return split(&wire.Tokens{Input: u.InputTokens, Output: u.OutputTokens}, u.TokenDetails)
}

// split adds what is known of the tokens.
func split(t *wire.Tokens, d event.TokenDetails) *wire.Tokens {
	t.Cached, t.CacheWrite, t.Reasoning = d.CachedTokens, d.CacheWriteTokens, d.ReasoningTokens
	return t
}

// tasks are the tasks of a plan on the wire; never nil, so that a list is a list.
func tasks(list []event.Step) []wire.Task {
	out := make([]wire.Task, 0, len(list))
	for _, t := range list {
		out = append(out, task(t))
	}
	return out
}

func task(t event.Step) wire.Task {
	w := wire.Task{
		ID: t.ID, Title: t.Title, Description: t.Description, Priority: t.Priority, Dependencies: t.Dependencies,
		Capability: t.Capability, Context: t.Context, EstimatedTokens: t.EstimatedTokens, EstimatedSeconds: t.EstimatedSeconds,
	}
	if m, ok := strict.Members(t.Extra); ok {
		w.Extra = map[string]any{}
		for name, raw := range m {
			w.Extra[name] = raw
		}
	}
	return w
}

// asObject returns raw as a JSON object, which is all that the protocol allows there.
// Nothing is {}, and a value of another kind becomes its member "value".
func asObject(raw json.RawMessage) json.RawMessage {
	if _, ok := strict.Members(raw); ok {
		return raw
	}
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return fmt.Appendf(nil, `{"value":%s}`, raw)
}

// optionalObject is asObject for members that are absent when they are empty.
func optionalObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return asObject(raw)
}

// seconds turns milliseconds into the protocol's other unit.
func seconds(ms int64) float64 { return float64(ms) / 1000 }

// finalAnswer fills in what the run consumed, as far as that is known.
func finalAnswer(text string, m wire.FinalAnswerMeta, u *event.Usage) wire.Frame {
	m.Type = "text"
	if u != nil {
		m.TokensUsed, m.CostUSD, m.LLMCalls, m.ToolCalls = tokens(*u), u.CostUSD, &u.LLMCalls, &u.ToolCalls
		if u.InputTokens != nil && u.OutputTokens != nil {
			total := *u.InputTokens + *u.OutputTokens
			m.TotalTokens = &total
		}
	}
	return wire.Frame{Event: wire.AgentFinalAnswer, Content: text, Metadata: m, ShowContent: text}
}
