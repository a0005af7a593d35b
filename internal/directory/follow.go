package directory

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/waggle-dev/waggle/internal/bus/bucket"
)

// Decode implements bucket.Owner.
func (f follower) Decode(key string, value []byte) (entry, bool) {
	var m Member
	if json.Unmarshal(value, &m) != nil || m.key() != key {
		return entry{}, false
	}
	return entry{member: m, raw: value}, true
}

// Replace implements bucket.Owner.
func (f follower) Replace(all map[string]bucket.Entry[entry]) {
	d, entries := f.d, make(map[string]entry, len(all))
	now, newest := time.Now(), time.Time{}
	for _, e := range all {
		if e.Written.After(newest) {
			newest = e.Written
		}
	}
	d.mu.Lock()
	for key, e := range all {
		// Heartbeats come all the time, so the newest is as good as the server's clock.
		n := at(e, now.Add(-newest.Sub(e.Written)))
		if old, ok := d.entries[key]; ok && old.revision == n.revision {
			n.seen = old.seen
		}
		entries[key] = n
	}
	equal := maps.EqualFunc(d.entries, entries, same)
	d.entries = entries
	d.mu.Unlock()
	d.missed()
	if !equal {
		d.changed()
	}
}

// Apply implements bucket.Owner.
func (f follower) Apply(c bucket.Change[entry]) {
	d := f.d
	d.mu.Lock()
	old, known := d.entries[c.Key]
	if c.Gone {
		delete(d.entries, c.Key)
	} else {
		d.entries[c.Key] = at(c.Entry, time.Now())
	}
	now := d.entries[c.Key]
	d.mu.Unlock()
	if c.Gone {
		d.missed()
	}
	if known == c.Gone || !same(old, now) {
		d.changed()
	}
}

func at(e bucket.Entry[entry], seen time.Time) entry {
	e.Value.revision, e.Value.seen = e.Revision, seen
	return e.Value
}

// missed renews leases whose member the copy does not list.
func (d *Directory) missed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.leases {
		if _, ok := d.entries[l.key]; !ok {
			poke(l.now)
		}
	}
}
