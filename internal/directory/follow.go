package directory

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// readBudget bounds one reading of the bucket, which takes milliseconds, and
	// readPause spaces the attempts.
	readBudget = 5 * time.Second
	readPause  = time.Second
)

var (
	errSlow = errors.New("the bucket was not read in time")
	errOver = errors.New("the watch has ended")
)

// follow keeps the copy until life ends, calling ready when it is complete.
func (d *Directory) follow(life context.Context, ready func()) {
	defer close(d.done)
	for life.Err() == nil {
		if err := d.read(life, ready); err != nil && life.Err() == nil {
			d.conn.Logger().Debug().Err(err).Msg("the directory is read again")
			select {
			case <-life.Done():
			case <-d.resync:
			case <-time.After(readPause):
			}
		}
	}
}

// read reads the bucket and applies its changes until a new reading is due.
func (d *Directory) read(life context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	late := time.AfterFunc(readBudget, cancel) // covers the making of the watch
	w, err := d.kv.WatchAll(ctx)
	if err != nil {
		late.Stop()
		return err
	}
	defer end(w)
	sweep := time.NewTicker(d.heartbeat)
	defer sweep.Stop()
	first, complete := map[string]entry{}, false
	for {
		select {
		case <-ctx.Done():
			return errSlow
		case <-d.resync:
			late.Stop()
			return nil
		case <-sweep.C:
			if complete && d.conn.Up() && d.stale() {
				return nil
			}
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errOver
			case e == nil:
				if !late.Stop() {
					return errSlow
				}
				complete = true
				d.replace(first)
				ready()
			case complete:
				d.apply(e)
			default:
				collect(first, e)
			}
		}
	}
}

// end stops the watch. What it still holds is taken off its hands: its goroutine
// could not end otherwise.
func end(w jetstream.KeyWatcher) {
	if err := w.Stop(); err != nil {
		return // the connection is closed, and the watch with it
	}
	for open := true; open; {
		_, open = <-w.Updates()
	}
}

// decode returns the member of an update, or false if there is none (any more).
func decode(e jetstream.KeyValueEntry) (entry, bool) {
	var m Member
	if e.Operation() != jetstream.KeyValuePut || json.Unmarshal(e.Value(), &m) != nil || m.key() != e.Key() {
		return entry{}, false
	}
	return entry{member: m, raw: e.Value(), revision: e.Revision(), seen: time.Now()}, true
}

func collect(into map[string]entry, e jetstream.KeyValueEntry) {
	if n, ok := decode(e); ok {
		into[e.Key()] = n
	} else {
		delete(into, e.Key())
	}
}

func (d *Directory) replace(entries map[string]entry) {
	d.mu.Lock()
	equal := maps.EqualFunc(d.entries, entries, same)
	d.entries = entries
	d.mu.Unlock()
	d.missed()
	if !equal {
		d.changed()
	}
}

func (d *Directory) apply(e jetstream.KeyValueEntry) {
	d.mu.Lock()
	old, known := d.entries[e.Key()]
	collect(d.entries, e)
	now, listed := d.entries[e.Key()]
	d.mu.Unlock()
	if !listed {
		d.missed()
	}
	if known != listed || !same(old, now) {
		d.changed()
	}
}

// missed has leases renewed whose member is not on the list.
func (d *Directory) missed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.leases {
		if _, ok := d.entries[l.key]; !ok {
			poke(l.now)
		}
	}
}

// stale reports whether some member should have expired by now: the marker that
// tells so did not arrive.
func (d *Directory) stale() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.entries {
		if time.Since(e.seen) > 2*d.lease {
			return true
		}
	}
	return false
}
