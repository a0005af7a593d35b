package quota

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// readBudget bounds one reading of the bucket: 100,000 keys take less than a second.
	readBudget = 15 * time.Second
	readPause  = time.Second
)

var (
	errSlow = errors.New("the bucket was not read in time")
	errOver = errors.New("the watch has ended")
)

// follow keeps the copy until life ends, calling ready when it is complete.
func (l *Ledger) follow(life context.Context, ready func()) {
	for life.Err() == nil {
		if err := l.read(life, ready); err != nil && life.Err() == nil {
			l.conn.Logger().Debug().Err(err).Stringer("resource", l.resource).Msg("the ledger of quotas is read again")
			select {
			case <-life.Done():
			case <-l.resync:
			case <-time.After(readPause):
			}
		}
	}
}

// read reads the bucket and applies its changes until it has to be read anew: after a
// connection was lost, markers of what was given back may be gone.
func (l *Ledger) read(life context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	late := time.AfterFunc(readBudget, cancel)
	w, err := l.kv.Watch(ctx, subject.QuotaKeys(l.resource))
	if err != nil {
		late.Stop()
		return err
	}
	defer end(w)
	first, complete := map[subject.Quota]entry{}, false
	for {
		select {
		case <-ctx.Done():
			return errSlow
		case <-l.resync:
			late.Stop()
			return nil
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errOver
			case e == nil:
				if !late.Stop() {
					return errSlow
				}
				complete = true
				l.replace(first)
				ready()
			case complete:
				l.apply(e)
			default:
				if q, n, ok := l.decode(e); ok {
					first[q] = n
				}
			}
		}
	}
}

// end stops the watch, and takes what it still holds off its hands.
func end(w jetstream.KeyWatcher) {
	if err := w.Stop(); err != nil {
		return // the connection is closed, and the watch with it
	}
	for open := true; open; {
		_, open = <-w.Updates()
	}
}

func (l *Ledger) decode(e jetstream.KeyValueEntry) (q subject.Quota, n entry, ok bool) {
	q, err := subject.ParseQuotaKey(e.Key())
	if err != nil || q.Resource != l.resource {
		return q, n, false
	}
	n = entry{revision: e.Revision(), seen: l.rules.Now()}
	if e.Operation() == jetstream.KeyValuePut {
		if n.n, err = strconv.ParseInt(string(e.Value()), 10, 64); err != nil || n.n < 0 {
			return q, n, false
		}
	}
	return q, n, true
}

func (l *Ledger) apply(e jetstream.KeyValueEntry) {
	q, n, ok := l.decode(e)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(q, n)
	l.tell(q, n.revision)
	if l.echo != nil {
		l.echo(q, n.n)
	}
}

// sweep gives back, again and again, what is over.
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

// sweepOnce looks at the next keys, and returns how many it has given back.
func (l *Ledger) sweepOnce(ctx context.Context) (given int) {
	for _, q := range l.next(l.rules.Now().Add(-min(sweepAge, l.rules.Sweep))) {
		over, err := l.rules.Over(ctx, q)
		if err == nil && over {
			if err = l.forget(ctx, q); err == nil {
				given++
			}
		}
		if err != nil {
			l.conn.Logger().Debug().Err(err).Str("key", q.Key()).Msg("whether a holding is over is not known yet")
		}
		if ctx.Err() != nil {
			return given
		}
	}
	return given
}

// next returns the keys at which the next sweep is to look.
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
