package agui

import (
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/gateway/dialect"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Kind says what a request for a run is.
type Kind int

// The kinds, in the order in which they are looked for.
const (
	Repeat Kind = iota // the thread has the run: it is shown, and nothing is sent
	Reply              // answers questions
	Speak              // a new message of the user
	Look               // nothing new: the thread is shown
)

// Meaning is what a request for a run means in a thread.
type Meaning struct {
	Kind    Kind
	Intents []dialect.Intent // to be sent, in this order
	Unknown []string         // interrupts that the thread does not have
	Skipped []string         // parts of the message that the model cannot take
}

// CommandID returns the id of the command for a run of a client.
func CommandID(runID string) string { return id.EntityFromExternal(runID).String() }

// Means returns what the request means in the thread, which is not a clone. The error is a *fault.Fault; for
// fault.InputRequired, Questions has the open ones.
func (t *Thread) Means(q Request) (Meaning, error) {
	if _, known := t.Stretch(q.RunID); known || t.Waits(CommandID(q.RunID)) {
		return Meaning{Kind: Repeat}, nil
	}
	if len(q.Resume) > 0 {
		return t.replies(q)
	}
	if _, only := t.Questions(); only {
		return Meaning{}, fault.New(fault.InputRequired)
	}
	m := q.user()
	if m == nil || t.Knows(m.ID) {
		return Meaning{Kind: Look}, nil
	}
	return t.speaks(q, m)
}

// speaks returns the meaning of a new message.
func (t *Thread) speaks(q Request, m *wire.Message) (Meaning, error) {
	c, err := contentOf(m)
	if err != nil {
		return Meaning{}, err
	}
	d := dialect.SendMessage{Content: c.text, Attachments: event.Attachments{ImageURLs: c.images, ContextFiles: c.files}}
	d.RunSpec = event.RunSpec{
		ConfirmPlan: q.ConfirmPlan, OnBusy: first(q.OnBusy, event.OnBusyEnqueue), MaxConcurrent: q.MaxConcurrent,
		TimeoutSeconds: q.TimeoutSeconds, ClientID: q.ClientID, Budget: q.Budget, Extra: q.Extra,
	}
	if q.Mode == event.ModePlan {
		d.Mode = event.ModePlan
	}
	return Meaning{Kind: Speak, Skipped: c.skipped, Intents: []dialect.Intent{{ID: CommandID(q.RunID), Member: q.TargetMember, Data: d}}}, nil
}

// replies returns the meaning of answers, which have to be one for each open question.
func (t *Thread) replies(q Request) (Meaning, error) {
	m, err := t.Answers(q.RunID, q.Resume, q.ClientID)
	if err != nil {
		return m, err
	}
	open, _ := t.Questions()
	for _, i := range open {
		if !answers(q.Resume, i.ID) {
			return Meaning{}, fault.New(fault.InputRequired)
		}
	}
	return m, nil
}

func answers(list []wire.ResumeEntry, interrupt string) bool {
	for _, e := range list {
		if e.InterruptID == interrupt {
			return true
		}
	}
	return false
}

// Answers returns the meaning of answers under the id of a run.
func (t *Thread) Answers(runID string, list []wire.ResumeEntry, clientID string) (Meaning, error) {
	m := Meaning{Kind: Reply}
	for n, e := range list {
		q, known := t.Question(e.InterruptID)
		if !known {
			m.Unknown = append(m.Unknown, e.InterruptID)
			continue
		}
		d, err := answerOf(e, fmt.Sprintf("resume[%d].payload", n))
		if err != nil {
			return m, err
		}
		d.InputID, d.CallID, d.Digest, d.ClientID, d.Segment = e.InterruptID, q.ToolCallID, q.Digest, clientID, runID
		m.Intents = append(m.Intents, dialect.Intent{ID: CommandID(fmt.Sprintf("%s.%d", runID, n)), Data: d})
	}
	return m, nil
}

// answerOf reads an answer: true, false, or an object.
func answerOf(e wire.ResumeEntry, field string) (d dialect.Answer, err error) {
	if e.Status == wire.ResumeCancelled {
		return dialect.Answer{Feedback: "abandoned"}, nil
	}
	if json.Unmarshal(e.Payload, &d.Approved) == nil {
		return d, nil
	}
	var p struct {
		Approved *bool           `json:"approved"`
		Feedback string          `json:"feedback"`
		Tasks    json.RawMessage `json:"tasks"`
		Modified json.RawMessage `json:"modified"`
	}
	if len(e.Payload) == 0 || json.Unmarshal(e.Payload, &p) != nil || p.Approved == nil {
		return d, wrong(field, "true, false, or an object with approved, and perhaps feedback, tasks and modified")
	}
	return dialect.Answer{Approved: *p.Approved, Feedback: p.Feedback, Steps: p.Tasks, Modified: p.Modified}, nil
}

// Stops returns the intent of a request that stops a run. The error is a *fault.Fault.
func (t *Thread) Stops(in wire.Cancel) (dialect.Intent, error) {
	runID, active := t.Run()
	if in.RunID != "" {
		if waits := t.waitingRun(in.RunID); waits != "" {
			runID, active = waits, true
		} else if s, known := t.Stretch(in.RunID); !known {
			return dialect.Intent{}, fault.New(fault.RunNotFound)
		} else if s.Run != runID {
			active = false
		}
	}
	if !active {
		return dialect.Intent{}, fault.New(fault.RunOver)
	}
	i := dialect.Intent{ID: CommandID("cancel." + runID + "." + in.TaskID), Data: dialect.Cancel{RunID: runID, Reason: first(in.Reason, "user_request")}}
	if in.TaskID != "" {
		i.Data = dialect.CancelStep{StepID: in.TaskID, Reason: first(in.Reason, "user_request")}
	}
	return i, nil
}

// waitingRun returns Waggle's id of the run with the id, if it waits for its turn.
func (t *Thread) waitingRun(runID string) string {
	for _, m := range t.waiting {
		if runIDOf(m) == runID {
			return m.RunID
		}
	}
	return ""
}
