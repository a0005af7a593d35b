package memory

import (
	"runtime"
	"sync"
)

const (
	// frugal is the share of the live memory, in per cent, that a process with its own bus lets grow before it collects. Most of
	// its memory are the server's blocks, of 4 MB for each of the 16 event shards under load, in which a collection has
	// nothing to search.
	frugal = 50
	// room is what such a process may allocate between two collections even if it has less live memory: with a quarter of it, as
	// after the start, it would collect after each 40 answers.
	room = 48 << 20
)

// pacer sets, after each collection, how much may be allocated before the next one: the frugal share of the live memory,
// but at least room. It is safe for concurrent use.
type pacer struct {
	set func(percent int) int

	mu      sync.Mutex
	percent int // that is set
	stopped bool
}

// percentFor returns the percentage of the live memory that gives room, at least the frugal one.
func percentFor(live uint64) int {
	return int(max(frugal, min(room*100/max(live, 1), mostPercent)))
}

// mostPercent bounds the percentage after a start, when hardly any memory is live: the runtime's own least heap is 4 MiB for
// each hundred.
const mostPercent = 800

// adapt sets the percentage for the live memory. A difference of a tenth is not worth the stop of all goroutines.
func (p *pacer) adapt(live uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	want := percentFor(live)
	if d := want - p.percent; p.stopped || -p.percent/10 <= d && d <= p.percent/10 {
		return
	}
	p.percent = want
	p.set(want)
}

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

// stop ends the adaptation and sets the percentage.
func (p *pacer) stop(percent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.set(percent)
}
