package process

import (
	"math"
	"runtime"
	"sync"
)

// pacer sets, after each collection, how much may be allocated before the next one: the frugal share of the live memory,
// but at least room. It also sets the size from which the runtime gives freed memory back at once, in place of keeping it for the
// next burst. It is safe for concurrent use.
type pacer struct {
	share func(percent int) int   // debug.SetGCPercent
	bound func(bytes int64) int64 // debug.SetMemoryLimit

	mu      sync.Mutex
	percent int   // that is set
	bytes   int64 // that are set
	stopped bool
}

// percentFor returns the percentage of the live memory that gives room, at least the frugal one.
func percentFor(live uint64) int {
	return int(max(frugal, min(room*100/max(live, 1), mostPercent)))
}

// mostPercent bounds the percentage after a start, when hardly any memory is live: the runtime's own least heap is 4 MiB for
// each hundred.
const mostPercent = 800

// overhead is what a process takes beside its heap: stacks, and what the runtime notes about the heap.
const overhead = 32 << 20

// boundFor returns the size of a process whose heap is about to be collected.
func boundFor(live uint64) int64 {
	return int64(min(live+max(live*frugal/100, room)+overhead, math.MaxInt64))
}

// adapt sets the percentage and the bound for the live memory. A difference of a tenth is not worth the stop of all goroutines.
func (p *pacer) adapt(live uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	if want := percentFor(live); differs(want, p.percent) {
		p.percent = want
		p.share(want)
	}
	if want := boundFor(live); differs(want, p.bytes) {
		p.bytes = want
		p.bound(want)
	}
}

func differs[N int | int64](a, b N) bool { return a-b > b/10 || b-a > b/10 }

// afterEach adapts after each collection, until stop: the clean-up of an object without references runs then.
func (p *pacer) afterEach() {
	p.mu.Lock()
	stopped := p.stopped
	p.mu.Unlock()
	if stopped {
		return
	}
	runtime.AddCleanup(new([16]byte), func(p *pacer) {
		p.adapt(liveMemory())
		p.afterEach()
	}, p)
}

// stop ends the adaptation, sets the percentage and removes the bound.
func (p *pacer) stop(percent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.share(percent)
	p.bound(math.MaxInt64)
}
