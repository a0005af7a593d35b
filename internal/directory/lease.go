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

// Lease keeps a member listed until Leave.
type Lease struct {
	dir  *Directory
	key  string
	end  context.CancelFunc
	done chan struct{}
	once sync.Once
	err  error
}

// Join lists the member until its lease is left, renewing it three times per TTL.
// A key that vanished, for example with its server, is put again at the next
// heartbeat. Join returns when the member is stored.
func (d *Directory) Join(ctx context.Context, m Member) (*Lease, error) {
	if m.Started.IsZero() {
		m.Started = time.Now()
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("join the directory as %s: %w", m.key(), err)
	}
	if _, err := d.kv.Put(ctx, m.key(), raw); err != nil {
		return nil, fmt.Errorf("join the directory as %s: %w", m.key(), err)
	}
	life, end := context.WithCancel(context.Background()) //nolint:contextcheck // the lease outlives the joining
	l := &Lease{dir: d, key: m.key(), end: end, done: make(chan struct{})}
	go l.keep(life, raw)
	return l, nil
}

func (l *Lease) keep(life context.Context, raw []byte) {
	defer close(l.done)
	tick := time.NewTicker(l.dir.heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
			ctx, cancel := context.WithTimeout(life, l.dir.heartbeat)
			_, _ = l.dir.kv.Put(ctx, l.key, raw) // a heartbeat that fails is made up for by the next
			cancel()
		}
	}
}

// Leave takes the member off the list. It is idempotent.
func (l *Lease) Leave(ctx context.Context) error {
	l.once.Do(func() {
		l.end()
		<-l.done
		if err := l.dir.kv.Delete(ctx, l.key); err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
			l.err = fmt.Errorf("leave the directory as %s: %w", l.key, err)
		}
	})
	return l.err
}
