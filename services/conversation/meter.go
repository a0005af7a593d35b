package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// meter measures for how long workers are busy with the active run, if its budget limits its time.
type meter struct {
	timed *Run   // nil: the time of no run counts
	clock string // that the time of the last event was read from; empty = none
}

// clocks measure for how long workers are busy with a run, by the times of the events in its log.
// The writers' clocks may differ by minutes, so each is compared with itself only: the first event
// of a clock during the run gets the latest time that is known.
type clocks struct {
	On     bool                     // some worker was busy at the last event
	Latest time.Time                // by the clock of the first
	Ahead  map[string]time.Duration // of each, of what it shows over that of the first
}

// tick adds the time that has passed by a clock to the run that workers are busy with.
func (m *meter) tick(at time.Time, clock string, last time.Time) {
	r := m.timed
	if r == nil {
		return
	}
	c := &r.Clocks
	if !r.busy() {
		c.On = false
		return
	}
	if !c.On {
		*c = clocks{On: true, Latest: last, Ahead: map[string]time.Duration{m.clock: 0}}
	}
	ahead, known := c.Ahead[clock]
	if !known {
		c.Ahead[clock] = at.Sub(c.Latest)
		return
	}
	if now := at.Add(-ahead); now.After(c.Latest) {
		r.Busy += now.Sub(c.Latest)
		c.Latest = now
	}
}

// clockOf names the clock by which the event's time was taken: that of the service that
// wrote it, and of a worker's that of the worker.
func (m *meter) clockOf(e event.Event, known jobs) string {
	if m.timed == nil || e.Source != workerSource {
		return e.Source
	}
	return clockOfWorker(e, known)
}

func clockOfWorker(e event.Event, known jobs) string {
	var d struct {
		RunID  string `json:"run_id"`
		Worker string `json:"worker"`
		event.Part
	}
	if eventdata.Into(e, &d) != nil {
		return e.Source
	}
	if d.Worker != "" {
		return e.Source + " " + d.Worker
	}
	if j := known[d.Job(d.RunID)]; j != nil {
		return e.Source + " " + j.Worker
	}
	return e.Source
}

// workerSource is the source in events of workers.
const workerSource = "waggle/worker"
