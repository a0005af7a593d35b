package bus

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// mutedFor is the time for which a failed write to a stream counts, if no other write tells more.
const mutedFor = time.Minute

// writes remembers the streams that do not take messages.
type writes struct {
	mu     sync.Mutex
	failed map[string]time.Time
}

func (w *writes) succeeded(stream string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.failed, stream)
}

func (w *writes) fail(stream string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = map[string]time.Time{}
	}
	w.failed[stream] = at
}

// forget is called after a reconnection: the server may have been restarted.
func (w *writes) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.failed)
}

func (w *writes) muted(now time.Time) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.failed, func(_ string, at time.Time) bool { return now.Sub(at) > mutedFor })
	return slices.Sorted(maps.Keys(w.failed))
}
