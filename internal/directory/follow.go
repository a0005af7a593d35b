package directory

import (
	"encoding/json"
	"maps"
	"slices"
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
	d.telling.Lock()
	d.mu.Lock()
	for key, e := range all {
		// Heartbeats come all the time, so the newest is as good as the server's clock.
		n := at(e, now.Add(-newest.Sub(e.Written)))
		if old, ok := d.entries[key]; ok && old.revision == n.revision {
			n.seen = old.seen
		}
		entries[key] = n
	}
	changes := differences(d.entries, entries)
	d.entries, d.keys = entries, slices.Sorted(maps.Keys(entries))
	d.mu.Unlock()
	d.tell(changes...)
	d.telling.Unlock()
	d.missed()
	if len(changes) > 0 {
		d.changed()
	}
}

// Apply implements bucket.Owner.
func (f follower) Apply(c bucket.Change[entry]) {
	d := f.d
	d.telling.Lock()
	d.mu.Lock()
	old, known := d.entries[c.Key]
	i, _ := slices.BinarySearch(d.keys, c.Key)
	switch {
	case !c.Gone:
		d.entries[c.Key] = at(c.Entry, time.Now())
		if !known {
			d.keys = slices.Insert(d.keys, i, c.Key)
		}
	case known:
		delete(d.entries, c.Key)
		d.keys = slices.Delete(d.keys, i, i+1)
	}
	now := d.entries[c.Key]
	d.mu.Unlock()
	changed := known == c.Gone || !same(old, now)
	switch {
	case changed && c.Gone:
		d.tell(Change{Member: old.listed(), Gone: true})
	case changed:
		d.tell(Change{Member: now.listed()})
	}
	d.telling.Unlock()
	if c.Gone {
		d.missed()
	}
	if changed {
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
