package participants

import (
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// callAfterlife is for how long a service may still say something about a call that
	// has ended: the SDK's last notification comes after the result.
	callAfterlife = time.Minute
	// callLife is how long a call without a deadline is remembered: longer than any tool
	// is let run.
	callLife = time.Hour
	// maxHeld bounds the tasks that one agent is counted to have.
	maxHeld = 4096
	// maxOver bounds the ended tasks that are remembered: agents report on a task for a
	// moment after its result.
	maxOver = 256
)

// work holds the calls of a provider or the tasks of an agent that were handed to a participant.
// Its bounds are maxHeld and the gateway's configuration.
type work struct {
	mu      sync.Mutex
	max     int
	calls   map[string]call
	tasks   map[string]uint64   // handed over on this connection: the turn of its last mention
	earlier map[string]uint64   // the same for tasks that an earlier connection was handed
	over    map[string]struct{} // no longer the agent's
	turn    uint64              // counts the mentions of tasks
}

// call is a call that a provider has, or has ended a moment ago.
type call struct {
	inbox string
	until time.Time // then the call is dropped from the map
	over  bool
	said  map[string]struct{} // the service's notifications about it, by request
}

func newWork(maxCalls int) *work {
	return &work{
		max: maxCalls, calls: map[string]call{}, tasks: map[string]uint64{}, earlier: map[string]uint64{}, over: map[string]struct{}{},
	}
}

// load returns the number of open calls and tasks of the participant.
func (w *work) load() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count()
}

func (w *work) count() int {
	n := len(w.tasks)
	for _, c := range w.calls {
		if !c.over {
			n++
		}
	}
	return n
}

// How a call stands that a service is to be handed.
type verdict int

const (
	full  verdict = iota // the service has as many as it may
	fresh                // it is new
	known                // the service has it already: its caller has asked again
)

// add remembers a call if it has room: calls that are over make room. The last caller that
// asked for it gets the news about it.
func (w *work) add(callID, inbox string, deadline, now time.Time) verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	if deadline.IsZero() {
		deadline = now.Add(callLife)
	}
	w.forget(now)
	c, had := w.calls[callID]
	v := fresh
	switch {
	case had && !c.over:
		v = known
	case w.count() >= w.max:
		return full
	case !had && len(w.calls) >= 2*w.max:
		w.forgetOldest()
	}
	w.calls[callID] = call{inbox: inbox, until: deadline.Add(callAfterlife)}
	return v
}

// drop takes back add.
func (w *work) drop(callID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, callID)
}

// inbox returns the subject for the updates about a service about a call. A service ends a call
// once.
func (w *work) inbox(callID string, final bool, now time.Time) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, known := w.calls[callID]
	switch {
	case !known:
		return "", fault.Newf(fault.TaskNotFound, "This connection has no such call. Answer a call on the connection that received it, before it times out.")
	case final && c.over:
		return "", fault.Newf(fault.TaskFinished, "This call already has a result.")
	case final:
		c.over, c.until = true, now.Add(callAfterlife)
		w.calls[callID] = c
	}
	return c.inbox, nil
}

// maxSaid bounds the notifications of one call that are known when they come again.
const maxSaid = 1024

// first reports whether a notification about a call has not come before.
func (w *work) first(callID, request string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, known := w.calls[callID]
	if request == "" || !known {
		return true
	}
	if _, again := c.said[request]; again {
		return false
	}
	if c.said == nil {
		c.said = map[string]struct{}{}
		w.calls[callID] = c
	}
	if len(c.said) < maxSaid {
		c.said[request] = struct{}{}
	}
	return true
}

// tidy forgets calls whose time has passed and reports whether that has changed the
// load.
func (w *work) tidy(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forget(now)
}

func (w *work) forget(now time.Time) (changed bool) {
	for k, c := range w.calls {
		if now.After(c.until) {
			delete(w.calls, k)
			changed = changed || !c.over
		}
	}
	return changed
}

// forgetOldest forgets the call that has been over for longest, if one is.
func (w *work) forgetOldest() {
	oldest := ""
	for k, c := range w.calls {
		if c.over && (oldest == "" || c.until.Before(w.calls[oldest].until)) {
			oldest = k
		}
	}
	delete(w.calls, oldest)
}

// end forgets everything and returns the inboxes of the calls that were not over, by
// call.
func (w *work) end() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	open := map[string]string{}
	for k, c := range w.calls {
		if !c.over {
			open[k] = c.inbox
		}
	}
	clear(w.calls)
	clear(w.tasks)
	clear(w.earlier)
	return open
}

// assign records that the agent has the task.
func (w *work) assign(task string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.over, task)
	delete(w.earlier, task)
	if len(w.tasks) < maxHeld {
		w.turn++
		w.tasks[task] = w.turn
	}
}

// said records a report of the agent about a task, which an earlier connection may have been
// handed.
func (w *work) said(task string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, over := w.over[task]
	if !over && !w.touch(task) && len(w.earlier) < maxHeld {
		w.earlier[task] = w.turn
	}
}

// heard records that the agent got a frame about a task, if it has that task.
func (w *work) heard(task string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touch(task)
}

func (w *work) touch(task string) (known bool) {
	w.turn++
	for _, tasks := range []map[string]uint64{w.tasks, w.earlier} {
		if _, known = tasks[task]; known {
			tasks[task] = w.turn
			return true
		}
	}
	return false
}

// latest returns the open task that either side mentioned last, empty if the agent has none.
func (w *work) latest() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, at := "", uint64(0)
	for _, tasks := range []map[string]uint64{w.tasks, w.earlier} {
		for task, turn := range tasks {
			if turn > at {
				found, at = task, turn
			}
		}
	}
	return found
}

// release records that the agent no longer has the task, and reports whether it had.
func (w *work) release(task string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, had := w.tasks[task]
	delete(w.tasks, task)
	delete(w.earlier, task)
	if len(w.over) >= maxOver {
		clear(w.over)
	}
	w.over[task] = struct{}{}
	return had
}

// onlyCall returns the one call that the service has, empty if it has none or several.
func (w *work) onlyCall() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	only := ""
	for k, c := range w.calls {
		switch {
		case c.over:
		case only != "":
			return ""
		default:
			only = k
		}
	}
	return only
}

// only returns the one task that the agent has, empty if it has none or several.
func (w *work) only() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tasks) != 1 {
		return ""
	}
	for task := range w.tasks {
		return task
	}
	return ""
}
