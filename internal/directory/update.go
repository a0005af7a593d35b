package directory

import (
	"bytes"
	"context"
	"encoding/json"
)

// current returns what the next heartbeat says.
func (l *Lease) current() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.raw
}

// Set changes the member's data, which an extra heartbeat tells at once. It does not
// block, and of changes that follow each other quickly the last one counts. Callers
// bound how often they change it: every watcher of the directory hears of each change.
func (l *Lease) Set(data json.RawMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member
	m.Data = data
	return l.become(m)
}

// Shown waits until this copy of the directory has what Set was last given, and says so in
// its Revision, or returns ctx's error.
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

// Lapse ends the heartbeats without taking the member off the list: it stays there
// until its time to live has passed. It is Leave for a process that ends before it
// wants its member to be forgotten. Neither does anything after the other.
func (l *Lease) Lapse() {
	l.once.Do(func() {
		l.dir.mu.Lock()
		delete(l.dir.leases, l)
		l.dir.mu.Unlock()
		l.end()
		<-l.done
	})
}
