package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/bus"
)

// retryPause bounds the delay of the retry after a failed heartbeat.
const retryPause = time.Second

// Join lists the member until Leave and renews its lease three times per TTL. It writes a vanished key, for example
// one lost with its server, again as soon as it notices. Join returns after the member is stored and in this copy,
// and after all watchers of the copy were called. It waits for a missing leader of the bucket within ctx, and for a lost
// connection 3 s.
func (d *Directory) Join(ctx context.Context, m Member) (*Lease, error) {
	if m.Started.IsZero() {
		m.Started = time.Now().UTC()
	}
	m.Joined = 0
	m = d.stamped(m)
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("join the directory as %s: %w", m.key(), err)
	}
	revision, err := bus.Insist(ctx, d.conn, nil, func(ctx context.Context) (uint64, error) { return d.kv.Put(ctx, m.key(), raw) })
	if err != nil {
		return nil, fmt.Errorf("join the directory as %s: %w", m.key(), err)
	}
	m.Joined = revision // heartbeats carry it; until then the entry's own revision stands for it
	if raw, err = json.Marshal(m); err != nil {
		return nil, fmt.Errorf("join the directory as %s: %w", m.key(), err)
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	l := &Lease{dir: d, key: m.key(), end: end, done: make(chan struct{}), now: make(chan struct{}, 1), member: m, raw: raw}
	go l.keep(life)
	if !d.add(l) {
		return nil, errors.Join(fmt.Errorf("join the directory as %s: it is closed", m.key()), l.Leave(ctx))
	}
	if err := d.await(ctx, revision); err != nil {
		return nil, errors.Join(err, l.Leave(ctx))
	}
	return l, nil
}

func (d *Directory) add(l *Lease) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.leases[l] = struct{}{}
	}
	return !d.closed
}

func (l *Lease) keep(life context.Context) {
	defer close(l.done)
	due := time.NewTimer(l.dir.heartbeat)
	defer due.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-due.C:
		case <-l.now:
		}
		next := l.dir.heartbeat
		ctx, cancel := context.WithTimeout(life, l.dir.heartbeat)
		revision, err := l.dir.kv.Put(ctx, l.key, l.current())
		if err == nil {
			err = l.stored(revision)
		}
		if err != nil && life.Err() == nil {
			l.dir.conn.Logger().Warn().Err(err).Str("key", l.key).Msg("failed to renew directory lease")
			next = min(next, retryPause)
		}
		cancel()
		due.Reset(next)
	}
}

// Joined returns the member's place in the order of its name. It changes only if the bucket is created again.
func (l *Lease) Joined() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.member.Joined
}

// stored checks the revision of a heartbeat. A revision below Joined means that the bucket was created again, and
// that all its members have just joined.
func (l *Lease) stored(revision uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision >= l.member.Joined {
		return nil
	}
	m := l.member
	m.Joined = revision
	return l.become(m)
}

// become changes the member and sends a heartbeat at once. The caller holds the lock.
func (l *Lease) become(m Member) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("change %s in the directory: %w", l.key, err)
	}
	l.member, l.raw = m, raw
	poke(l.now)
	return nil
}
