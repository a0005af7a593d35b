package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/agents"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// maxMessage bounds the body of a message, which has to fit into an event.
	maxMessage = 160 << 10
	// maxSteps bounds the steps of a message.
	maxSteps = 100
	// maxOption bounds the numbers of a run's options.
	maxOption = 1_000_000
	// maxAction bounds the body of an action, which is at most an id and a reason.
	maxAction = 16 << 10
)

// modeChat is the name of the mode whose value in the log is empty.
const modeChat = "chat"

// nameSession answers with the id of a new session.
func (a *API) nameSession(r *http.Request, who *edge.Client) (any, error) {
	var b wire.NewSession
	if err := request.Decode(r, maxAction, &b, false); err != nil {
		return nil, err
	}
	if err := checkBusy(b.OnBusy); err != nil {
		return nil, err
	}
	session, err := edge.NameSession(who.Principal(), event.Preferences{Language: b.Language, ConfirmPlan: b.ConfirmPlan, OnBusy: b.OnBusy})
	if err != nil {
		return nil, err
	}
	return respond.Created{Location: Prefix + "/sessions/" + session.String(), Answer: wire.SessionName{SessionID: session.String()}}, nil
}

func checkBusy(onBusy string) error {
	known := []string{event.OnBusyReject, event.OnBusyEnqueue, event.OnBusyInterrupt}
	if onBusy != "" && !slices.Contains(known, onBusy) {
		return fault.Newf(fault.InvalidField, "on_busy must be one of %s.", strings.Join(known, ", ")).At("on_busy")
	}
	return nil
}

// spec returns the run that the options ask for.
func spec(o wire.RunOptions) (event.RunSpec, error) {
	if err := checkBusy(o.OnBusy); err != nil {
		return event.RunSpec{}, err
	}
	for _, one := range []struct {
		name string
		n    int
	}{{"max_concurrent", o.MaxConcurrent}, {"timeout_seconds", o.TimeoutSeconds}} {
		if one.n < 0 || one.n > maxOption {
			return event.RunSpec{}, fault.Newf(fault.InvalidField, "%s must be a number from 1 to %d, or 0 for the default.", one.name, maxOption).At(one.name)
		}
	}
	if b := o.Budget; b != nil && (b.Tokens < 0 || b.CostUSD < 0 || b.ToolCalls < 0 || b.Seconds < 0 || b.AskSeconds < 0) {
		return event.RunSpec{}, fault.Newf(fault.InvalidField, "Budget limits must not be negative.").At("budget")
	}
	return event.RunSpec{
		ConfirmPlan: o.ConfirmPlan, OnBusy: o.OnBusy, MaxConcurrent: o.MaxConcurrent, TimeoutSeconds: o.TimeoutSeconds, ClientID: o.ClientID, Budget: o.Budget,
	}, nil
}

// messageOf returns the message that the body holds.
func messageOf(b wire.NewMessage) (cmd.UserMessage, error) {
	m := cmd.UserMessage{Content: b.Content, Attachments: b.Attachments}
	var err error
	if m.RunSpec, err = spec(b.RunOptions); err != nil {
		return m, err
	}
	switch b.Mode {
	case "", modeChat:
	case event.ModePlan, event.ModeSteps:
		m.Mode = b.Mode
	default:
		return m, fault.Newf(fault.InvalidField, "mode must be one of chat, plan, steps.").At("mode")
	}
	if m.Agent = b.Agent; m.Agent != "" && m.Mode != event.ModeChat {
		return m, fault.Newf(fault.InvalidField, "agent is only valid with mode=chat.").At("agent")
	}
	if b.Mode != event.ModeSteps && len(b.Steps) > 0 {
		return m, fault.Newf(fault.InvalidField, "steps is only valid with mode=steps.").At("steps")
	}
	if b.Mode == event.ModeSteps {
		if m.Steps, err = stepsOf(b.Steps); err != nil {
			return m, err
		}
		if strings.TrimSpace(m.Content) == "" {
			m.Content = titles(m.Steps)
		}
	}
	if strings.TrimSpace(m.Content) == "" {
		return m, fault.Newf(fault.InvalidField, "content must not be empty.").At("content")
	}
	return m, nil
}

// stepsOf returns the steps of a message, each with an id of its own.
func stepsOf(list []event.Step) ([]event.Step, error) {
	if len(list) == 0 || len(list) > maxSteps {
		return nil, fault.Newf(fault.InvalidField, "steps must be a list of 1 to %d steps.", maxSteps).At("steps")
	}
	known := map[string]bool{}
	out := slices.Clone(list)
	for i := range out {
		at := fmt.Sprintf("steps[%d]", i)
		if out[i].ID == "" {
			out[i].ID = fmt.Sprint("task_", i+1)
		}
		switch {
		case strings.TrimSpace(out[i].Title) == "":
			return nil, fault.Newf(fault.InvalidField, "A step needs a title.").At(at + ".title")
		case known[out[i].ID]:
			return nil, fault.Newf(fault.InvalidField, "Two steps have the same id.").At(at + ".id")
		}
		known[out[i].ID] = true
	}
	for i := range out {
		for _, d := range out[i].Dependencies {
			if !known[d] || d == out[i].ID {
				return nil, fault.Newf(fault.InvalidField, "A step can only depend on other steps of the list.").At(fmt.Sprintf("steps[%d].dependencies", i))
			}
		}
	}
	return out, nil
}

func titles(steps []event.Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, s.Title)
	}
	return strings.Join(all, "; ")
}

// messageSession sends a session a message. The first one opens a session that only has a name.
func (a *API) messageSession(r *http.Request, who *edge.Client) (any, error) {
	log, err := a.sessionLog(r, who)
	if err != nil {
		return nil, err
	}
	var b struct {
		wire.NewMessage
		Tasks json.RawMessage `json:"tasks"` // the former name of steps
	}
	if err := request.Decode(r, maxMessage, &b, true); err != nil {
		return nil, err
	}
	if err := renamed(map[string]json.RawMessage{"tasks": b.Tasks}); err != nil {
		return nil, err
	}
	m, err := messageOf(b.NewMessage)
	if err != nil {
		return nil, err
	}
	c := cmd.Command{Service: cmd.Pipeline, Verb: cmd.SendMessage, Key: log.Entity}
	if c.ID, err = commandID(b.ID); err != nil {
		return nil, err
	}
	if m.Agent != "" {
		if _, err := agents.Named(r.Context(), a.cfg.Edge.Bus, who.Principal(), m.Agent); err != nil {
			return nil, err
		}
	}
	last, err := a.cfg.Edge.Log.Last(r.Context(), log)
	if err == nil && last.Seq == 0 {
		err = who.Open(r.Context(), log)
	}
	if err != nil {
		return nil, err
	}
	e, err := act(r, who, log, c, m, received(c.ID))
	if err != nil {
		return nil, err
	}
	return took(c.ID, e)
}

// received returns a function that finds what came of a message.
func received(commandID string) func(event.Event) bool {
	return func(e event.Event) bool { return e.ID == commandID+".received" || e.ID == commandID+".refused" }
}

// took answers a message that was received, or says why it was refused.
func took(commandID string, e event.Event) (any, error) {
	out := wire.Accepted{Accepted: true, CommandID: commandID, MessageID: commandID, Seq: e.Sequence}
	switch e.Type {
	case event.MessageRefused:
		d, err := event.As[event.MessageRefusedData](e)
		if err != nil {
			return nil, err
		}
		return nil, fault.Newf(fault.Code(d.Code), "%s", d.Message)
	case event.MessageReceived:
		d, err := event.As[event.MessageReceivedData](e)
		if err != nil {
			return nil, err
		}
		out.RunID = d.RunID
	}
	return respond.Accepted{Answer: out}, nil
}

// lastRun stands for the active run, or for the last one.
const lastRun = "last"

// stepAction returns the handler of a request about a step of a run.
func stepAction(verb id.Name) func(*API, *http.Request, *edge.Client) (any, error) {
	return func(a *API, r *http.Request, who *edge.Client) (any, error) {
		log, err := a.existing(r, who)
		if err != nil {
			return nil, err
		}
		var b wire.StepAction
		if err := request.Decode(r, maxAction, &b, false); err != nil {
			return nil, err
		}
		if b.MaxAttempts < 0 || b.MaxAttempts > maxOption {
			return nil, fault.Newf(fault.InvalidField, "max_attempts must be a number from 1 to %d.", maxOption).At("max_attempts")
		}
		run, step := r.PathValue("run"), r.PathValue("step")
		c := cmd.Command{Service: cmd.Pipeline, Verb: verb, Key: log.Entity}
		if c.ID, err = commandID(b.ID, verb.String(), run, step); err != nil {
			return nil, err
		}
		if run == lastRun {
			run = ""
		}
		ref := cmd.StepRef{RunID: run, StepID: step, Reason: b.Reason, MaxAttempts: b.MaxAttempts}
		e, err := act(r, who, log, c, ref, func(e event.Event) bool {
			return e.ID == c.ID+".cancelled."+step || e.ID == c.ID+".restarted."+step
		})
		if err != nil {
			return nil, err
		}
		return carriedOut(c.ID, e)
	}
}

// carriedOut answers a request about a run with the event that it has caused.
func carriedOut(commandID string, e event.Event) (any, error) {
	var of struct {
		RunID string `json:"run_id"`
	}
	if e.Sequence > 0 {
		if err := e.Decode(&of); err != nil {
			return nil, err
		}
	}
	return respond.Accepted{Answer: wire.Accepted{Accepted: true, CommandID: commandID, RunID: of.RunID, Seq: e.Sequence}}, nil
}

// cancelPlan gives up the plan of the active run, whose steps have not begun.
func (a *API) cancelPlan(r *http.Request, who *edge.Client) (any, error) {
	log, err := a.existing(r, who)
	if err != nil {
		return nil, err
	}
	var b wire.CancelPlan
	if err := request.Decode(r, maxAction, &b, false); err != nil {
		return nil, err
	}
	c := cmd.Command{Service: cmd.Pipeline, Verb: cmd.CancelPlan, Key: log.Entity}
	if c.ID, err = commandID(b.ID, cmd.CancelPlan.String()); err != nil {
		return nil, err
	}
	e, err := act(r, who, log, c, cmd.CancelRun{Reason: b.Reason}, func(e event.Event) bool { return e.ID == c.ID+".plan-cancelled" })
	if err != nil {
		return nil, err
	}
	return carriedOut(c.ID, e)
}

// replan has another plan made: for the active run, or in a new one.
func (a *API) replan(r *http.Request, who *edge.Client) (any, error) {
	log, err := a.existing(r, who)
	if err != nil {
		return nil, err
	}
	var b wire.NewPlan
	if err := request.Decode(r, maxMessage, &b, false); err != nil {
		return nil, err
	}
	in := cmd.ReplanRun{Question: b.Question}
	if in.RunSpec, err = spec(b.RunOptions); err != nil {
		return nil, err
	}
	in.Mode = event.ModePlan
	c := cmd.Command{Service: cmd.Pipeline, Verb: cmd.Replan, Key: log.Entity}
	if c.ID, err = commandID(b.ID, cmd.Replan.String()); err != nil {
		return nil, err
	}
	is := received(c.ID)
	e, err := act(r, who, log, c, in, func(e event.Event) bool { return e.ID == c.ID+".plan-cancelled" || is(e) })
	switch {
	case err != nil:
		return nil, err
	case e.Type == event.MessageRefused:
		return took(c.ID, e)
	}
	return carriedOut(c.ID, e)
}
