package task

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// claimWorld is the log of one call within a task, with all commands for it and all workers.
type claimWorld struct {
	idempotent bool
	now        time.Time
	log        []*eventlog.Entry
	jobs       []*callJob
	effects    int  // runs of the tool that may have had an effect
	ended      bool // the task has an outcome
	restored   bool
}

func (w *claimWorld) fold() *outside {
	o := &outside{task: "t"}
	for _, e := range w.log {
		_ = o.fold(e.Event)
	}
	return o
}

// queue is a process that takes the task over.
func (w *claimWorld) queue(*rapid.T) { w.queueAfter(time.Time{}) }

func (w *claimWorld) queueAfter(restored time.Time) {
	if !w.ended {
		w.jobs = append(w.jobs, &callJob{id: fmt.Sprint("job", len(w.jobs)), restored: restored})
	}
}

// restore begins anew with what a backup has, which may lack commands. No worker survives.
func (w *claimWorld) restore(t *rapid.T) {
	w.now, w.restored = w.now.Add(time.Second), true
	for _, j := range w.jobs {
		j.running = false
		j.done = j.done || rapid.Bool().Draw(t, "lost")
	}
	w.queueAfter(w.now)
}

// deliver hands a command to a worker, which may die before the tool begins.
func (w *claimWorld) deliver(t *rapid.T) {
	j := pick(t, w.jobs, false)
	if j == nil {
		return
	}
	w.now = w.now.Add(time.Second)
	again := w.fold().by != ""
	if w.fold().mayClaim(j.id, j.restored) {
		w.log = append(w.log, entry(t, j.id+callBegun, w.now, uint64(len(w.log)+1), event.CallStartedData{
			TaskHead: event.TaskHead{TaskID: "t"}, Idempotent: w.idempotent,
		}))
	}
	switch {
	case w.fold().by != j.id:
		j.done = true
	case again && !w.idempotent:
		w.ended, j.done = true, true
	case rapid.IntRange(0, 4).Draw(t, "dies") > 0:
		j.running = true
		w.effects++
	}
}

// finish ends a run, with an outcome or with its worker.
func (w *claimWorld) finish(t *rapid.T) {
	if j := pick(t, w.jobs, true); j != nil {
		j.running = false
		if rapid.Bool().Draw(t, "ends") {
			w.ended, j.done = true, true
		}
	}
}

// outsider asks for a call outside of tasks under the same id.
func (w *claimWorld) outsider(t *rapid.T) {
	data := event.Data(event.CallStartedData{})
	if rapid.Bool().Draw(t, "over") {
		data = event.CallFinishedData{}
	}
	w.log = append(w.log, entry(t, "outsider"+callBegun, w.now, uint64(len(w.log)+1), data))
}

func (w *claimWorld) check(t *rapid.T) {
	running := 0
	for _, j := range w.jobs {
		if j.running {
			running++
		}
	}
	require.True(t, running <= 1 || w.idempotent && w.restored, "one worker at a time runs the tool")
	require.True(t, w.idempotent || w.effects <= 1, "the tool has its effect once")
}

// TestAnyCallWithinATaskKeepsItsPromises: however often a call is queued, whichever workers
// die, and whatever a backup lacks, its tool has its effect once, and its task learns of it.
func TestAnyCallWithinATaskKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &claimWorld{idempotent: rapid.Bool().Draw(t, "idempotent"), now: time.Unix(1_800_000_000, 0)}
		w.queue(t)
		t.Repeat(map[string]func(*rapid.T){
			"queue": w.queue, "deliver": w.deliver, "deliver2": w.deliver, "finish": w.finish, "restore": w.restore,
			"outsider": w.outsider, "": w.check,
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
		require.True(t, w.ended, "the task has an outcome")
	})
}
