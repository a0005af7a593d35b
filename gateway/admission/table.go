package admission

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// DefaultKeys is how many keys' rates are remembered: at 200 bytes each 2 MB. A
// stranger with more addresses than that starts afresh with each, which is no more
// than the burst.
const DefaultKeys = 10_000

// Limits bound one key. A zero field does not bound anything.
type Limits struct {
	Connections int     // open at once
	Rate        float64 // handshakes per second
	Burst       int     // handshakes at once; at least 1 with a Rate
	Keys        int     // keys whose rate is remembered; 0 = DefaultKeys
}

// Verdict says what Enter decided.
type Verdict uint8

// The verdicts.
const (
	Entered Verdict = iota // leave must be called
	TooMany                // the key has as many connections as it may have
	TooFast                // the key comes too often
)

// Table counts. It is safe for concurrent use.
type Table struct {
	limits Limits
	rates  *lru.Cache[string, *rate.Limiter]

	mu   sync.Mutex
	open map[string]int // keys with open connections only, so bounded by these
}

// NewTable returns an empty table, or an error for limits that are negative.
func NewTable(l Limits) (*Table, error) {
	if l.Connections < 0 || l.Rate < 0 || l.Burst < 0 || l.Keys < 0 {
		return nil, fmt.Errorf("limits must not be negative: %+v", l)
	}
	if l.Keys == 0 {
		l.Keys = DefaultKeys
	}
	l.Burst = max(l.Burst, 1)
	rates, err := lru.New[string, *rate.Limiter](l.Keys)
	if err != nil {
		return nil, fmt.Errorf("make the table of rates: %w", err)
	}
	return &Table{limits: l, rates: rates, open: make(map[string]int)}, nil
}

// Enter counts one connection of the key at the time now. If it returns Entered,
// leave ends the connection; it is idempotent. Otherwise leave is nil and only the
// attempt was counted.
func (t *Table) Enter(key string, now time.Time) (leave func(), v Verdict) {
	if !t.allow(key, now) {
		return nil, TooFast
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limits.Connections > 0 && t.open[key] >= t.limits.Connections {
		return nil, TooMany
	}
	t.open[key]++
	return sync.OnceFunc(func() { t.leave(key) }), Entered
}

func (t *Table) leave(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[key]--; t.open[key] <= 0 {
		delete(t.open, key)
	}
}

func (t *Table) allow(key string, now time.Time) bool {
	if t.limits.Rate == 0 {
		return true
	}
	l, ok := t.rates.Get(key)
	if !ok {
		fresh := rate.NewLimiter(rate.Limit(t.limits.Rate), t.limits.Burst)
		if l, ok, _ = t.rates.PeekOrAdd(key, fresh); !ok {
			l = fresh
		}
	}
	return l.AllowN(now, 1)
}

// Len returns how many keys have open connections, and how many rates are remembered.
func (t *Table) Len() (open, rates int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open), t.rates.Len()
}

// Address returns the key of a peer's address ("192.0.2.1:4711") and whether it
// may stand for many people: loopback, private and link-local addresses are mostly
// proxies. Addresses of IPv6 count by their /64, which one customer usually has whole.
func Address(remote string) (key string, many bool) {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote, false
	}
	ip := ap.Addr().Unmap().WithZone("")
	many = ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String(), many
		}
	}
	return ip.String(), many
}
