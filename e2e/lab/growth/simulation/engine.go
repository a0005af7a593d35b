package simulation

import "time"

// event is something that happens at a time.
type event struct {
	at    time.Duration
	order uint64 // in which the events were planned
	do    func()
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// engine plays events in the order of their times, and those of one time in the order in which they were planned. Its heap holds
// values: container/heap would allocate each of the millions of events.
type engine struct {
	now     time.Duration
	planned uint64
	heap    []event
}

// after plans a function.
func (e *engine) after(d time.Duration, do func()) {
	e.planned++
	e.heap = append(e.heap, event{e.now + max(d, 0), e.planned, do})
	for at := len(e.heap) - 1; at > 0; {
		up := (at - 1) / 2
		if !e.heap[at].before(e.heap[up]) {
			return
		}
		e.heap[at], e.heap[up] = e.heap[up], e.heap[at]
		at = up
	}
}

// next removes the first event.
func (e *engine) next() event {
	first, last := e.heap[0], len(e.heap)-1
	e.heap[0] = e.heap[last]
	e.heap[last] = event{}
	e.heap = e.heap[:last]
	for at := 0; ; {
		least := at
		for down := 2*at + 1; down <= 2*at+2 && down < last; down++ {
			if e.heap[down].before(e.heap[least]) {
				least = down
			}
		}
		if least == at {
			return first
		}
		e.heap[at], e.heap[least] = e.heap[least], e.heap[at]
		at = least
	}
}

// run plays all events up to a time.
func (e *engine) run(until time.Duration) {
	for len(e.heap) > 0 && e.heap[0].at <= until {
		v := e.next()
		e.now = v.at
		v.do()
	}
	e.now = max(e.now, until)
}
