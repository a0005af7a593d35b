package api

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/waggle-dev/waggle/gateway/snapshot"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// keyframeEvery is the number of events between two folds that are kept.
	keyframeEvery = 1000
	// keyframeBytes bounds the events in all folds that are kept, and keyframeMost the folds.
	keyframeBytes = 32 << 20
	keyframeMost  = 256
)

// keyframe names a fold that is kept: of the events of a log from base to seq.
type keyframe struct {
	log       subject.Log
	base, seq uint64
}

// keyframes are folds in the middle of long logs, those used last. They are safe for concurrent use.
type keyframes struct {
	mu    sync.Mutex
	all   *lru.Cache[keyframe, *snapshot.Fold]
	bytes int
}

func newKeyframes() *keyframes {
	k := &keyframes{}
	k.all, _ = lru.NewWithEvict(keyframeMost, func(_ keyframe, f *snapshot.Fold) { k.bytes -= f.Size() }) // fails for sizes below 1 only
	return k
}

// keep keeps a copy of a fold.
func (k *keyframes) keep(log subject.Log, f *snapshot.Fold) {
	name := keyframe{log, f.Base(), f.Seq()}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all.Contains(name) || f.Size() > keyframeBytes {
		return
	}
	kept := f.Fork()
	k.bytes += kept.Size()
	k.all.Add(name, kept)
	for k.bytes > keyframeBytes {
		k.all.RemoveOldest()
	}
}

// before returns a copy of the newest fold from base that is kept and that goes no further than at, nil without one.
func (k *keyframes) before(log subject.Log, base, at uint64) *snapshot.Fold {
	k.mu.Lock()
	defer k.mu.Unlock()
	for seq := at - at%keyframeEvery; seq >= base && seq > 0; seq -= keyframeEvery {
		if f, is := k.all.Get(keyframe{log, base, seq}); is {
			return f.Fork()
		}
	}
	return nil
}
