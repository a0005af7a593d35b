package directory

import (
	"bytes"
	"context"
	"encoding/json"
)

// Set changes the member's data and requests a heartbeat at once. It does not block; of changes in quick succession
// only the last one counts. Callers limit their changes, because every watcher of the directory receives each one.
func (l *Lease) Set(data json.RawMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member
	m.Data = data
	return l.become(m)
}

// Shown waits until this copy of the directory, and its Revision, include the last change by Set, or returns ctx's
// error.
func (l *Lease) Shown(ctx context.Context) error {
	var revision uint64
	err := l.dir.Wait(ctx, func(d *Directory) bool {
		want := l.current()
		d.mu.Lock()
		defer d.mu.Unlock()
		e := d.entries[l.key]
		revision = e.revision
		return bytes.Equal(e.raw, want)
	})
	if err != nil {
		return err
	}
	return l.dir.await(ctx, revision)
}

// Lapse ends the heartbeats but keeps the member listed until its time to live has passed. It replaces Leave in a
// process that ends before its member should disappear. Neither has an effect after the other.
func (l *Lease) Lapse() {
	l.once.Do(func() {
		l.dir.mu.Lock()
		delete(l.dir.leases, l)
		l.dir.mu.Unlock()
		l.end()
		<-l.done
	})
}
