package answer

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// DefaultRoom bounds the bytes of all answers in progress: with the garbage, a quarter of the memory that a gateway may
	// use under attack.
	DefaultRoom = 32 << 20
	// MaxPage bounds the bytes of a page, which has one item at least.
	MaxPage = 4 << 20
	// Small is the size up to which an answer needs no room: the number of requests bounds these.
	Small = 64 << 10
	// shares is how many principals together fill the room.
	shares = 3
	// roomMaxWait is how long an answer waits for room: pages are made within milliseconds.
	roomMaxWait = 2 * time.Second
)

// Room bounds the bytes of large answers in progress: those that are made, and those that their clients have not taken yet.
// A principal has a share of it, so that its readers displace no others. It is safe for concurrent use; nil has no bound.
type Room struct {
	total  *semaphore.Weighted
	share  int64
	making *semaphore.Weighted // of pages

	mu sync.Mutex
	by map[string]*share
}

// share is the part of a principal, which exists while it has answers.
type share struct {
	left  *semaphore.Weighted
	users int
}

// NewRoom returns the room of a process. Zero means the default.
func NewRoom(bytes int64) *Room {
	if bytes == 0 {
		bytes = DefaultRoom
	}
	return &Room{total: semaphore.NewWeighted(bytes), share: bytes / shares, making: semaphore.NewWeighted(makers()), by: map[string]*share{}}
}

// Enter takes room for an answer, and waits for it a little. It takes at most the share of a principal: a larger answer
// is alone in it.
func (r *Room) Enter(ctx context.Context, principal string, bytes int) (*Part, error) {
	if r == nil {
		return nil, nil //nolint:nilnil // a part without a bound
	}
	p := &Part{room: r, principal: principal, bytes: min(int64(bytes), r.share), of: r.shareOf(principal)}
	ctx, cancel := context.WithTimeout(ctx, roomMaxWait)
	defer cancel()
	if err := p.of.left.Acquire(ctx, p.bytes); err != nil {
		r.leave(principal)
		return nil, fault.Newf(fault.RateLimited, "You have too many large responses in progress. Read them to the end, then try again.").Wrap(err)
	}
	if err := r.total.Acquire(ctx, p.bytes); err != nil {
		p.of.left.Release(p.bytes)
		r.leave(principal)
		return nil, overfull(err)
	}
	return p, nil
}

// Make waits until few other pages are being made, and returns what says that the page is made. Each page takes a processor
// for milliseconds, and a megabyte of the one connection to the bus, which the events of all clients share.
func (r *Room) Make(ctx context.Context) (made func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, roomMaxWait)
	defer cancel()
	if err := r.making.Acquire(ctx, 1); err != nil {
		return nil, overfull(err)
	}
	return func() { r.making.Release(1) }, nil
}

// overfull is the fault of an answer that others keep from being made.
func overfull(err error) error {
	return fault.Newf(fault.Overloaded, "The server has too many large responses in progress. Try again later.").Wrap(err)
}

// makers is how many pages are made at the same time: half of the processors serve all else.
func makers() int64 { return int64(max(1, runtime.GOMAXPROCS(0)/2)) }

func (r *Room) shareOf(principal string) *share {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.by[principal]
	if s == nil {
		s = &share{left: semaphore.NewWeighted(r.share)}
		r.by[principal] = s
	}
	s.users++
	return s
}

func (r *Room) leave(principal string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.by[principal]; s.users == 1 {
		delete(r.by, principal)
	} else {
		s.users--
	}
}

// Part is the room of one answer. Only one goroutine may use it.
type Part struct {
	room      *Room
	principal string
	of        *share
	bytes     int64
}

// Shrink gives up what the answer does not need any more.
func (p *Part) Shrink(bytes int) {
	if p == nil || int64(bytes) >= p.bytes {
		return
	}
	p.room.total.Release(p.bytes - int64(bytes))
	p.of.left.Release(p.bytes - int64(bytes))
	p.bytes = int64(bytes)
}

// Leave gives up all, once.
func (p *Part) Leave() {
	if p == nil {
		return
	}
	p.Shrink(0)
	p.room.leave(p.principal)
}
