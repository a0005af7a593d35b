package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/signature"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
)

const (
	// sendPause is between two tries to send a command; each has its own timeout.
	sendPause = time.Second
	// firstMessage is the id of the message that the task becomes.
	firstMessage = "task"
	// dialect names the opener of a session in its log.
	dialect = "swarm"
	// source is the agent in its commands.
	source = "waggle/assistant"
)

// job is one attempt at a task.
type job struct {
	a       *Agent
	log     subject.Log // of the task
	session subject.Log
	task    event.TaskAssignedData
	life    context.Context //nolint:containedctx // of the job
	end     context.CancelFunc
	wake    chan struct{}

	mu       sync.Mutex
	state    conversation.State
	failures map[string]event.RunFailedData // by run
	refused  map[string]event.MessageRefusedData
	notes    []note
	mail     []event.TaskMessagedData // as told, the first of them told to the model already
	over     bool                     // the task has ended: the run is no longer needed
	broken   error                    // why the session's log makes no sense
	lost     error                    // the session's log cannot be read
}

// note is a notification of the client. A repeat has the same id.
type note struct {
	id   string
	text string
	data any
}

// SessionOf returns the session in which a task is done. Its id derives from the task's log, so
// that it needs no storage.
func SessionOf(task subject.Log) subject.Log {
	return subject.Log{Tenant: task.Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal(signature.AssistantSessions + task.Entity.String())}
}

func (a *Agent) newJob(log subject.Log, d event.TaskAssignedData) (*job, error) {
	if d.TaskID == "" || log.Kind != id.KindTask || d.AgentID != a.id {
		return nil, fmt.Errorf("the assignment of %s to %q is not for %s", log, d.AgentID, a.id)
	}
	j := &job{
		a: a, log: log, session: SessionOf(log), task: d, wake: make(chan struct{}, 1),
		failures: map[string]event.RunFailedData{}, refused: map[string]event.MessageRefusedData{},
	}
	j.state.Keep(-1) // the answers to all messages of the task count
	j.life, j.end = context.WithCancel(a.life)
	return j, nil
}

// run does the task. It returns when the task service has the result, or when this agent no
// longer holds the task.
func (j *job) run() {
	if !j.tell("begun", cmd.ReportTask, cmd.TaskReport{TaskID: j.task.TaskID, AgentID: j.a.id, Attempt: j.task.Attempt, Status: "started"}) {
		return
	}
	if !j.say(cmd.Session, cmd.Open, "task.open", cmd.OpenSession{Dialect: dialect, Owner: j.task.Owner}) {
		return
	}
	if err := j.load(&j.task); err != nil {
		j.tell("result", cmd.FinishTask, j.failure(fault.From(err, "")))
		j.close("the task has no data")
		return
	}
	v := j.a.deps.Log.Watch(j.session, eventlog.Cursor{}, j)
	defer v.Close()
	for said := 0; ; {
		select {
		case <-j.life.Done():
			return
		case <-j.wake:
		}
		j.read()
		if !j.notify() {
			return
		}
		over, end, waiting := j.look(said)
		switch {
		case j.gone():
			return
		case over:
			j.close("the task is over")
			return
		case end != nil:
			if j.notify() && j.tell("result", cmd.FinishTask, j.stored(end)) { // notes may have come with the end
				j.close("the task is done")
			}
			return
		}
		for _, m := range waiting {
			if !j.say(cmd.Pipeline, cmd.SendMessage, m.id, cmd.UserMessage{Content: m.content, RunSpec: event.RunSpec{OnBusy: event.OnBusyEnqueue}}) {
				return
			}
			said++
			j.poke() // it may have been answered already
		}
	}
}

// gone hands the task back if its session cannot be read, and reports whether it was so.
func (j *job) gone() bool {
	j.mu.Lock()
	err := j.lost
	j.mu.Unlock()
	if err == nil {
		return false
	}
	j.a.deps.Logger.Warn().Err(err).Str("task", j.task.TaskID).Msg("task released: session unreadable")
	j.tell("gone", cmd.ReleaseTask, cmd.AgentGone{TaskID: j.task.TaskID, AgentID: j.a.id, Attempt: j.task.Attempt, Reason: "agent_left"})
	return true
}

// load replaces a reference to stored data by the data. It fails if the data is lost.
func (j *job) load(data event.Large) error {
	return j.insist("load stored data", func() error { return j.a.payloads.Fill(j.life, j.log.Tenant, data) })
}

// stored returns a result whose large data is stored as an object.
func (j *job) stored(end *cmd.TaskResult) *cmd.TaskResult {
	err := j.insist("store result", func() error {
		_, err := j.a.payloads.Shrink(j.life, j.log, end)
		return err
	})
	if err != nil {
		return j.failure(fault.From(err, ""))
	}
	return end
}

// insist repeats do until it succeeds, and fails on a permanent error.
func (j *job) insist(what string, do func() error) error {
	for j.life.Err() == nil {
		err := do()
		if err == nil {
			break
		}
		log := j.a.deps.Logger.Warn().Err(err).Str("task", j.task.TaskID).Str("action", what)
		if !fault.From(err, "").Retryable() {
			log.Msg("action failed")
			return err
		}
		log.Msg("action will be retried")
		select {
		case <-j.life.Done():
		case <-time.After(sendPause):
		}
	}
	return nil
}

// read loads messages of the client that are stored as objects. For a lost one the model gets a
// note instead.
func (j *job) read() {
	j.mu.Lock()
	stored := slices.Clone(j.mail)
	j.mu.Unlock()
	for i := range stored {
		if stored[i].MessageRef == nil {
			continue
		}
		if err := j.load(&stored[i]); err != nil {
			stored[i].Message, stored[i].MessageRef = encode(fault.From(err, "").Public()), nil
		}
		j.mu.Lock()
		j.mail[i] = stored[i]
		j.mu.Unlock()
	}
}

// message is a message to the model.
type message struct{ id, content string }

// look returns the next step: whether the task has ended, its result, and the messages to send
// next.
func (j *job) look(said int) (over bool, end *cmd.TaskResult, waiting []message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.over:
		return true, nil, nil
	case j.broken != nil:
		return false, j.failure(fault.From(j.broken, "")), nil
	case j.state.Deleted:
		return false, j.failure(fault.New(fault.SessionDeleted)), nil
	case j.state.Created.IsZero():
		return false, nil, nil
	}
	all := []message{{firstMessage, prompt(j.task)}}
	for _, m := range j.mail {
		if m.MessageRef != nil {
			break // it came just now, and is read first
		}
		all = append(all, message{m.MessageID, mail(m)})
	}
	if !j.state.Closed && said < len(all) {
		return false, nil, all[said:]
	}
	return false, j.ended(all), nil
}

// ended returns how the task has ended, nil if it has not: the answer to the last of
// the messages counts, and all have to have theirs.
func (j *job) ended(all []message) *cmd.TaskResult {
	var last *cmd.TaskResult
	for _, m := range all {
		if r, ok := j.refused[m.id]; ok {
			last = j.failure(fault.Newf(fault.Code(r.Code), "%s", r.Message))
			continue
		}
		run := j.state.Run(conversation.RunID(m.id))
		switch {
		case run == nil && j.state.Closed:
			return j.failure(fault.New(fault.SessionClosed))
		case run == nil || !run.Status.Terminal():
			return nil
		case run.Status == conversation.Completed:
			last = &cmd.TaskResult{TaskID: j.task.TaskID, AgentID: j.a.id, Result: encode(map[string]string{"text": run.Answer})}
		case run.Status == conversation.Failed:
			f := j.failures[run.ID]
			last = &cmd.TaskResult{TaskID: j.task.TaskID, AgentID: j.a.id, Failed: true, Code: f.Code, Error: f.Message}
		default:
			last = j.failure(fault.New(fault.RunCancelled))
		}
	}
	return last
}

func (j *job) failure(f *fault.Fault) *cmd.TaskResult {
	return &cmd.TaskResult{TaskID: j.task.TaskID, AgentID: j.a.id, Failed: true, Code: string(f.Code), Error: f.Public()}
}

// post queues a message of the client to the agent. It drops a repeat.
func (j *job) post(m event.TaskMessagedData) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, old := range j.mail {
		if old.MessageID == m.MessageID {
			return
		}
	}
	j.mail = append(j.mail, m)
	j.poke()
}

// dismiss ends the job. It stops the run of an ended task; otherwise the next holder of the task
// continues the run.
func (j *job) dismiss(over bool) {
	if !over {
		j.end()
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	j.poke()
}

// poke has the job looked at. It does not block.
func (j *job) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// close ends the session, and with it whatever is still on in it.
func (j *job) close(reason string) {
	j.say(cmd.Session, cmd.Close, "task.close", cmd.CloseSession{Reason: reason})
}

// notify sends new notes to the client and reports whether the job continues.
func (j *job) notify() bool {
	j.mu.Lock()
	notes := j.notes
	j.notes = nil
	j.mu.Unlock()
	for _, n := range notes {
		ok := j.tell(n.id, cmd.NotifyTask, cmd.TaskNotification{
			TaskID: j.task.TaskID, AgentID: j.a.id, NotificationType: "progress", Level: "info", Message: encode(n.text), Data: encode(n.data),
		})
		if !ok {
			return false
		}
	}
	return true
}

// tell sends a command to the task and reports whether the job continues.
func (j *job) tell(name string, verb id.Name, data any) bool {
	return j.send(cmd.Command{ID: fmt.Sprintf("%s.%d.%s", j.a.self, j.task.Attempt, name), Service: cmd.Task, Verb: verb, Key: j.log.Entity}, data)
}

// say sends a command to the session and reports whether the job continues.
func (j *job) say(service, verb id.Name, commandID string, data any) bool {
	return j.send(cmd.Command{ID: commandID, Service: service, Verb: verb, Key: j.session.Entity}, data)
}

// send sends a command, with repeats, and reports whether the job continues. It skips a command
// that can never be sent.
func (j *job) send(c cmd.Command, data any) bool {
	c.Tenant, c.Source, c.Data = j.log.Tenant, source, encode(data)
	for {
		err := j.a.deps.Commands.Send(j.life, c)
		if err == nil {
			return true
		}
		if j.life.Err() != nil {
			return false
		}
		log := j.a.deps.Logger.Warn().Err(err).Str("task", j.task.TaskID)
		if f := fault.From(err, ""); !f.Retryable() {
			log.Msg("command rejected; not retried")
			return true
		}
		log.Msg("command will be retried")
		select {
		case <-j.life.Done():
			return false
		case <-time.After(sendPause):
		}
	}
}

// Deliver implements eventlog.Sink.
func (j *job) Deliver(batch []*eventlog.Entry) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range batch {
		if j.broken == nil {
			j.broken = j.fold(e.Event)
		}
	}
	j.poke()
	return len(batch)
}

func (j *job) fold(e event.Event) error {
	switch e.Type {
	case event.RunFailed:
		d, err := event.As[event.RunFailedData](e)
		if err != nil {
			return err
		}
		j.failures[d.RunID] = d
	case event.MessageRefused:
		d, err := event.As[event.MessageRefusedData](e)
		if err != nil {
			return err
		}
		j.refused[d.MessageID] = d
	case event.RequestFailed:
		d, err := event.As[event.RequestFailedData](e)
		if err != nil {
			return err
		}
		j.notes = append(j.notes, note{"note." + e.ID, d.Text(), map[string]string{
			"code": d.Code, "retry_after_ms": strconv.FormatInt(d.RetryAfterMS, 10),
		}})
	case event.InputRequested:
		d, err := event.As[event.InputRequestedData](e)
		if err != nil {
			return err
		}
		j.notes = append(j.notes, j.question(e.ID, d))
	case event.ToolCalled:
		d, err := event.As[event.ToolCalledData](e)
		if err != nil {
			return err
		}
		j.notes = append(j.notes, note{"note." + e.ID, "Uses the tool " + d.Tool, map[string]string{"tool": d.Tool, "call_id": d.CallID}})
	}
	return j.state.Apply(e)
}

// question tells the client that the run waits for people, and where they answer: the question is not the task's, so that
// the gateway signs the answer for the call that was shown.
func (j *job) question(eventID string, d event.InputRequestedData) note {
	watch := "session/" + j.session.Entity.String()
	text := d.Summary
	if d.Scope == event.ScopeTool {
		text = "May the tool " + d.Tool + " be called?"
	}
	return note{"note." + eventID, text + " Watch " + watch + " and answer there.", map[string]string{
		"watch": watch, "input_id": d.InputID, "tool": d.Tool, "call_id": d.CallID, "arguments": string(d.Arguments),
	}}
}

// Truncated implements eventlog.Sink. A session of which the beginning has expired
// cannot be understood.
func (j *job) Truncated(uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = fault.New(fault.HeadExpired)
	j.poke()
}

// CaughtUp implements eventlog.Sink.
func (j *job) CaughtUp(uint64) {}

// Failed implements eventlog.Sink. It releases the task to an instance that can read the session.
func (j *job) Failed(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lost = err
	j.poke()
}

// encode returns the JSON form of data, which always has one: its raw members were
// valid when they arrived.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return raw
}
