package admission

import (
	"container/list"
	"sync"
	"sync/atomic"
)

const (
	// poolShare of the limit of connections, and at most maxPool, may be unauthenticated: clients
	// that authenticate leave the pool after one round trip.
	poolShare = 20
	maxPool   = 500
	// minPool lets several clients connect at once to a gateway with a small limit.
	minPool = 16
)

// PoolSize returns how many connections may be unauthenticated at once: 5 % of the limit of
// connections, from 16 to 500.
func PoolSize(limit int) int { return max(minPool, min(maxPool, limit/poolShare)) }

// Pool holds connections that another one may displace, such as those that have not
// authenticated. A newcomer evicts the oldest when the pool is full, so that connections which
// wait forever keep nothing from those that continue. It is safe for concurrent use.
type Pool struct {
	bound   int
	evicted atomic.Int64

	mu  sync.Mutex
	all list.List // of *Entry, oldest first
}

// NewPool returns an empty pool for so many connections.
func NewPool(bound int) *Pool { return &Pool{bound: max(bound, 1)} }

// Entry is one connection in a pool.
type Entry struct {
	pool  *Pool
	at    *list.Element // nil once it has left
	evict func()
}

// Enter adds a connection, and evicts the oldest one if the pool is full. evict ends the
// connection. It is called at most once, without locks, and not after Leave has returned true.
func (p *Pool) Enter(evict func()) *Entry {
	e := &Entry{pool: p, evict: evict}
	p.mu.Lock()
	var oldest *Entry
	if p.all.Len() >= p.bound {
		oldest = p.remove(p.all.Front())
	}
	e.at = p.all.PushBack(e)
	p.mu.Unlock()
	p.end(oldest)
	return e
}

// Evict evicts the oldest connection and reports whether the pool had one.
func (p *Pool) Evict() bool {
	p.mu.Lock()
	oldest := p.remove(p.all.Front())
	p.mu.Unlock()
	p.end(oldest)
	return oldest != nil
}

// remove takes an element out. The caller has locked.
func (p *Pool) remove(at *list.Element) *Entry {
	if at == nil {
		return nil
	}
	e, _ := p.all.Remove(at).(*Entry)
	e.at = nil
	return e
}

func (p *Pool) end(e *Entry) {
	if e != nil {
		p.evicted.Add(1)
		e.evict()
	}
}

// Leave takes the connection out of the pool, and reports whether it was still there.
func (e *Entry) Leave() bool {
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	was := e.at != nil
	e.pool.remove(e.at)
	return was
}

// Len returns how many connections the pool holds.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.Len()
}

// Evicted returns how many connections the pool has evicted.
func (p *Pool) Evicted() int64 { return p.evicted.Load() }
