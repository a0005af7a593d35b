package quota

import (
	"strconv"

	"github.com/waggle-dev/waggle/internal/bus/bucket"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Decode implements bucket.Owner.
func (f follower) Decode(key string, value []byte) (entry, bool) {
	q, err := subject.ParseQuotaKey(key)
	if err != nil || q.Resource != f.l.resource {
		return entry{}, false
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return entry{n: n, seen: f.l.rules.Now()}, err == nil && n >= 0
}

// Replace implements bucket.Owner.
func (f follower) Replace(all map[string]bucket.Entry[entry]) {
	entries := make(map[subject.Quota]entry, len(all))
	for key, e := range all {
		if q, err := subject.ParseQuotaKey(key); err == nil {
			e.Value.revision = e.Revision
			entries[q] = e.Value
		}
	}
	f.l.replace(entries)
}

// Apply implements bucket.Owner.
func (f follower) Apply(c bucket.Change[entry]) {
	q, err := subject.ParseQuotaKey(c.Key)
	if err != nil {
		return
	}
	l, n := f.l, c.Value
	if c.Gone {
		n = entry{seen: l.rules.Now()}
	}
	n.revision = c.Revision
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(q, n)
	l.tell(q, n.revision)
	if l.echo != nil {
		l.echo(q, n.n)
	}
}
