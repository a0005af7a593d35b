package snapshot

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// mostNotes bounds the newest notifications.
	mostNotes = 50
	// mostOfName is the part of a question, in UTF-16 units, that names its bar.
	mostOfName = 40
)

// task folds the log of a task. The lists of a state do not change any more: an event replaces them.
type task struct {
	state wire.SnapshotTask
	bars  *bars
}

func newTask(b *bars) *task {
	return &task{bars: b, state: wire.SnapshotTask{
		Attempts: []wire.SnapshotAttempt{}, Calls: []wire.SnapshotTaskCall{}, Children: []wire.SnapshotChild{},
		Questions: []wire.SnapshotAsking{}, Notes: []wire.SnapshotNote{},
	}}
}

func (t *task) fork(b *bars) *task { return &task{state: t.state, bars: b} }

func (t *task) take(e event.Event) {
	if f := taskTakers[e.Type]; f != nil {
		f(t, e)
	}
}

func (t *task) begin(e event.Event, name, kind, title, state string) {
	t.bars.all = append(t.bars.all, wire.SnapshotBar{ID: name, Kind: kind, Name: title, From: e.Time.UnixMilli(), State: state, Seq: e.Sequence})
}

// end ends the bars with the id, or whose id begins with the word.
func (t *task) end(e event.Event, name, state string) {
	for i := range t.bars.all {
		if b := &t.bars.all[i]; b.To == nil && (b.ID == name || strings.HasPrefix(b.ID, name+" ")) {
			b.To, b.State, b.End = ptr(e.Time.UnixMilli()), state, e.Sequence
		}
	}
}

func stamp(e event.Event) string { return e.Time.Format(time.RFC3339Nano) }

// ended is the state of the bar of what ended with a status.
func ended(status string) string {
	switch status {
	case stateCompleted, stateCancelled:
		return status
	}
	return stateFailed
}

// on makes the effect of an event with data of one type.
func on[T event.Data](f func(*task, event.Event, T)) func(*task, event.Event) {
	return func(t *task, e event.Event) {
		if d, err := event.As[T](e); err == nil {
			f(t, e, d)
		}
	}
}

// taskTakers hold the effect of each type of event on a task.
var taskTakers = map[event.Type]func(*task, event.Event){
	event.TaskCreated:    on((*task).created),
	event.TaskQueued:     on((*task).queued),
	event.TaskAssigned:   on((*task).assigned),
	event.TaskReported:   on((*task).reported),
	event.TaskReleased:   on((*task).released),
	event.TaskRefused:    on((*task).refused),
	event.TaskFinished:   on((*task).finished),
	event.TaskAsked:      on((*task).asked),
	event.TaskMessaged:   on((*task).messaged),
	event.TaskAskExpired: on((*task).expired),
	event.CallStarted:    on((*task).callStarted),
	event.CallFinished:   on((*task).callFinished),
	event.ChildCreated:   on((*task).childCreated),
	event.ChildFinished:  on((*task).childFinished),
	event.TaskNotified:   on((*task).notified),
}

func (t *task) created(e event.Event, d event.TaskCreatedData) {
	t.begin(e, "task", barStep, "task", stateRunning)
	s := &t.state
	s.Type, s.Wanted, s.Input, s.RetryOf, s.Parent = d.TaskType, cmp.Or(d.WantedName, d.WantedID, strings.Join(d.Capabilities, ", ")), canonical(d.Data), d.RetryOf, d.ParentID
	s.Session, s.Kind, s.Status, s.Principal, s.Created = d.Session, cmp.Or(d.Kind, string(id.KindSession)), "created", d.Principal, stamp(e)
}

func (t *task) queued(e event.Event, d event.TaskQueuedData) {
	t.begin(e, "queue "+strconv.FormatUint(e.Sequence, 10), barQueue, "", stateWaiting)
	t.state.Status, t.state.Queued = "queued", d.Reason
}

func (t *task) assigned(e event.Event, d event.TaskAssignedData) {
	t.end(e, "queue", stateCompleted)
	agent, n := cmp.Or(d.AgentName, d.AgentID), strconv.Itoa(d.Attempt)
	t.begin(e, "attempt "+n, barJob, strings.ReplaceAll(agent, " ", "\u00a0")+" "+n, stateRunning)
	t.state.Status, t.state.Queued = stateRunning, ""
	t.state.Attempts = append(slices.Clip(t.state.Attempts), wire.SnapshotAttempt{N: d.Attempt, Agent: agent, From: stamp(e), Seq: e.Sequence})
}

// attempts changes the attempts that fit.
func (t *task) attempts(fits func(wire.SnapshotAttempt) bool, change func(*wire.SnapshotAttempt)) {
	t.state.Attempts = each(t.state.Attempts, fits, change)
}

// each returns a copy of a list in which those that fit are changed.
func each[T any](list []T, fits func(T) bool, change func(*T)) []T {
	out := filled(list)
	for i := range out {
		if fits(out[i]) {
			change(&out[i])
		}
	}
	return out
}

func number(n int) func(wire.SnapshotAttempt) bool {
	return func(a wire.SnapshotAttempt) bool { return a.N == n }
}

func (t *task) reported(_ event.Event, d event.TaskReportedData) {
	t.attempts(number(d.Attempt), func(a *wire.SnapshotAttempt) { a.Says = d.Status })
}

func (t *task) refused(_ event.Event, d event.TaskRefusedData) {
	t.attempts(func(a wire.SnapshotAttempt) bool { return a.Agent == d.By || a.N == d.Attempt }, func(a *wire.SnapshotAttempt) { a.Refused++ })
}

func (t *task) released(e event.Event, d event.TaskReleasedData) {
	t.end(e, "attempt "+strconv.Itoa(d.Attempt), stateFailed)
	t.state.Status = "queued"
	t.attempts(number(d.Attempt), func(a *wire.SnapshotAttempt) { a.To, a.End, a.Lost = stamp(e), d.Reason, true })
}

func (t *task) finished(e event.Event, d event.TaskFinishedData) {
	for i := range t.bars.all {
		b := &t.bars.all[i]
		if b.To != nil {
			continue
		}
		b.To, b.State, b.End = ptr(e.Time.UnixMilli()), ended(d.Status), e.Sequence
		if b.Kind == barPeople || b.Kind == barQueue {
			b.State = stateCancelled
		}
	}
	s := &t.state
	s.Status, s.Result, s.Code, s.Error, s.Ended, s.Queued = d.Status, canonical(d.Result), d.Code, d.Error, stamp(e), ""
	t.attempts(func(a wire.SnapshotAttempt) bool { return a.To == "" }, func(a *wire.SnapshotAttempt) { a.To, a.End = stamp(e), d.Status })
}

func (t *task) asked(e event.Event, d event.TaskAskedData) {
	name, _ := cut(textOf(d.Message), mostOfName)
	t.begin(e, "ask "+d.InputID, barPeople, name, stateWaiting)
	t.state.Status = "waiting_input"
	t.state.Questions = append(slices.Clip(t.state.Questions), wire.SnapshotAsking{ID: d.InputID, Message: canonical(d.Message), State: stateWaiting, Seq: e.Sequence})
}

func (t *task) settle(input string, change func(*wire.SnapshotAsking)) {
	t.state.Status = stateRunning
	t.state.Questions = each(t.state.Questions, func(q wire.SnapshotAsking) bool { return q.ID == input && q.State == stateWaiting }, change)
}

func (t *task) messaged(e event.Event, d event.TaskMessagedData) {
	if d.InputID == "" {
		return
	}
	t.end(e, "ask "+d.InputID, stateCompleted)
	t.settle(d.InputID, func(q *wire.SnapshotAsking) { q.State, q.Answer, q.By = "answered", canonical(d.Message), d.From })
}

func (t *task) expired(e event.Event, d event.TaskAskExpiredData) {
	t.end(e, "ask "+d.InputID, stateCancelled)
	t.settle(d.InputID, func(q *wire.SnapshotAsking) { q.State = "expired" })
}

func (t *task) callStarted(e event.Event, d event.CallStartedData) {
	t.begin(e, "call "+d.CallID, barTool, d.Tool, stateRunning)
	t.state.Calls = append(slices.Clip(t.state.Calls), wire.SnapshotTaskCall{
		ID: d.CallID, Tool: d.Tool, Provider: cmp.Or(d.ServerName, d.Server), Status: stateRunning, Seq: e.Sequence,
	})
}

func (t *task) callFinished(e event.Event, d event.CallFinishedData) {
	status := map[string]string{"success": stateCompleted, "unknown": stateUnknown}[d.Status]
	status = cmp.Or(status, stateFailed)
	t.end(e, "call "+d.CallID, status)
	t.state.Calls = each(t.state.Calls, func(c wire.SnapshotTaskCall) bool { return c.ID == d.CallID }, func(c *wire.SnapshotTaskCall) {
		c.Status, c.Error, c.MS = status, d.Error, ptr(d.DurationMS)
	})
}

func (t *task) childCreated(e event.Event, d event.ChildCreatedData) {
	one := wire.SnapshotChild{ID: d.ChildID, Agent: cmp.Or(d.ChildAgentName, d.ChildAgentID), Type: d.TaskType, Status: stateRunning, Seq: e.Sequence}
	t.begin(e, "child "+d.ChildID, barStep, cmp.Or(one.Agent, one.ID), stateRunning)
	others := slices.DeleteFunc(filled(t.state.Children), func(c wire.SnapshotChild) bool { return c.ID == d.ChildID })
	t.state.Children = append(others, one)
}

func (t *task) childFinished(e event.Event, d event.ChildFinishedData) {
	t.end(e, "child "+d.ChildID, ended(d.Status))
	t.state.Children = each(t.state.Children, func(c wire.SnapshotChild) bool { return c.ID == d.ChildID }, func(c *wire.SnapshotChild) { c.Status = d.Status })
}

func (t *task) notified(e event.Event, d event.TaskNotifiedData) {
	text := textOf(d.Message)
	if text == "" {
		text = textOf(d.Data)
	}
	notes := append(slices.Clip(t.state.Notes), wire.SnapshotNote{At: stamp(e), Text: text, Seq: e.Sequence})
	t.state.Notes = notes[max(0, len(notes)-mostNotes):]
}
