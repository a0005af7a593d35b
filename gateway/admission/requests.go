package admission

import (
	"time"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Defaults of the limits of HTTP requests: a page that loads many lists at once stays below them, and so does a
// program that asks for the state of a task ten times a second.
const (
	defaultRequestRate = 100
	defaultRequests    = 64
)

const (
	// DefaultInboxes is how many new clients of the swarm a principal may have at once: as many as it may have sessions.
	DefaultInboxes = 2000
	// inboxRate is how many follow per second. Each leaves an inbox, which is kept for a month.
	inboxRate = 0.1
)

// Inboxes bounds the new clients of the swarm of a principal.
type Inboxes struct {
	table *Table
	clock func() time.Time
}

// NewInboxes returns the limit. Zero means the default.
func NewInboxes(atOnce int, clock func() time.Time) (*Inboxes, error) {
	if atOnce == 0 {
		atOnce = DefaultInboxes
	}
	table, err := NewTable(Limits{Rate: inboxRate, Burst: atOnce})
	return &Inboxes{table, clock}, err
}

// Open counts a new client. Without authentication all clients are one principal, which has no bound.
func (i *Inboxes) Open(p auth.Principal, anonymous bool) error {
	if anonymous {
		return nil
	}
	leave, verdict := i.table.Enter(p.Tenant.String()+"/"+p.Subject, i.clock())
	if verdict != Entered {
		return fault.Newf(fault.RateLimited, "You have created too many new clients. Reconnect as an existing one with its clientId and resumeToken, or wait.")
	}
	leave()
	return nil
}

// Requests bounds the HTTP requests of an address and of a principal, in the way Gate bounds their connections: loopback and
// private addresses and anonymous principals have no bound unless one is set.
type Requests struct {
	strangers, proxies, principals *Table
	bounded                        bool // a bound is set
	clock                          func() time.Time
}

// NewRequests returns the limits. Zero fields mean the defaults. Twice the rate may come at once.
func NewRequests(set Limits, clock func() time.Time) (*Requests, error) {
	q := &Requests{clock: clock, bounded: set.Rate > 0 || set.Connections > 0}
	var err error
	set.Burst = max(1, int(2*set.Rate))
	if q.proxies, err = NewTable(set); err != nil {
		return nil, err
	}
	if set.Rate == 0 {
		set.Rate, set.Burst = defaultRequestRate, 2*defaultRequestRate
	}
	if set.Connections == 0 {
		set.Connections = defaultRequests
	}
	if q.strangers, err = NewTable(set); err != nil {
		return nil, err
	}
	q.principals, err = NewTable(set)
	return q, err
}

// Address counts a request under its address until leave.
func (q *Requests) Address(remote string) (leave func(), err error) {
	key, many := Address(remote)
	if many {
		return q.enter(q.proxies, key)
	}
	return q.enter(q.strangers, key)
}

// Principal counts a request under its principal until leave. Without authentication all clients are one principal.
func (q *Requests) Principal(p auth.Principal, anonymous bool) (leave func(), err error) {
	if anonymous && !q.bounded {
		return func() {}, nil
	}
	return q.enter(q.principals, p.Tenant.String()+"/"+p.Subject)
}

func (q *Requests) enter(t *Table, key string) (func(), error) {
	leave, verdict := t.Enter(key, q.clock())
	switch verdict {
	case TooMany:
		return nil, fault.Newf(fault.RateLimited, "Too many requests in progress. Wait for some of them to finish, then try again.")
	case TooFast:
		return nil, fault.Newf(fault.RateLimited, "Too many requests. Send fewer per second and try again.")
	}
	return leave, nil
}
