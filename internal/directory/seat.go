package directory

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// farewell bounds the removal of a component that stops: its lease expires by itself.
const farewell = time.Second

// Seat holds the lease of a component from its start to its end. Its zero value holds none yet. It is safe for
// concurrent use.
type Seat struct {
	mu    sync.Mutex
	lease *Lease
}

// Take joins the directory as the member.
func (s *Seat) Take(ctx context.Context, d *Directory, m Member) error {
	l, err := d.Join(ctx, m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = l
	return nil
}

// Set changes the member's data, as Lease.Set does. It does nothing before Take.
func (s *Seat) Set(data json.RawMessage) error {
	s.mu.Lock()
	l := s.lease
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Set(data)
}

// Leave removes the member, so that routing avoids it. It does nothing before Take, and may be called again.
func (s *Seat) Leave(ctx context.Context) error {
	s.mu.Lock()
	l := s.lease
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Leave(ctx)
}

// Quit is Leave for a component that stops now: it takes 1 s at most. After an error the lease expires by itself.
func (s *Seat) Quit() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	return s.Leave(ctx)
}
