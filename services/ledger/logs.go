package ledger

import (
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Logs keeps the folds of a process: those that are pinned, and those that were used
// last. Those that were used before rest, if they have snapshots. It is safe for concurrent use.
type Logs[S any] struct {
	cfg Config[S]

	mu      sync.Mutex
	pinned  map[subject.Log]*Log[S]
	recent  *simplelru.LRU[subject.Log, *Log[S]]
	resting *Resting
	sizes   map[subject.Log]uint64 // events of each recent fold at its last use
	events  uint64                 // sum of sizes
}

// NewLogs returns Logs without a fold.
func NewLogs[S any](cfg Config[S]) (*Logs[S], error) {
	x := &Logs[S]{cfg: cfg.withDefaults(), pinned: map[subject.Log]*Log[S]{}, sizes: map[subject.Log]uint64{}}
	var err, restErr error
	x.resting, restErr = NewResting()
	x.recent, err = simplelru.NewLRU(x.cfg.Cached+1, func(ref subject.Log, _ *Log[S]) {
		x.events -= x.sizes[ref]
		delete(x.sizes, ref)
	})
	if err := errors.Join(err, restErr); err != nil {
		return nil, fmt.Errorf("keep folds: %w", err)
	}
	return x, nil
}

// use puts a log in front of the recent ones, and lays the last ones to rest if all of them are too many, or have too many events.
func (x *Logs[S]) use(ref subject.Log, l *Log[S]) {
	x.recent.Add(ref, l)
	size := l.size.Load()
	x.events += size - x.sizes[ref]
	x.sizes[ref] = size
	for x.recent.Len() > x.cfg.Cached || x.events > x.cfg.Events && x.recent.Len() > 1 {
		if old, log, ok := x.recent.RemoveOldest(); ok {
			x.resting.Put(old, log.Rest())
		}
	}
}

// Get returns the log with the reference.
func (x *Logs[S]) Get(ref subject.Log) *Log[S] {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.get(ref)
}

func (x *Logs[S]) get(ref subject.Log) *Log[S] {
	if l, ok := x.pinned[ref]; ok {
		return l
	}
	l, ok := x.recent.Get(ref)
	if !ok {
		l = Open(x.cfg, ref)
		l.Wake(x.resting.Take(ref))
	}
	x.use(ref, l)
	return l
}

// Pin is Get for a log that stays the process' only one until Unpin.
func (x *Logs[S]) Pin(ref subject.Log) *Log[S] {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.get(ref)
	x.pinned[ref] = l
	x.recent.Remove(ref)
	return l
}

// Unpin ends Pin.
func (x *Logs[S]) Unpin(ref subject.Log) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l, ok := x.pinned[ref]; ok {
		delete(x.pinned, ref)
		x.use(ref, l)
	}
}

// Drop discards the fold of a log that is not pinned.
func (x *Logs[S]) Drop(ref subject.Log) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.recent.Remove(ref)
	x.resting.Put(ref, nil)
}
