// Package keyframe keeps folds in the middle of long logs.
package keyframe

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/waggle-dev/waggle/gateway/snapshot"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// Every is the number of events between two folds that are kept.
	Every = 1000
	// mostBytes bounds the events in all folds that are kept, and most the folds.
	mostBytes = 32 << 20
	most      = 256
)

// name names a fold that is kept: of the events of a log from base to seq.
type name struct {
	log       subject.Log
	base, seq uint64
}

// Cache has folds in the middle of long logs, those used last. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	all   *lru.Cache[name, *snapshot.Fold]
	bytes int
}

// New returns an empty cache.
func New() *Cache {
	k := &Cache{}
	k.all, _ = lru.NewWithEvict(most, func(_ name, f *snapshot.Fold) { k.bytes -= f.Size() }) // fails for sizes below 1 only
	return k
}

// Keep keeps a copy of a fold.
func (k *Cache) Keep(log subject.Log, f *snapshot.Fold) {
	at := name{log, f.Base(), f.Seq()}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all.Contains(at) || f.Size() > mostBytes {
		return
	}
	kept := f.Fork()
	k.bytes += kept.Size()
	k.all.Add(at, kept)
	for k.bytes > mostBytes {
		k.all.RemoveOldest()
	}
}

// Before returns a copy of the newest fold from base that is kept and that goes no further than at, nil without one.
func (k *Cache) Before(log subject.Log, base, at uint64) *snapshot.Fold {
	k.mu.Lock()
	defer k.mu.Unlock()
	for seq := at - at%Every; seq >= base && seq > 0; seq -= Every {
		if f, is := k.all.Get(name{log, base, seq}); is {
			return f.Fork()
		}
	}
	return nil
}
