package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// frugal is the share of the live memory, in per cent, that a process with its own bus lets grow before it collects. Most of
	// its memory are the server's blocks, of 4 MB for each of the 16 event shards under load, in which a collection has
	// nothing to search.
	frugal = 50
	// room is what such a process may allocate between two collections even if it has less live memory: with a quarter of it, as
	// after the start, it would collect after each 40 answers.
	room = 48 << 20
	// memoryLook is the interval between two looks at the allocations.
	memoryLook = 15 * time.Second
	// calm is the most that a process without work allocates between two looks, and busy the least that makes a return
	// worthwhile: it takes two collections, of some 20 ms each.
	calm, busy = 32 << 20, 256 << 20
)

// thrifty makes the process collect earlier, unless the environment says how. The process returns memory to the system when
// the work that needed it is over: the runtime alone would wait for its next collection, which work triggers.
func thrifty(getenv func(string) string) (stop func()) {
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

// allocated returns the bytes that the process has allocated since its start.
func allocated() uint64 { return measured("/gc/heap/allocs:bytes") }

// liveMemory returns the bytes that the last collection has found in use.
func liveMemory() uint64 { return measured("/gc/heap/live:bytes") }

func measured(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
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
