package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// bars folds what took a time.
type bars struct {
	all   []wire.SnapshotBar
	open  map[string]int // places by id
	until int64
}

func (b *bars) fork() *bars {
	return &bars{all: slices.Clone(b.all), open: maps.Clone(b.open), until: b.until}
}

func (b *bars) snapshot() []wire.SnapshotBar { return filled(b.all) }

// see keeps the time of the newest event.
func (b *bars) see(e event.Event) { b.until = max(b.until, e.Time.UnixMilli()) }

func (b *bars) take(e event.Event, d fields) {
	if f := barTakers[e.Type]; f != nil {
		f(b, e, d)
	}
}

func (b *bars) opens(e event.Event, d fields, kind, key, name, state string) {
	name1 := kind + " " + key
	b.shut(e, name1, stateFailed, "")
	if b.open == nil {
		b.open = map[string]int{}
	}
	b.open[name1] = len(b.all)
	b.all = append(b.all, wire.SnapshotBar{ID: name1, Kind: kind, Run: d.RunID, Name: name, From: e.Time.UnixMilli(), State: state, Seq: e.Sequence, Job: d.JobID})
}

func (b *bars) ends(e event.Event, d fields, kind, key, state string) {
	b.shut(e, kind+" "+key, state, d.Code)
}

// shut ends a bar with an event. Of one that has failed it keeps the code of the failure.
func (b *bars) shut(e event.Event, name, state, code string) {
	n, is := b.open[name]
	if !is {
		return
	}
	b.all[n].To, b.all[n].State, b.all[n].End = ptr(max(e.Time.UnixMilli(), b.all[n].From)), state, e.Sequence
	if state == stateFailed {
		b.all[n].Reason = code
	}
	delete(b.open, name)
}

// over ends all that still belongs to a run.
func (b *bars) over(e event.Event, d fields) {
	for name, n := range b.open {
		if b.all[n].Run == d.RunID {
			code := ""
			if b.all[n].Kind == barRun {
				code = d.Code
			}
			b.shut(e, name, last(e), code)
		}
	}
}

// last is the last word of the type of an event.
func last(e event.Event) string { return string(e.Type[strings.LastIndexByte(string(e.Type), '.')+1:]) }

func jobOver(b *bars, e event.Event, d fields) {
	state := stateFailed
	if last(e) == stateCompleted {
		state = stateCompleted
	}
	b.ends(e, d, barJob, d.JobID, state)
}

func stepOver(b *bars, e event.Event, d fields) {
	jobOver(b, e, d)
	b.ends(e, d, barStep, d.RunID+"/"+d.StepID, last(e))
}

func toolOver(b *bars, e event.Event, d fields) { b.ends(e, d, barTool, d.CallID, last(e)) }

// requestOver: the call of the model has failed, although its message was discarded, and the next one waits.
func requestOver(b *bars, e event.Event, d fields) {
	b.ends(e, d, barModel, d.MessageID, stateFailed)
	b.callFailed(func(one wire.SnapshotBar) bool { return one.ID == barModel+" "+d.MessageID }, d.Code)
	b.opens(e, d, barPause, modelOf(d), d.Code, stateWaiting)
}

// lastCallOver: the last call of the model for what fails because of the model has failed, although its message was discarded.
func (b *bars) lastCallOver(e event.Event, d fields) {
	if !strings.HasPrefix(d.Code, "MODEL_") {
		return
	}
	of := func(one wire.SnapshotBar) bool {
		return one.Kind == barModel && one.Run == d.RunID && one.Job == d.JobID
	}
	if i := b.callFailed(of, d.Code); i >= 0 {
		b.shut(e, b.all[i].ID, stateFailed, d.Code)
	}
}

// callFailed marks the newest bar that fits as failed unless it has completed, and returns its place.
func (b *bars) callFailed(fits func(wire.SnapshotBar) bool, code string) int {
	for i, one := range slices.Backward(b.all) {
		if !fits(one) {
			continue
		}
		if one.State == stateCompleted {
			break
		}
		b.all[i].State, b.all[i].Reason = stateFailed, code
		return i
	}
	return -1
}

// modelOf names the pauses between the calls of a model for a piece of work.
func modelOf(d fields) string { return "model " + d.RunID + "/" + d.JobID }

// barTakers hold the effect of each type of event on the bars of a conversation.
var barTakers = map[event.Type]func(*bars, event.Event, fields){
	event.MessageReceived: func(b *bars, e event.Event, d fields) { b.opens(e, d, barQueue, d.RunID, "", stateWaiting) },
	event.RunStarted: func(b *bars, e event.Event, d fields) {
		b.ends(e, d, barQueue, d.RunID, stateCompleted)
		b.opens(e, d, barRun, d.RunID, "", stateRunning)
	},
	event.RunCompleted: (*bars).over,
	event.RunFailed: func(b *bars, e event.Event, d fields) {
		b.lastCallOver(e, d)
		b.over(e, d)
	},
	event.RunCancelled: (*bars).over,
	event.JobStarted: func(b *bars, e event.Event, d fields) {
		b.ends(e, d, barPause, d.JobID, stateCompleted)
		b.opens(e, d, barJob, d.JobID, cmp.Or(d.Stage, "answer")+" "+textOf(d.Attempt), stateRunning)
	},
	event.PlanCompleted:      jobOver,
	event.AggregateCompleted: jobOver,
	event.JobFailed: func(b *bars, e event.Event, d fields) {
		b.lastCallOver(e, d)
		jobOver(b, e, d)
	},
	event.JobSuspended:   func(b *bars, e event.Event, d fields) { b.ends(e, d, barJob, d.JobID, stateCompleted) },
	event.RetryScheduled: func(b *bars, e event.Event, d fields) { b.opens(e, d, barPause, d.JobID, d.Code, stateWaiting) },
	event.MessageStarted: func(b *bars, e event.Event, d fields) {
		b.ends(e, d, barPause, modelOf(d), stateCompleted)
		b.opens(e, d, barModel, d.MessageID, d.Model, stateRunning)
	},
	event.MessageCompleted: func(b *bars, e event.Event, d fields) { b.ends(e, d, barModel, d.MessageID, stateCompleted) },
	event.MessageDiscarded: func(b *bars, e event.Event, d fields) { b.ends(e, d, barModel, d.MessageID, stateCancelled) },
	event.RequestFailed:    requestOver,
	event.ToolCalled:       func(b *bars, e event.Event, d fields) { b.opens(e, d, barTool, d.CallID, d.Tool, stateRunning) },
	event.ToolCompleted:    toolOver,
	event.ToolFailed:       toolOver,
	event.ToolUnknown:      toolOver,
	event.InputRequested: func(b *bars, e event.Event, d fields) {
		b.opens(e, d, barPeople, d.InputID, cmp.Or(d.Tool, d.Scope), stateWaiting)
	},
	event.InputAnswered: func(b *bars, e event.Event, d fields) {
		state := stateCompleted
		if d.Decision == event.DecisionReject {
			state = stateCancelled
		}
		b.ends(e, d, barPeople, d.InputID, state)
	},
	event.InputExpired: func(b *bars, e event.Event, d fields) { b.ends(e, d, barPeople, d.InputID, stateFailed) },
	event.StepStarted: func(b *bars, e event.Event, d fields) {
		b.opens(e, d, barStep, d.RunID+"/"+d.Step.ID, d.Step.Title, stateRunning)
	},
	event.StepCompleted: stepOver,
	event.StepFailed:    stepOver,
	event.StepCancelled: stepOver,
}
