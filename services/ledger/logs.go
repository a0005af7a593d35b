package ledger

import (
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Logs keeps the folds of a process: those that are pinned, and those that were used
// last. It is safe for concurrent use.
type Logs[S any] struct {
	cfg Config[S]

	mu     sync.Mutex
	pinned map[subject.Log]*Log[S]
	recent *lru.Cache[subject.Log, *Log[S]]
}

// NewLogs returns Logs without a fold.
func NewLogs[S any](cfg Config[S]) (*Logs[S], error) {
	cfg = cfg.withDefaults()
	recent, err := lru.New[subject.Log, *Log[S]](cfg.Cached)
	if err != nil {
		return nil, fmt.Errorf("keep folds: %w", err)
	}
	return &Logs[S]{cfg: cfg, pinned: map[subject.Log]*Log[S]{}, recent: recent}, nil
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
	if l, ok := x.recent.Get(ref); ok {
		return l
	}
	l := Open(x.cfg, ref)
	x.recent.Add(ref, l)
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
		x.recent.Add(ref, l)
	}
}

// Drop discards the fold of a log that is not pinned.
func (x *Logs[S]) Drop(ref subject.Log) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.recent.Remove(ref)
}
