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
	ScopeTask      = "task"
)

// Refusal names the limit that refused a request.
type Refusal struct {
	Tenant    id.Tenant
	Principal string
	Resource  id.Name
	Scope     string // tenant, principal
	Limit     int64  // in the units of the ledger: see Amounts
	Used      int64
}

// Config configures a keeper.
type Config struct {
	Conn   *bus.Conn
	Policy Policy
	// Alive reports whether the directory lists a process; nil means always. Required for connections.
	Alive func(instance id.Entity) bool
	// Over reports whether an entity with a holding has ended; nil means never.
	Over func(ctx context.Context, t id.Tenant, entity id.Entity) (bool, error)
	// Refused receives each refusal. It must not block. nil disables it.
	Refused func(Refusal)
	// Instance names this process among the holders; default: that of Conn.
	Instance string

	Sweep time.Duration    // interval of the search for holdings that are over; default 1 min
	Slice time.Duration    // of a day's time, taken at once; default 5 s
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

// refuse reports a refusal and returns its fault.
func (c Config) refuse(r Refusal) error {
	c.Refused(r)
	return r.Fault(c.Now())
}

// words describe a resource, and the moment at which some of it is free again.
var words = map[id.Name]struct{ have, frees string }{
	audit.Connections:    {"connections at once", "Close one and try again; those of a gateway that has died are free within 30 seconds."},
	audit.Messages:       {"messages a second", "Wait a second and send it again."},
	audit.Sessions:       {"open sessions", "Close one, or wait until an idle one expires, and try again."},
	audit.Tasks:          {"open tasks", "Wait until one has ended, or cancel one, and try again."},
	audit.Children:       {"children in all", "Do the rest within the task, or end it and begin another."},
	audit.Teams:          {"open teams", "Shut one down and try again."},
	audit.WorkspaceBytes: {"bytes of files in the workspace", "Delete files that are not needed, and try again."},
}

// Fault tells the client the exhausted limit, and when some of it is free again.
func (r Refusal) Fault(now time.Time) *fault.Fault {
	who := "Your tenant has"
	if r.Scope == ScopePrincipal {
		who = "You have"
	}
	at := "quota." + r.Scope + "." + r.Resource.String()
	if r.Scope == ScopeTask {
		who, at = "This task has", "quota."+ScopeTenant+"."+r.Resource.String()
	}
	if of := r.ofToday(); of != "" {
		return fault.Newf(fault.QuotaExceeded, "%s used %s. More is available from %s.", who, of, midnight(now).Format(time.RFC3339)).At(at)
	}
	w := words[r.Resource]
	return fault.Newf(fault.QuotaExceeded, "%s used up the quota of %d %s. %s", who, r.Limit, w.have, w.frees).At(at)
}

// ofToday describes the used part of a daily resource; empty for others.
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

// Amounts returns the limit and the used amount in people's units: dollars, seconds, pieces.
func (r Refusal) Amounts() (limit, used float64) {
	switch r.Resource {
	case audit.CostUSD:
		return float64(r.Limit) / nanos, float64(r.Used) / nanos
	case audit.Time:
		return float64(r.Limit) / 1e3, float64(r.Used) / 1e3
	}
	return float64(r.Limit), float64(r.Used)
}

// midnight returns the beginning of the next day, in UTC.
func midnight(now time.Time) time.Time {
	return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
}

// exceeded returns the refusal of sums that exceed a limit.
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
	if resource == audit.Children { // of each task, which stands in the place of the principal
		return caps{principal: tenant.of(resource)}
	}
	return caps{tenant.of(resource), own.of(resource)}
}

func quotaOf(resource id.Name, t id.Tenant, principal string, holder id.Entity) subject.Quota {
	return subject.Quota{Tenant: t, Resource: resource, Principal: id.EntityFromExternal(principal), Holder: holder}
}

// Entities keeps the quota of entities with a log: sessions, tasks, teams; and of the children of a task, which has the
// place of the principal and keeps their holdings until its own end. Each has a holding in the ledger from
// before its first event until after its last. A keeper that is not open admits everything. It is safe for concurrent
// use.
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

// errClosed means that Close ran during Open.
var errClosed = errors.New("quota: closed")

// Open begins to keep the quota of a resource. If the policy does not limit the resource, the keeper continues to
// admit everything.
func (e *Entities) Open(ctx context.Context, resource id.Name, cfg Config) error {
	if !cfg.Policy.Bounds(resource) {
		return nil
	}
	rules := Rules{Reads: true, Sweep: cfg.Sweep, Now: cfg.Now}
	if cfg.Over != nil {
		rules.Over = func(ctx context.Context, q subject.Quota) (bool, error) {
			if resource == audit.Children {
				return cfg.Over(ctx, q.Tenant, q.Principal)
			}
			return cfg.Over(ctx, q.Tenant, q.Holder)
		}
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

// Hold takes a holding for an entity that is about to begin, or returns QUOTA_EXCEEDED. A second call for the same
// entity does not take a second holding: it decides again.
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
	// The sweep returns a holding that cannot be returned now.
	if err := e.ledger.forget(ctx, q); err != nil {
		e.cfg.Conn.Logger().Warn().Err(err).Str("key", q.Key()).Msg("failed to release refused quota holding; sweep will retry")
	}
	if e.resource == audit.Children {
		r.Scope, r.Principal = ScopeTask, ""
	}
	return e.cfg.refuse(r)
}

// Free returns the holding of an entity that has ended. For an entity without a holding it costs nothing.
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

// Close ends the keeper, or prevents its opening. Holdings stay. It may be called more than once.
func (e *Entities) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed = true; e.open != nil {
		e.open.ledger.Close()
		e.open = nil
	}
}

// Connections keeps the quotas of connections and of messages a second. A nil *Connections admits everything. It is
// safe for concurrent use.
type Connections struct {
	cfg     Config
	ledger  *Ledger
	counter *counter
	self    id.Entity
	meter   *meter
	living  *living
}

// OpenConnections returns the keeper for the connections of this process' gateway, or nil if the policy does not
// limit connections or messages.
func OpenConnections(ctx context.Context, cfg Config) (*Connections, error) {
	if !cfg.Policy.Bounds(audit.Connections, audit.Messages) {
		return nil, nil //nolint:nilnil // a nil keeper admits everything
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

// Enter counts one connection of a principal until leave is called, or returns QUOTA_EXCEEDED.
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

// Close returns the connections, within seconds.
func (c *Connections) Close() {
	if c != nil {
		c.counter.close(true)
		c.ledger.Close()
	}
}

// living decides which gateways count: the listed ones. A gateway that was never listed gets as long as a lease to
// appear, because it lists itself before it accepts connections, and the news may be late.
type living struct {
	alive func(id.Entity) bool
	self  string
	now   func() time.Time

	mu   sync.Mutex
	seen map[string]time.Time // by instance: first met at; zero = was listed once
}

// benefit is the time for which a gateway that was never listed counts: the lease of the directory.
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

// meet records a gateway that holds something, and whether the directory lists it now.
func (l *living) meet(instance id.Entity) string {
	l.counts(instance.String())
	return instance.String()
}

func (l *living) over(_ context.Context, q subject.Quota) (bool, error) {
	return !l.counts(q.Holder.String()), nil
}

const (
	// dayLayout begins the name of a holder of a daily resource.
	dayLayout = "20060102"
	// keptDays is the time after its beginning for which a day is kept: a process whose clock is wrong by less than a
	// day does not delete holdings that others still count.
	keptDays = 3 * 24 * time.Hour
	// defaultSlice is the amount of a day's time that a clock takes at once: the most that a dead worker may have
	// counted too much, at the cost of a write every 5 s.
	defaultSlice = 5 * time.Second
	// leastSlice is the least time for which a job starts.
	leastSlice = 100 * time.Millisecond
	// settleBudget bounds the time for which a worker waits after its work to return unused time.
	settleBudget = 2 * time.Second
)

// allowance is a token bucket of a second's worth.
type allowance struct {
	tokens float64
	last   time.Time
	told   time.Time // when its last refusal was reported
}

// meter limits messages a second. A gateway allows the share of a rate that matches its share of the connections: all
// of it for a tenant whose connections are all here. All gateways together allow the rate, and at most twice the rate
// in the second in which connections move.
type meter struct {
	c *Connections

	mu    sync.Mutex
	rates map[owner]*allowance
}

func newMeter(c *Connections) *meter { return &meter{c: c, rates: map[owner]*allowance{}} }
