package fold

import (
	"fmt"
	"slices"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Means returns what the request means in the thread, which is not a clone. The error is a *fault.Fault; for
// fault.InputRequired, Questions has the open ones.
func (t *Thread) Means(q input.Request) (Meaning, error) {
	r := request{t, q}
	if _, known := t.Stretch(q.RunID); known || t.Waits(CommandID(q.RunID)) {
		return Meaning{Kind: Repeat}, nil
	}
	if err := t.refusal(CommandID(q.RunID)); err != nil {
		return Meaning{}, err
	}
	unknown := t.unknown(q.Resume)
	if len(unknown) < len(q.Resume) {
		m, err := r.replies()
		m.Edited = m.Edited || r.differs()
		return m, err
	}
	if open, only := t.Questions(); only && len(open) > 0 {
		return Meaning{}, fault.New(fault.InputRequired)
	}
	m, err := r.says()
	m.Unknown, m.Edited = unknown, m.Edited || r.differs()
	return m, err
}

// request is a request for a run in a thread.
type request struct {
	thread *Thread
	q      input.Request
}

// says returns the meaning of the messages of a request.
func (r request) says() (Meaning, error) {
	results, err := r.results()
	if err != nil {
		return Meaning{}, err
	}
	n := r.q.User()
	if n < 0 || r.thread.Knows(r.q.Messages[n].ID) {
		if len(results.Intents) > 0 {
			return results, nil
		}
		return Meaning{Kind: Look}, nil
	}
	out, err := r.speaks(n)
	out.Skipped, out.Edited = append(results.Skipped, out.Skipped...), out.Edited || results.Edited
	before := append(results.Intents, r.unanswered()...)
	for i := range before { // the run of the message has the client's id, not what continues with these
		if d, ok := before[i].Data.(dialect.Answer); ok {
			d.Segment = ""
			before[i].Data = d
		}
	}
	out.Intents = append(before, out.Intents...)
	return out, err
}

// results returns the meaning of the results of the client's tools. Those of calls that do not wait are passed over.
func (r request) results() (Meaning, error) {
	m := Meaning{Kind: Reply}
	for n, one := range r.q.Messages {
		call, waits := r.thread.run.waitingCall(one.ToolCallID)
		if one.Role != wire.RoleTool || !waits {
			continue
		}
		d := r.resultOf(call)
		c, err := input.ContentOf(&one, fmt.Sprintf("messages[%d]", n))
		switch {
		case err != nil:
			return m, err
		case one.Error != "":
			d.Feedback = one.Error
		default:
			d.Approved, d.Result, d.Files = true, new(c.Returned()), c.Inline
			m.Skipped, m.Edited = append(m.Skipped, c.Skipped...), m.Edited || len(c.Inline) > 0
		}
		m.Intents = append(m.Intents, dialect.Intent{ID: CommandID(fmt.Sprintf("%s.t%d", r.q.RunID, n)), Data: d})
	}
	return m, nil
}

// unanswered refuses the client's calls for which a new message has no results.
func (r request) unanswered() (out []dialect.Intent) {
	if r.thread.run == nil || r.thread.run.over {
		return nil
	}
	for n, call := range r.thread.run.questions {
		answered := slices.ContainsFunc(r.q.Messages, func(m wire.Message) bool { return m.Role == wire.RoleTool && m.ToolCallID == call.ToolCallID })
		if call.Over || call.Scope != event.ScopeClientTool || answered {
			continue
		}
		d := r.resultOf(call)
		d.Feedback = "not answered"
		out = append(out, dialect.Intent{ID: CommandID(fmt.Sprintf("%s.u%d", r.q.RunID, n)), Data: d})
	}
	return out
}

func (r request) resultOf(call Question) dialect.Answer {
	return dialect.Answer{InputID: call.ID, CallID: call.ToolCallID, Digest: call.Digest, ClientID: r.q.ClientID, Segment: r.q.RunID}
}

// waitingCall returns the question of a client's call that waits for its result.
func (r *run) waitingCall(callID string) (Question, bool) {
	if r == nil || r.over || callID == "" {
		return Question{}, false
	}
	for _, q := range r.questions {
		if q.ToolCallID == callID && q.Scope == event.ScopeClientTool && !q.Over {
			return q, true
		}
	}
	return Question{}, false
}

// maxHistory bounds the conversation that a client brings to a new thread.
const maxHistory = 64 << 10

// conversation returns the newest messages before m, up to 64 KiB. The model knows nothing of them otherwise.
func conversation(q input.Request, m *wire.Message) (out []event.Said) {
	bytes := 0
	for i := range slices.Backward(q.Messages) {
		one := &q.Messages[i]
		if one == m || one.Role != wire.RoleUser && one.Role != wire.RoleAssistant && one.Role != wire.RoleSystem && one.Role != wire.RoleDeveloper {
			continue
		}
		c, err := input.ContentOf(one, "messages")
		if err != nil || c.Text == "" { // it asks for tools, and says nothing
			continue
		}
		if bytes += len(c.Text); bytes > maxHistory {
			break
		}
		role := event.RoleUser
		if one.Role == wire.RoleAssistant {
			role = event.RoleAssistant
		}
		out = append(out, event.Said{Role: role, Content: c.Text})
	}
	slices.Reverse(out)
	return out
}

// speaks returns the meaning of a new message, which is the n-th of the input.
func (r request) speaks(n int) (Meaning, error) {
	m := &r.q.Messages[n]
	field := fmt.Sprintf("messages[%d]", n)
	c, err := input.ContentOf(m, field)
	if err != nil {
		return Meaning{}, err
	}
	if c.Empty() {
		return Meaning{}, strict.Wrong(field+".content", "a string that is not only white space, or a list of parts that has one, or a file")
	}
	if r.q.Team {
		return tells(r.q, c, field)
	}
	d := dialect.SendMessage{Content: c.Text, Attachments: event.Attachments{ImageURLs: c.Images, ContextFiles: c.Files}}
	d.RunSpec = event.RunSpec{
		ConfirmPlan: r.q.ConfirmPlan, OnBusy: first(r.q.OnBusy, event.OnBusyEnqueue), MaxConcurrent: r.q.MaxConcurrent,
		TimeoutSeconds: r.q.TimeoutSeconds, ClientID: r.q.ClientID, Budget: r.q.Budget, Extra: r.q.Extra,
	}
	if r.q.Mode == event.ModePlan {
		d.Mode = event.ModePlan
	}
	if r.thread.fresh() {
		d.History = conversation(r.q, m)
	}
	d.Facts = append(c.Facts, r.q.Facts()...)
	out := Meaning{Kind: Speak, Skipped: c.Skipped, Edited: len(c.Inline) > 0}
	if d.Agent = r.q.Agent; r.q.Agent != "" {
		out.unoffered(r.q)
		out.Skipped = append(out.Skipped, c.Pictures()...)
	} else {
		d.ClientTools = r.q.ClientTools()
	}
	d.Files = c.Inline
	out.Intents = []dialect.Intent{{ID: CommandID(r.q.RunID), Data: d}}
	return out, nil
}

// maxTold bounds a message to a team, which every team wraps around its member, and the member's log holds twice.
const maxTold = 100 << 10

// tells returns the meaning of a message to a team, or to one of its members.
func tells(q input.Request, c content.Content, field string) (Meaning, error) {
	if len(c.Text) > maxTold {
		return Meaning{}, fault.New(fault.MessageTooBig).At(field + ".content")
	}
	d := dialect.SendMessage{Content: c.Text, Attachments: event.Attachments{ImageURLs: c.Images, ContextFiles: c.Files}, RunSpec: event.RunSpec{Extra: q.Extra}}
	out := Meaning{Kind: Speak, Skipped: c.Skipped, Intents: []dialect.Intent{{ID: CommandID(q.RunID), Member: q.TargetMember, Data: d}}}
	for range c.Facts {
		out.Skipped = append(out.Skipped, event.FileDocument)
	}
	out.Skipped = append(out.Skipped, c.Pictures()...)
	out.unoffered(q)
	return out, nil
}

// unoffered notes what an agent of the swarm and a team are not given.
func (m *Meaning) unoffered(q input.Request) {
	if len(q.Tools) > 0 {
		m.Unoffered = append(m.Unoffered, "tools")
	}
	if q.Team && len(q.Context) > 0 {
		m.Unoffered = append(m.Unoffered, "context")
	}
}

// replies returns the meaning of answers, which have to be one for each open question.
func (r request) replies() (Meaning, error) {
	m, err := r.thread.Answers(r.q.RunID, r.q.Resume, r.q.ClientID)
	if err != nil {
		return m, err
	}
	results, err := r.results()
	if err != nil {
		return m, err
	}
	m.Intents, m.Skipped, m.Edited = append(m.Intents, results.Intents...), results.Skipped, results.Edited
	open, _ := r.thread.Questions()
	for _, i := range open {
		if !slices.ContainsFunc(r.q.Resume, func(e wire.ResumeEntry) bool { return e.InterruptID == i.ID }) {
			return Meaning{}, fault.New(fault.InputRequired)
		}
	}
	return m, nil
}

// Stops returns the intent of a request that stops a run. The error is a *fault.Fault.
func (t *Thread) Stops(in wire.Cancel) (dialect.Intent, error) {
	runID, active := t.Run()
	if t.team == nil && in.Member != "" {
		return dialect.Intent{}, strict.Wrong("targetMember", "absent: a session has no members")
	}
	if t.team != nil && in.TaskID != "" {
		return dialect.Intent{}, strict.Wrong("taskId", "absent: a team has members")
	}
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
	if t.team != nil {
		return t.stopsTeam(runID, in), nil
	}
	i := dialect.Intent{ID: CommandID("cancel." + runID + "." + in.TaskID), Data: dialect.Cancel{RunID: runID, Reason: first(in.Reason, "user_request")}}
	if in.TaskID != "" {
		if err := t.stopsTask(runID, in.TaskID); err != nil {
			return dialect.Intent{}, err
		}
		i.Data = dialect.CancelStep{StepID: in.TaskID, Reason: first(in.Reason, "user_request")}
	}
	return i, nil
}

// stopsTeam stops all members of a team, or one. They may be stopped again later.
func (t *Thread) stopsTeam(runID string, in wire.Cancel) dialect.Intent {
	return dialect.Intent{
		ID: CommandID(fmt.Sprintf("cancel.%s.%d.%s", runID, t.seq, in.Member)), Member: in.Member, Data: dialect.Cancel{All: true, Reason: first(in.Reason, "user_request")},
	}
}

// stopsTask returns why a task cannot be stopped.
func (t *Thread) stopsTask(runID, taskID string) error {
	if t.run == nil || t.run.id != runID || t.run.plan.index(taskID) < 0 {
		return fault.New(fault.TaskNotFound)
	}
	switch t.run.plan.Tasks[t.run.plan.index(taskID)].Status {
	case taskPending, taskRunning:
		return nil
	}
	return fault.Newf(fault.RunOver, "The task has ended. Nothing was changed.")
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
