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
	return entry{member: m, raw: value, seen: time.Now()}, true
}

// Replace implements bucket.Owner.
func (f follower) Replace(all map[string]bucket.Entry[entry]) {
	d, entries := f.d, make(map[string]entry, len(all))
	for key, e := range all {
		entries[key] = at(e)
	}
	d.mu.Lock()
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
		d.entries[c.Key] = at(c.Entry)
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

func at(e bucket.Entry[entry]) entry {
	e.Value.revision = e.Revision
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
