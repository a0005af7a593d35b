package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Scopes of a limit.
const (
	ScopeTenant    = "tenant"
	ScopePrincipal = "principal"
)

// Refusal says which limit something ran into.
type Refusal struct {
	Tenant    id.Tenant
	Principal string
	Resource  id.Name
	Scope     string // tenant, principal
	Limit     int64  // as the ledger counts it: see Amounts
	Used      int64
}

// Config is what a keeper works with.
type Config struct {
	Conn   *bus.Conn
	Policy Policy
	// Alive reports whether a process is listed in the directory; nil: all are. Needed for
	// connections.
	Alive func(instance id.Entity) bool
	// Over reports whether what has a place in the ledger has ended; nil: never.
	Over func(ctx context.Context, t id.Tenant, entity id.Entity) (bool, error)
	// Refused is told of what was refused. It must not block. nil: nobody is.
	Refused func(Refusal)
	// Instance names this process among those that count; default: that of Conn.
	Instance string

	Sweep time.Duration    // how often it is looked what is over; default 1 min
	Slice time.Duration    // of a day's time: what is taken at once; default 5 s
	Now   func() time.Time // nil = time.Now
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Instance == "" && c.Conn != nil {
		c.Instance = c.Conn.Instance()
	}
	if c.Slice <= 0 {
		c.Slice = defaultSlice
	}
	if c.Refused == nil {
		c.Refused = func(Refusal) {}
	}
	return c
}

// refuse tells of a refusal and returns its fault.
func (c Config) refuse(r Refusal) error {
	c.Refused(r)
	return r.fault(c.Now())
}

// words say what a resource is and when some of it is free again.
var words = map[id.Name]struct{ have, frees string }{
	audit.Connections: {"connections at once", "Close one and try again; those of a gateway that has died are free within 30 seconds."},
	audit.Messages:    {"messages a second", "Wait a second and send it again."},
	audit.Sessions:    {"open sessions", "Close one, or wait until an idle one expires, and try again."},
	audit.Tasks:       {"open tasks", "Wait until one has ended, or cancel one, and try again."},
	audit.Teams:       {"open teams", "Shut one down and try again."},
}

// fault is what the client is told: what is used up, and when some of it is free again.
func (r Refusal) fault(now time.Time) *fault.Fault {
	who := "Your tenant has"
	if r.Scope == ScopePrincipal {
		who = "You have"
	}
	at := "quota." + r.Scope + "." + r.Resource.String()
	if of := r.ofToday(); of != "" {
		return fault.Newf(fault.QuotaExceeded, "%s used %s. There is more from %s.", who, of, midnight(now).Format(time.RFC3339)).At(at)
	}
	w := words[r.Resource]
	return fault.Newf(fault.QuotaExceeded, "%s used up the quota of %d %s. %s", who, r.Limit, w.have, w.frees).At(at)
}

// ofToday says how much of a resource that is counted by the day was used; empty for
// others.
func (r Refusal) ofToday() string {
	limit, used := r.Amounts()
	switch r.Resource {
	case audit.Tokens:
		return fmt.Sprintf("%d of %d tokens of today", r.Used, r.Limit)
	case audit.CostUSD:
		return fmt.Sprintf("$%.4f of $%.4f of today", used, limit)
	case audit.ToolCalls:
		return fmt.Sprintf("%d of %d tool calls of today", r.Used, r.Limit)
	case audit.Time:
		return fmt.Sprintf("%.0f of %.0f seconds of work of today", used, limit)
	}
	return ""
}

// Amounts returns the limit and what is used in the units in which people think: dollars,
// seconds, pieces.
func (r Refusal) Amounts() (limit, used float64) {
	switch r.Resource {
	case audit.CostUSD:
		return float64(r.Limit) / nanos, float64(r.Used) / nanos
	case audit.Time:
		return float64(r.Limit) / 1e3, float64(r.Used) / 1e3
	}
	return float64(r.Limit), float64(r.Used)
}

// midnight is when the next day begins, in UTC.
func midnight(now time.Time) time.Time {
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
}

// exceeded returns the refusal of sums that are over a limit.
func exceeded(resource id.Name, t id.Tenant, principal string, s Sums, limits caps) (Refusal, bool) {
	r := Refusal{Tenant: t, Principal: principal, Resource: resource}
	switch {
	case limits.tenant > 0 && s.Tenant > limits.tenant:
		r.Scope, r.Limit, r.Used = ScopeTenant, limits.tenant, s.Tenant
	case limits.principal > 0 && s.Principal > limits.principal:
		r.Scope, r.Limit, r.Used = ScopePrincipal, limits.principal, s.Principal
	default:
		return r, false
	}
	return r, true
}

func (c Config) caps(resource id.Name, t id.Tenant, principal string) caps {
	tenant, own := c.Policy.Of(t, principal)
	return caps{tenant.of(resource), own.of(resource)}
}

func quotaOf(resource id.Name, t id.Tenant, principal string, holder id.Entity) subject.Quota {
	return subject.Quota{Tenant: t, Resource: resource, Principal: id.EntityFromExternal(principal), Holder: holder}
}

// Entities keeps the quota of things that have a log: sessions, tasks, teams. Each has a
// place in the ledger from before its first event until after its last. One that is not
// open admits everything. It is safe for concurrent use.
type Entities struct {
	mu     sync.Mutex
	open   *entities
	closed bool
}

// entities is an open keeper.
type entities struct {
	cfg      Config
	resource id.Name
	ledger   *Ledger
}

// errClosed says that the keeper was closed while it was opened.
var errClosed = errors.New("quota: closed")

// Open begins to keep the quota of a resource. If nobody has a limit of it, everything
// is admitted still.
func (e *Entities) Open(ctx context.Context, resource id.Name, cfg Config) error {
	if !cfg.Policy.Bounds(resource) {
		return nil
	}
	rules := Rules{Sweep: cfg.Sweep, Now: cfg.Now}
	if cfg.Over != nil {
		rules.Over = func(ctx context.Context, q subject.Quota) (bool, error) { return cfg.Over(ctx, q.Tenant, q.Holder) }
	}
	ledger, err := OpenLedger(ctx, cfg.Conn, resource, rules)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		ledger.Close()
		return errClosed
	}
	e.open = &entities{cfg: cfg.withDefaults(), resource: resource, ledger: ledger}
	return nil
}

func (e *Entities) keeper() *entities {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// Hold takes a place for an entity that is about to begin, or returns QUOTA_EXCEEDED.
// Asking again for the same entity takes no second place: it is decided anew.
func (e *Entities) Hold(ctx context.Context, t id.Tenant, principal string, entity id.Entity) error {
	if k := e.keeper(); k != nil {
		return k.hold(ctx, t, principal, entity)
	}
	return nil
}

func (e *entities) hold(ctx context.Context, t id.Tenant, principal string, entity id.Entity) error {
	limits := e.cfg.caps(e.resource, t, principal)
	if limits == (caps{}) {
		return nil
	}
	q := quotaOf(e.resource, t, principal, entity)
	sums, err := e.ledger.Set(ctx, q, 1)
	if err != nil {
		return err
	}
	r, over := exceeded(e.resource, t, principal, sums, limits)
	if !over {
		return nil
	}
	// A place that cannot be given back now is given back by the sweep.
	if err := e.ledger.forget(ctx, q); err != nil {
		e.cfg.Conn.Logger().Warn().Err(err).Str("key", q.Key()).Msg("leave refused quota holding to sweep")
	}
	return e.cfg.refuse(r)
}

// Free gives the place of an entity back that has ended. One that has none, or none any
// more, costs nothing.
func (e *Entities) Free(ctx context.Context, t id.Tenant, entity id.Entity) error {
	k := e.keeper()
	if k == nil {
		return nil
	}
	q, ok := k.ledger.Held(t, entity)
	if !ok {
		return nil
	}
	return k.ledger.forget(ctx, q)
}

// Close ends the keeper, or keeps it from being opened. Places stay taken. It may be
// called more than once.
func (e *Entities) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed = true; e.open != nil {
		e.open.ledger.Close()
		e.open = nil
	}
}

// Connections keeps the quotas of connections and of messages a second. A nil
// *Connections admits everything. It is safe for concurrent use.
type Connections struct {
	cfg     Config
	ledger  *Ledger
	counter *counter
	self    id.Entity
	meter   *meter
	living  *living
}

// OpenConnections returns the keeper of the connections of the gateway of this process,
// nil if nobody has a limit of connections or messages.
func OpenConnections(ctx context.Context, cfg Config) (*Connections, error) {
	if !cfg.Policy.Bounds(audit.Connections, audit.Messages) {
		return nil, nil //nolint:nilnil // nil is a keeper that admits everything
	}
	cfg = cfg.withDefaults()
	self, err := id.ParseEntity(cfg.Instance)
	if err != nil {
		return nil, fmt.Errorf("quota: %w", err)
	}
	c := &Connections{cfg: cfg, self: self}
	c.living = &living{alive: cfg.Alive, self: self.String(), now: c.cfg.Now, seen: map[string]time.Time{}}
	c.ledger, err = OpenLedger(ctx, cfg.Conn, audit.Connections, Rules{
		Group: c.living.meet, Counts: c.living.counts, Over: c.living.over, Sweep: cfg.Sweep, Now: cfg.Now,
	})
	if err != nil {
		return nil, err
	}
	c.counter = newCounter(c.ledger, func(subject.Quota) bool { return false })
	c.meter = newMeter(c)
	return c, nil
}

// Enter counts one connection of a principal until leave is called, or returns
// QUOTA_EXCEEDED.
func (c *Connections) Enter(ctx context.Context, t id.Tenant, principal string) (leave func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	if tenant, own := c.cfg.Policy.Of(t, principal); tenant.Connections+own.Connections == 0 && tenant.Messages+own.Messages == 0 {
		return func() {}, nil
	}
	limits, q := c.cfg.caps(audit.Connections, t, principal), quotaOf(audit.Connections, t, principal, c.self)
	v := c.counter.acquire(ctx, q, 1, limits)
	if v.err != nil {
		return nil, v.err
	}
	if v.over {
		r, _ := exceeded(audit.Connections, t, principal, v.sums, limits)
		return nil, c.cfg.refuse(r)
	}
	return sync.OnceFunc(func() { c.counter.release(q, 1) }), nil
}

// Allow takes one message of a principal off its rate, or returns QUOTA_EXCEEDED and how
// long it is until one more is allowed.
func (c *Connections) Allow(t id.Tenant, principal string) (wait time.Duration, err error) {
	if c == nil {
		return 0, nil
	}
	return c.meter.allow(t, principal)
}

// Close gives the connections back, within seconds.
func (c *Connections) Close() {
	if c != nil {
		c.counter.close(true)
		c.ledger.Close()
	}
}

// living knows which gateways count: those that are listed. One that never was gets as
// long as a lease to appear, because it lists itself before it takes connections, and
// news of that may be late.
type living struct {
	alive func(id.Entity) bool
	self  string
	now   func() time.Time

	mu   sync.Mutex
	seen map[string]time.Time // by instance: when it was first met; zero = it was listed once
}

// benefit is how long a gateway that was never listed counts: the lease of the directory.
const benefit = 30 * time.Second

func (l *living) counts(instance string) bool {
	if l.alive == nil || instance == l.self {
		return true
	}
	gateway, err := id.ParseEntity(instance)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive(gateway) {
		l.seen[instance] = time.Time{}
		return true
	}
	met, known := l.seen[instance]
	if !known {
		met = l.now()
		l.seen[instance] = met
	}
	return !met.IsZero() && l.now().Sub(met) < benefit
}

// meet notes that a gateway holds something, and whether it is listed now.
func (l *living) meet(instance id.Entity) string {
	l.counts(instance.String())
	return instance.String()
}

func (l *living) over(_ context.Context, q subject.Quota) (bool, error) {
	return !l.counts(q.Holder.String()), nil
}
