package audit

import (
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
)

const (
	// floodRate bounds the refusals of one source that a process records in a second. Anyone can cause refusals, and
	// the log drops its oldest records at its bound.
	floodRate = 20
	// floodSources bounds the sources that a process distinguishes in a second.
	floodSources = 10_000
)

// flood counts refusals by source: an address, or a principal.
type flood struct {
	mu     sync.Mutex
	second int64
	counts map[string]int
}

// admits reports whether the record of a refusal is within the bound of its source. Other records always are: those
// who can cause them have credentials, and limits of their own.
func (f *flood) admits(r audit.Record, now time.Time) bool {
	if r.Outcome != audit.Denied {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := now.Unix(); s != f.second || f.counts == nil {
		f.second, f.counts = s, map[string]int{}
	}
	key := r.Remote + " " + r.Tenant + " " + r.Principal
	if _, known := f.counts[key]; !known && len(f.counts) >= floodSources {
		return false
	}
	f.counts[key]++
	return f.counts[key] <= floodRate
}
