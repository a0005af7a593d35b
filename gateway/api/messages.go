package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/agents"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// messages are what people say in sessions, with what they want to be done about it.
type messages struct {
	*parts
	sessions sessions
}

const (
	// maxMessage bounds the body of a message: as much as fits into an event, and its files in base64, with room for escapes.
	maxMessage = 512 << 10
	// maxFiles bounds the files of a message.
	maxFiles = 64
	// maxSteps bounds the steps of a message.
	maxSteps = 100
	// maxOption bounds the numbers of a run's options.
	maxOption = 1_000_000
)

// modeChat is the name of the mode whose value in the log is empty.
const modeChat = "chat"

func (m messages) routes() []Route {
	return []Route{{
		Method: "POST", Path: "/sessions/{id}/messages", ID: "messageSession", Tag: "sessions", Summary: "Send a session a message.",
		Body: wire.NewMessage{}, Required: true, Example: `{"id":"first","content":"which files are in the workspace, and what does notes.md say?","mode":"plan"}`,
		Answers: taken("The message is received."),
		Faults:  actionFaults(fault.SessionExists, fault.SessionClosed, fault.SessionBusy, fault.QueueFull, fault.BudgetExceeded, fault.ModelNotFound, fault.AgentNotFound),
		Handler: m.server.Serve(m.send),
	}}
}

// actionFaults are those of requests to a session that have an outcome.
func actionFaults(more ...fault.Code) []fault.Code {
	return append(more, fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.Draining, fault.SessionNotFound, fault.SessionDeleted)
}

// send sends a session a message. The first one opens a session that only has a name.
func (m messages) send(r *http.Request, who *edge.Client) (any, error) {
	var b struct {
		wire.NewMessage
		Tasks json.RawMessage `json:"tasks"` // the former name of steps
	}
	if err := request.Decode(r, maxMessage, &b, true); err != nil {
		return nil, err
	}
	log, err := m.target(r, who, b.CreateSession)
	if err != nil {
		return nil, err
	}
	if err := renamed(map[string]json.RawMessage{"tasks": b.Tasks}); err != nil {
		return nil, err
	}
	said, err := messageOf(b.NewMessage)
	if err != nil {
		return nil, err
	}
	c := cmd.Command{Service: cmd.Pipeline, Verb: cmd.SendMessage, Key: log.Entity}
	if c.ID, err = edge.CommandID(b.ID); err != nil {
		return nil, err
	}
	if said.Agent != "" {
		if _, err := agents.Named(r.Context(), m.edge.Bus, who.Principal(), said.Agent); err != nil {
			return nil, err
		}
	}
	if err := m.begin(r, who, log, b.NewMessage); err != nil {
		return nil, err
	}
	if err := m.store(r, who, log, said.Files); err != nil {
		return nil, err
	}
	e, err := act(r, who, log, c, said, received(c.ID))
	if err != nil {
		return nil, err
	}
	return took(c.ID, e)
}

// target returns the log of the session that the message is for. With create it may be one that the client has named itself.
func (m messages) target(r *http.Request, who *edge.Client, create bool) (subject.Log, error) {
	if create {
		return m.sessions.mine(r, who, r.PathValue("id"))
	}
	return m.sessions.log(r, who)
}

// begin creates the session if it has no events.
func (m messages) begin(r *http.Request, who *edge.Client, log subject.Log, b wire.NewMessage) error {
	last, err := m.edge.Log.Last(r.Context(), log)
	if err != nil || last.Seq > 0 {
		return err
	}
	wants := cmd.Command{Service: cmd.Pipeline, Verb: cmd.SendMessage, Tenant: log.Tenant, Key: log.Entity}
	if _, named := m.edge.Awaited(who.Principal(), log); named || !b.CreateSession {
		return who.Open(r.Context(), log, wants)
	}
	return who.Create(r.Context(), log, event.Preferences{Language: b.Language, ClientID: b.ClientID}, wants)
}

// store stores the files of a message as objects of the log.
func (m messages) store(r *http.Request, who *edge.Client, log subject.Log, files []event.File) error {
	if len(files) > 0 && !who.Principal().MayAct() {
		return fault.New(fault.Forbidden)
	}
	return m.payloads.Files(r.Context(), log, files)
}

func checkBusy(onBusy string) error {
	if onBusy == "" {
		return nil
	}
	return oneOf("on_busy", onBusy, []string{event.OnBusyReject, event.OnBusyEnqueue, event.OnBusyInterrupt})
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
		return m, oneOf("mode", b.Mode, []string{modeChat, event.ModePlan, event.ModeSteps})
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
	if strings.TrimSpace(m.Content) == "" && len(b.Files) == 0 {
		return m, fault.Newf(fault.InvalidField, "content must not be empty.").At("content")
	}
	return m, attach(&m, b)
}

// attach adds the files, the context and the tools to a message.
func attach(m *cmd.UserMessage, b wire.NewMessage) error {
	if err := content.CheckTools(b.Tools); err != nil {
		return err
	}
	if err := content.CheckContext(b.Context); err != nil {
		return err
	}
	if len(b.Files) > maxFiles {
		return fault.Newf(fault.InvalidField, "files must be a list of at most %d files.", maxFiles).At("files")
	}
	var c content.Content
	for i, f := range b.Files {
		at := fmt.Sprintf("files[%d]", i)
		in := content.Inline{Kind: content.KindOf(f.MediaType), MediaType: f.MediaType, Name: f.Name, Data: f.Data}
		if err := c.Bring(in, content.Fields{MediaType: at + ".media_type", Data: at + ".data"}); err != nil {
			return err
		}
	}
	m.Facts, m.Files, m.ClientTools = append(c.Facts, b.Context...), c.Inline, b.Tools
	return nil
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
