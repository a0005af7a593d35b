package directory

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// farewell bounds how long a component that is stopped tries to say so: its lease
// runs out by itself.
const farewell = time.Second

// Seat is the place of a component in the directory, from its start to its end. The
// zero value is not taken. It is safe for concurrent use.
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

// Set changes the member's data, as Lease.Set does. It does nothing if the seat is not
// taken.
func (s *Seat) Set(data json.RawMessage) error {
	s.mu.Lock()
	l := s.lease
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Set(data)
}

// Leave takes the member off the list, so that nobody counts on it. It does nothing
// if the seat was never taken, and may be called again.
func (s *Seat) Leave(ctx context.Context) error {
	s.mu.Lock()
	l := s.lease
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.Leave(ctx)
}

// Quit is Leave for a component that is stopped now: it takes a moment at most. The
// error says that the directory was not told, and the lease runs out by itself.
func (s *Seat) Quit() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	return s.Leave(ctx)
}
