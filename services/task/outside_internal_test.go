package task

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// callWorld is the log of one call outside of any task, with all who ask for it and all
// workers.
type callWorld struct {
	idempotent bool
	log        []*eventlog.Entry
	jobs       []*callJob
	waiting    []uint64 // of each participant that waits: what it had seen of the log
	effects    int      // runs of the tool that may have had an effect
}

// callJob is a command that asks for the call.
type callJob struct {
	id       string
	seen     uint64    // of the call's log, by the participant that asks; outside of tasks
	restored time.Time // when the task's log was; within one
	running  bool
	done     bool // not in the queue any more
}

func (w *callWorld) fold() *outside {
	o := &outside{}
	for _, e := range w.log {
		_ = o.fold(e.Event)
	}
	return o
}

func (w *callWorld) append(t *rapid.T, j *callJob, what string, data event.Data) {
	require.False(t, w.fold().settled(), "nothing follows the outcome")
	w.log = append(w.log, entry(t, j.id+what, time.Time{}, uint64(len(w.log)+1), data))
}

func entry(t *rapid.T, eventID string, at time.Time, seq uint64, data event.Data) *eventlog.Entry {
	raw, err := json.Marshal(data)
	require.NoError(t, err)
	return &eventlog.Entry{Event: event.Event{ID: eventID, Type: data.EventType(), Time: at, Sequence: seq, Data: raw}}
}

// ask is a participant that asks, or asks again.
func (w *callWorld) ask(*rapid.T) {
	o, seen := w.fold(), uint64(len(w.log))
	if o.settled() {
		return // it is answered at once
	}
	w.waiting = append(w.waiting, seen)
	if !o.open() {
		w.jobs = append(w.jobs, &callJob{id: fmt.Sprint("job", len(w.jobs)), seen: seen})
	}
}

// pick returns a command in the queue whose tool is running or is not, nil if none is so.
func pick(t *rapid.T, jobs []*callJob, running bool) *callJob {
	var some []*callJob
	for _, j := range jobs {
		if !j.done && j.running == running {
			some = append(some, j)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return rapid.SampledFrom(some).Draw(t, "job")
}

// deliver hands a command to a worker, which may die before the tool begins.
func (w *callWorld) deliver(t *rapid.T) {
	j := pick(t, w.jobs, false)
	if j == nil {
		return
	}
	o := w.fold()
	again := o.open() && o.by == j.id
	if o.mayBegin(j.seen) {
		w.append(t, j, callBegun, event.CallStartedData{Idempotent: w.idempotent})
		o = w.fold()
	}
	switch {
	case !o.open() || o.by != j.id:
		j.done = true
	case again && !w.idempotent:
		w.end(t, j, string(fault.ServiceLost))
	case rapid.IntRange(0, 4).Draw(t, "dies") > 0:
		j.running = true
		w.effects++
	}
}

// finish ends a run: with an outcome, before it had any effect, or with its worker.
func (w *callWorld) finish(t *rapid.T) {
	j := pick(t, w.jobs, true)
	if j == nil {
		return
	}
	j.running = false
	switch rapid.IntRange(0, 2).Draw(t, "ends") {
	case 0:
		w.end(t, j, "")
	case 1:
		w.effects--
		w.end(t, j, string(fault.ServiceBusy))
	}
}

func (w *callWorld) end(t *rapid.T, j *callJob, code string) {
	if w.fold().mayEnd(j.id, j.seen) {
		w.append(t, j, callOver, event.CallFinishedData{Code: code})
	}
	j.done = true
}

// check holds whatever came before.
func (w *callWorld) check(t *rapid.T) {
	running := 0
	for _, j := range w.jobs {
		if j.running {
			running++
		}
	}
	require.LessOrEqual(t, running, 1, "one worker at a time runs the tool")
	require.True(t, w.idempotent || w.effects <= 1, "the tool has its effect once")
}

// TestAnyCallOutsideOfTasksKeepsItsPromises: however often a call is asked for, and whichever
// workers die, its tool has its effect once, and each who asks is answered.
func TestAnyCallOutsideOfTasksKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &callWorld{idempotent: rapid.Bool().Draw(t, "idempotent")}
		w.ask(t)
		t.Repeat(map[string]func(*rapid.T){
			"ask": w.ask, "deliver": w.deliver, "deliver2": w.deliver, "finish": w.finish, "": w.check,
		})
		for open := true; open; {
			open = false
			for _, j := range w.jobs {
				open = open || !j.done
			}
			w.deliver(t)
			w.finish(t)
			w.check(t)
		}
		for _, seen := range w.waiting {
			answered := false
			for _, e := range w.log {
				answered = answered || e.Type == event.CallFinished && e.Sequence > seen
			}
			require.True(t, answered, "who had seen %d of %d is answered", seen, len(w.log))
		}
	})
}
