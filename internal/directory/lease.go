package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// retryPause is how soon a heartbeat that failed is tried again, if the next one is
// not due before.
const retryPause = time.Second

// Lease keeps a member listed until Leave.
type Lease struct {
	dir  *Directory
	key  string
	end  context.CancelFunc
	done chan struct{}
	now  chan struct{} // asks for a heartbeat at once
	once sync.Once
	err  error

	mu     sync.Mutex
	member Member // as Set left it
	raw    []byte // the member, encoded
}

// Join lists the member until its lease is left, renewing it three times per TTL.
// A key that vanished, for example with its server, is put again as soon as that is
// noticed. Join returns when the member is stored, in this copy, and everything that
// watches the copy was told.
func (d *Directory) Join(ctx context.Context, m Member) (*Lease, error) {
	if m.Started.IsZero() {
		m.Started = time.Now().UTC()
	}
	m.Joined = 0
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("join the directory as %s: %w", m.key(), err)
	}
	revision, err := d.kv.Put(ctx, m.key(), raw)
	if err != nil {
		return nil, fmt.Errorf("join the directory as %s: %w", m.key(), err)
	}
	m.Joined = revision // heartbeats say it; until then the entry's own revision is it
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
			l.dir.conn.Logger().Warn().Err(err).Str("key", l.key).Msg("fail to renew lease in directory")
			next = min(next, retryPause)
		}
		cancel()
		due.Reset(next)
	}
}

// Joined returns the member's place in the order of those of its name. It changes only
// if the bucket is made anew.
func (l *Lease) Joined() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.member.Joined
}

// stored notes the revision of a heartbeat. One that is older than the member says that
// the bucket counts anew, and that everybody in it has joined just now.
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

// become has m told to the directory at once. The caller has locked.
func (l *Lease) become(m Member) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("change %s in the directory: %w", l.key, err)
	}
	l.member, l.raw = m, raw
	poke(l.now)
	return nil
}

// Leave takes the member off the list. It is idempotent and returns the same at
// every call. After an error the lease runs out by itself.
func (l *Lease) Leave(ctx context.Context) error {
	l.once.Do(func() {
		l.dir.mu.Lock()
		delete(l.dir.leases, l)
		l.dir.mu.Unlock()
		l.end()
		<-l.done
		if err := l.dir.kv.Delete(ctx, l.key); err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
			l.err = fmt.Errorf("leave the directory as %s: %w", l.key, err)
		}
	})
	return l.err
}
