package gateway

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
)

// work is what has been handed to a peer: the calls of a service, the tasks of an
// agent. Its bounds are maxHeld and the gateway's configuration.
type work struct {
	mu    sync.Mutex
	max   int
	calls map[string]call
	tasks map[string]struct{}
}

// call is one call that a service has, or had until a moment ago.
type call struct {
	inbox string
	until time.Time // forgotten then
	over  bool
}

func newWork(maxCalls int) *work {
	return &work{max: maxCalls, calls: map[string]call{}, tasks: map[string]struct{}{}}
}

// load returns how much the peer has to do.
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

// add remembers a call, unless there is no room for it: calls that are over make room.
// Whoever asked for it last is told about it.
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

// inbox returns where what a service says about a call goes. What is final can be
// said once.
func (w *work) inbox(callID string, final bool, now time.Time) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, known := w.calls[callID]
	switch {
	case !known:
		return "", fault.Newf(fault.TaskNotFound, "This connection has no such call. Answer a call on the connection that it came on, within its time.")
	case final && c.over:
		return "", fault.Newf(fault.TaskFinished, "This call has its result already.")
	case final:
		c.over, c.until = true, now.Add(callAfterlife)
		w.calls[callID] = c
	}
	return c.inbox, nil
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
	return open
}

// assign notes that the agent has the task.
func (w *work) assign(task string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tasks) < maxHeld {
		w.tasks[task] = struct{}{}
	}
}

// release notes that the agent does not have the task any more, and reports whether
// it had.
func (w *work) release(task string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, had := w.tasks[task]
	delete(w.tasks, task)
	return had
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
