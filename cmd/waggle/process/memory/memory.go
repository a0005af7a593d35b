// Package memory paces the garbage collection of a process with an embedded bus, and returns memory to the system when work ends.
package memory

import (
	"runtime"
	"runtime/debug"
	"time"
)

const (
	// memoryLook is the interval between two looks at the allocations.
	memoryLook = 15 * time.Second
	// calm is the most that a process without work allocates between two looks, and busy the least that makes a return
	// worthwhile: it takes two collections, of some 20 ms each.
	calm, busy = 32 << 20, 256 << 20
)

// Thrifty makes the process collect earlier, unless the environment says how. The process returns memory to the system when
// the work that needed it is over: the runtime alone would wait for its next collection, which work triggers.
func Thrifty(getenv func(string) string) (stop func()) {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(frugal)
	pace := &pacer{set: debug.SetGCPercent, percent: frugal}
	pace.afterEach()
	tick := time.NewTicker(memoryLook)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r := returner{give: release}
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				r.look(allocated())
			}
		}
	}()
	return func() {
		tick.Stop()
		close(done)
		<-ended
		pace.stop(before)
	}
}

// release returns free memory to the system. Buffers in pools, which the server uses for its blocks, outlive one collection.
func release() {
	runtime.GC()
	debug.FreeOSMemory()
}

// secondAfter is the number of looks between the two returns after a spell of work: caches of the server and of viewers keep
// their memory for some ten seconds after their last use.
const secondAfter = 3

// returner returns memory twice after each spell of work.
type returner struct {
	give   func()
	last   uint64 // allocated bytes at the last look
	given  uint64 // and at the last return
	second int    // looks until the second return; 0: none is due
}

func (r *returner) look(now uint64) {
	first := now-r.last <= calm && now-r.given >= busy
	if r.second > 0 {
		r.second--
	}
	switch {
	case first:
		r.second = secondAfter + 1
		fallthrough
	case r.second == 1:
		r.give()
		r.given = now
	}
	r.last = now
}
