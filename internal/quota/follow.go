package quota

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/bus/bucket"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// follower makes the ledger the owner of a copy of its part of the bucket.
type follower struct{ l *Ledger }

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

// sweep returns holdings that are over, at intervals.
func (l *Ledger) sweep(life context.Context) {
	t := time.NewTicker(l.rules.Sweep)
	defer t.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-t.C:
			l.sweepOnce(life)
		}
	}
}

// sweepOnce checks the next keys and returns the number of returned holdings.
func (l *Ledger) sweepOnce(ctx context.Context) (given int) {
	for _, q := range l.next(l.rules.Now().Add(-min(sweepAge, l.rules.Sweep))) {
		over, err := l.rules.Over(ctx, q)
		if err == nil && over {
			if err = l.forget(ctx, q); err == nil {
				given++
			}
		}
		if err != nil {
			l.conn.Logger().Debug().Err(err).Str("key", q.Key()).Msg("postpone check of quota holding")
		}
		if ctx.Err() != nil {
			return given
		}
	}
	return given
}

// next returns the keys for the next sweep.
func (l *Ledger) next(before time.Time) []subject.Quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []subject.Quota
	for q, e := range l.entries {
		if e.seen.Before(before) {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b subject.Quota) int { return strings.Compare(a.Key(), b.Key()) })
	at := slices.IndexFunc(out, func(q subject.Quota) bool { return q.Key() > l.cursor })
	if at < 0 {
		at = 0
	}
	if out = out[at:]; len(out) > sweepMost {
		out = out[:sweepMost]
	}
	l.cursor = ""
	if len(out) == sweepMost {
		l.cursor = out[len(out)-1].Key()
	}
	return out
}
