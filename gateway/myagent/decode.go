package myagent

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

const (
	// titleLimit cuts a description that stands for a missing title, in characters:
	// the length to which the protocol cuts texts for people.
	titleLimit = 120
	// reasonLimit cuts a reason, in characters: the original's advice for texts.
	reasonLimit = 500
	// byUser is the reason of a command that gives none.
	byUser = "user_request"
)

// readers read what the frames ask for.
var readers = map[string]func(*form, object) dialect.IntentData{
	wire.UserMessage:     (*form).message,
	wire.UserSolveTasks:  (*form).solve,
	wire.UserResponse:    (*form).respond,
	wire.UserCancel:      (*form).cancel,
	wire.UserCancelPlan:  (*form).cancelPlan,
	wire.UserCancelTask:  (*form).cancelTask,
	wire.UserRestartTask: (*form).restart,
	wire.UserReplan:      (*form).replan,
}

// Decode implements dialect.Codec. Frames that ask something of the gateway (see
// Request) give no intents.
func (*Codec) Decode(frame []byte, in dialect.Inbound) ([]dialect.Intent, error) {
	var f form
	kind, top := f.envelope(frame)
	if f.Fault != nil {
		return nil, f.Fault
	}
	read, ok := readers[kind]
	if !ok {
		return nil, nil
	}
	f.needID(top, "session_id")
	given := first(f.name(f.Object(top, "metadata"), "message_id"), f.name(top, "id"))
	data := read(&f, top)
	if f.Fault != nil {
		return nil, f.Fault
	}
	return []dialect.Intent{{ID: intentID(given, in), Data: data}}, nil
}

// intentID is the client's id, or a fresh one where it gives none. An id that is not a
// legal token is replaced by its hash, so that a repeat is still a repeat.
func intentID(given string, in dialect.Inbound) string {
	if given == "" {
		return in.NewID()
	}
	return id.EntityFromExternal(given).String()
}

func (f *form) message(top object) dialect.IntentData {
	m := dialect.SendMessage{RunSpec: f.spec(top)}
	m.Mode = event.ModePlan
	switch raw := top.Get("content"); {
	case raw != nil && raw[0] == '{':
		m.Content = f.question(f.Object(top, "content"), "question")
	case raw == nil || raw[0] == '"':
		m.Content = f.question(top, "content")
	default:
		f.Wrong("content", aQuestion, raw)
	}
	return m
}

// spec reads how a message is to be answered. Metadata that has no meaning here stays
// with it.
func (f *form) spec(top object) event.RunSpec {
	meta := f.Object(top, "metadata")
	s := event.RunSpec{ConfirmPlan: f.boolean(meta, "confirm_plan"), OnBusy: f.onBusy(meta), ClientID: f.id(meta, "client_id")}
	if n := f.integer(meta, "max_concurrent", 1, wire.MaxTasks); n != nil {
		s.MaxConcurrent = int(*n)
	}
	if b := f.boolean(meta, "parallelizable"); b != nil && !*b {
		s.MaxConcurrent = 1
	}
	if n := f.integer(meta, "timeout_seconds", 1, wire.MaxTimeout); n != nil {
		s.TimeoutSeconds = int(*n)
	}
	s.Budget = f.budget(meta)
	s.Extra = encoded(meta.Rest("budget", "message_id", "confirm_plan", "on_busy", "client_id", "max_concurrent", "parallelizable", "timeout_seconds"))
	return s
}

// budget reads what the run may use up at most.
func (f *form) budget(meta object) *event.Budget {
	o := f.Object(meta, "budget")
	if len(o.Members) == 0 {
		return nil
	}
	var b event.Budget
	if n := f.integer(o, "tokens", 1, wire.MaxBudget); n != nil {
		b.Tokens = *n
	}
	if n := f.integer(o, "tool_calls", 1, wire.MaxBudget); n != nil {
		b.ToolCalls = int(*n)
	}
	if n := f.integer(o, "seconds", 1, wire.MaxBudget); n != nil {
		b.Seconds = *n
	}
	return &b
}

func (f *form) solve(top object) dialect.IntentData {
	m := dialect.SendMessage{RunSpec: f.spec(top)}
	m.Mode = event.ModeSteps
	content := f.Object(top, "content")
	m.Steps = f.tasks(content)
	var titles []string
	for _, t := range m.Steps {
		titles = append(titles, t.Title)
	}
	m.Content = strict.Cut(firstSaid(
		deref(f.text(content, "question", wire.MaxContent)), deref(f.text(content, "plan_summary", wire.MaxContent)), strings.Join(titles, "; "),
	), wire.MaxContent)
	return m
}

// tasks reads content.tasks: a list, or one task.
func (f *form) tasks(content object) []event.Step {
	raw := content.Get("tasks")
	field := content.At("tasks")
	rule := fmt.Sprintf("1 to %d tasks", wire.MaxTasks)
	if raw == nil {
		f.Wrong(field, rule, nil)
		return nil
	}
	if raw[0] == '{' {
		return []event.Step{f.oneTask(raw, field)}
	}
	var list []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		f.Wrong(field, rule, raw)
		return nil
	}
	if len(list) < 1 || len(list) > wire.MaxTasks {
		f.Wrong(field, rule, fmt.Appendf(nil, "%d", len(list)))
		return nil
	}
	tasks := make([]event.Step, 0, len(list))
	for i, raw := range list {
		tasks = append(tasks, f.oneTask(raw, fmt.Sprintf("%s[%d]", field, i)))
	}
	return tasks
}

func (f *form) oneTask(raw json.RawMessage, field string) event.Step {
	m, ok := strict.Members(raw)
	if !ok {
		f.Wrong(field, aTask, raw)
		return event.Step{}
	}
	o := object{Path: field, Members: m}
	said := func(name string) string { return deref(f.text(o, name, wire.MaxContent)) }
	title, name, description, objective := said("title"), said("name"), said("description"), said("objective")
	t := event.Step{
		ID:          f.taskID(o.Get("id"), o.At("id")),
		Title:       firstSaid(title, name, strict.Cut(firstSaid(objective, description), titleLimit)),
		Description: firstSaid(description, objective),
		Capability:  f.id(o, "capability"), Context: o.Get("context"),
		Priority:         int(number(f.integer(o, "priority", 0, 1_000_000))),
		EstimatedTokens:  number(f.integer(o, "estimated_tokens", 0, wire.MaxSeq)),
		EstimatedSeconds: number(f.integer(o, "estimated_time_seconds", 0, wire.MaxSeq)),
		Dependencies:     f.dependencies(o),
	}
	if blank(t.Title) {
		f.Wrong(o.At("title"), "a string that says what is to be done", o.Get("title"))
	}
	t.Extra = encoded(o.Rest(append([]string{"name", "objective"}, wire.TaskMembers...)...))
	return t
}

func (f *form) dependencies(o object) []string {
	raw := o.Get("dependencies")
	if raw == nil {
		return nil
	}
	field, rule := o.At("dependencies"), fmt.Sprintf("a list of at most %d ids of tasks", wire.MaxTasks)
	var list []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &list) != nil || len(list) > wire.MaxTasks {
		f.Wrong(field, rule, raw)
		return nil
	}
	var ids []string
	for i, raw := range list {
		ids = append(ids, f.taskID(raw, fmt.Sprintf("%s[%d]", field, i)))
	}
	return ids
}

// respond reads the answer to a question. It passes tasks on as they are:
// the plan judges them.
func (f *form) respond(top object) dialect.IntentData {
	content := f.Object(top, "content")
	approved, confirmed := f.boolean(content, "approved"), f.boolean(content, "confirmed")
	if approved == nil {
		approved = confirmed
	}
	if approved == nil {
		f.Wrong("content.approved", aBoolean, nil)
	}
	if bad := strict.OnlyAnswer(content.Path, content.Members, "approved", "confirmed", "feedback", "tasks", "modified_tasks", "tool_args"); f.Fault == nil {
		f.Fault = bad
	}
	return dialect.Answer{
		InputID: f.step(top), Approved: truth(approved),
		Feedback: deref(f.text(content, "feedback", wire.MaxContent)),
		Steps:    content.Get("tasks"), Modified: content.Get("modified_tasks"), Arguments: content.Get("tool_args"),
		ClientID: f.id(f.Object(top, "metadata"), "client_id"),
	}
}

func (f *form) cancel(top object) dialect.IntentData {
	f.id(f.Object(top, "metadata"), "client_id")
	return dialect.Cancel{Reason: f.reason(top), Pause: true}
}

func (f *form) cancelPlan(top object) dialect.IntentData {
	f.id(f.Object(top, "metadata"), "client_id")
	return dialect.CancelPlan{Reason: f.reason(top)}
}

// reason reads why something is asked for. Anything but a text is passed over.
func (f *form) reason(top object) string {
	s, _ := strict.Text(f.Object(top, "metadata").Get("reason"))
	return firstSaid(strict.Cut(s, reasonLimit), byUser)
}

func (f *form) cancelTask(top object) dialect.IntentData { return dialect.CancelStep(f.task(top)) }

func (f *form) task(top object) command.StepRef {
	f.id(f.Object(top, "metadata"), "client_id")
	content := f.Object(top, "content")
	return command.StepRef{StepID: f.taskID(content.Get("task_id"), content.At("task_id")), Reason: f.reason(top)}
}

func (f *form) restart(top object) dialect.IntentData {
	ref := f.task(top)
	ref.MaxAttempts = int(number(f.integer(f.Object(top, "metadata"), "max_attempts", 1, wire.MaxTries)))
	return dialect.RestartStep(ref)
}

func (f *form) replan(top object) dialect.IntentData {
	r := dialect.Replan{RunSpec: f.spec(top)}
	r.Mode = event.ModePlan
	switch raw := top.Get("content"); {
	case raw == nil:
	case raw[0] == '{':
		r.Question = deref(f.text(f.Object(top, "content"), "question", wire.MaxContent))
	case raw[0] == '"':
		r.Question = deref(f.text(top, "content", wire.MaxContent))
	default:
		f.Wrong("content", aQuestion, raw)
	}
	if blank(r.Question) {
		r.Question = ""
	}
	return r
}

// firstSaid returns the first text that says something.
func firstSaid(texts ...string) string {
	for _, s := range texts {
		if !blank(s) {
			return s
		}
	}
	return ""
}

func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
