package quota

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// ofDay are the resources that are counted by the day, in the order in which they are checked.
var ofDay = []id.Name{audit.Tokens, audit.CostUSD, audit.ToolCalls, audit.Time}

// Payer identifies the quotas that a run uses.
type Payer struct {
	Tenant    id.Tenant
	Principal string
	// Granted returns how often people have let the run continue over the limit of a resource, scope and day. Each
	// time it may use the same amount once more. nil means never.
	Granted func(resource, scope, day string) int
}

// Over is the error of work that reaches a limit of a day. It wraps a QUOTA_EXCEEDED fault.
type Over struct {
	Refusal
	Day        string        // YYYY-MM-DD
	Ask        bool          // ask people whether the run may continue
	AskTimeout time.Duration // time for their answer; 0 = unlimited

	fault *fault.Fault
}

// Error implements error.
func (o *Over) Error() string { return o.fault.Error() }

// Unwrap returns the fault.
func (o *Over) Unwrap() error { return o.fault }

// Question returns the question for people.
func (o *Over) Question() string {
	who := "Your tenant has"
	if o.Scope == ScopePrincipal {
		who = "You have"
	}
	return fmt.Sprintf("%s used %s. May this run go on, up to as much once more?", who, o.ofToday())
}

// Daily keeps the quotas of resources that are counted by the day, in UTC, by the clock of the process that uses
// them: a use belongs to one day as a whole, on every process. A nil *Daily admits everything. It is safe for
// concurrent use.
type Daily struct {
	cfg   Config
	books map[id.Name]*book
}

// book counts one resource.
type book struct {
	ledger  *Ledger
	counter *counter
}

// OpenDaily returns the keeper of daily resources for this process, or nil if the policy does not limit any of them. It keeps those that
// are named, or all.
func OpenDaily(ctx context.Context, cfg Config, resources ...id.Name) (*Daily, error) {
	if len(resources) == 0 {
		resources = ofDay
	}
	if !cfg.Policy.Bounds(resources...) {
		return nil, nil //nolint:nilnil // a nil keeper admits everything
	}
	d := &Daily{cfg: cfg.withDefaults(), books: map[id.Name]*book{}}
	for _, r := range resources {
		if !cfg.Policy.Bounds(r) {
			continue
		}
		l, err := OpenLedger(ctx, cfg.Conn, r, Rules{
			Group: dayOf, Counts: func(day string) bool { return day == d.today() }, Apart: true,
			Sweep: cfg.Sweep, Now: d.cfg.Now, Over: func(_ context.Context, q subject.Quota) (bool, error) { return d.isPast(q), nil },
		})
		if err != nil {
			d.Close()
			return nil, err
		}
		d.books[r] = &book{ledger: l, counter: newCounter(l, d.isPast)}
	}
	return d, nil
}

func (d *Daily) today() string { return d.cfg.Now().UTC().Format(dayLayout) }

func dayOf(holder id.Entity) string {
	day, _, _ := strings.Cut(holder.String(), "_")
	return day
}

// isPast reports whether the day of a holding ended long ago.
func (d *Daily) isPast(q subject.Quota) bool {
	day, err := time.Parse(dayLayout, dayOf(q.Holder))
	return err == nil && d.cfg.Now().Sub(day) > keptDays
}

// caps returns the limits of a payer on a day, with the grants of people.
func (d *Daily) caps(r id.Name, p Payer, day string) caps {
	out := d.cfg.caps(r, p.Tenant, p.Principal)
	if p.Granted != nil {
		out.tenant *= int64(1 + p.Granted(r.String(), ScopeTenant, isoDay(day)))
		out.principal *= int64(1 + p.Granted(r.String(), ScopePrincipal, isoDay(day)))
	}
	return out
}

func isoDay(day string) string { return day[:4] + "-" + day[4:6] + "-" + day[6:] }

// over returns an error if sums exceed the limits of a day, else nil. asked is the part of the sums that is only
// requested.
func (d *Daily) over(r id.Name, p Payer, day string, s Sums, asked int64, limits caps) *Over {
	refusal, over := exceeded(r, p.Tenant, p.Principal, s, limits)
	if !over {
		return nil
	}
	refusal.Used -= asked
	tenant, own := d.cfg.Policy.Of(p.Tenant, p.Principal)
	if refusal.Scope == ScopePrincipal {
		tenant = own
	}
	return &Over{
		Refusal: refusal, Day: isoDay(day), Ask: tenant.OnExceeded == Ask, AskTimeout: tenant.AskTimeout,
		fault: refusal.Fault(d.cfg.Now()),
	}
}

// Refuse reports a limit that ends work. A question is not reported here, because people decide on it.
func (d *Daily) Refuse(o *Over) {
	if d != nil {
		d.cfg.Refused(o.Refusal)
	}
}

// Check returns *Over if the tokens or the cost of today are used up.
func (d *Daily) Check(p Payer) error {
	if d == nil {
		return nil
	}
	day := d.today()
	for _, r := range []id.Name{audit.Tokens, audit.CostUSD} {
		b, limits := d.books[r], d.caps(r, p, day)
		if b == nil || limits == (caps{}) {
			continue
		}
		s := b.ledger.Sums(p.Tenant, id.EntityFromExternal(p.Principal))
		s.Tenant, s.Principal = s.Tenant+1, s.Principal+1 // a request asks for at least one more
		if o := d.over(r, p, day, s, 1, limits); o != nil {
			return o
		}
	}
	return nil
}

// Spend counts used tokens and dollars. It returns when every process counts them, so call it before writing the use
// anywhere else: a crash between the two makes the count too high by one message, and never too low.
func (d *Daily) Spend(ctx context.Context, p Payer, tokens int64, usd float64) error {
	if d == nil {
		return nil
	}
	var wg sync.WaitGroup
	var errs [2]error
	for i, use := range []struct {
		r id.Name
		n int64
	}{{audit.Tokens, tokens}, {audit.CostUSD, int64(math.Round(usd * nanos))}} {
		if use.n > 0 {
			wg.Go(func() { _, errs[i] = d.take(ctx, use.r, p, use.n, false) })
		}
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// Call takes one tool call off the day before the call starts, or returns *Over. Calls never exceed the limit; near
// it two concurrent calls may both be refused.
func (d *Daily) Call(ctx context.Context, p Payer) error {
	if d == nil {
		return nil
	}
	_, err := d.take(ctx, audit.ToolCalls, p, 1, true)
	return err
}

// take counts n more of a resource, within the limits if bounded, and returns the key.
func (d *Daily) take(ctx context.Context, r id.Name, p Payer, n int64, bounded bool) (q subject.Quota, err error) {
	day := d.today()
	b, limits := d.books[r], d.caps(r, p, day)
	if b == nil || limits == (caps{}) {
		return q, nil
	}
	holder, err := id.ParseEntity(day + "_" + d.cfg.Instance)
	if err != nil {
		return q, fmt.Errorf("quota: name a holder: %w", err)
	}
	q = quotaOf(r, p.Tenant, p.Principal, holder)
	if !bounded {
		return q, b.counter.acquire(ctx, q, n, caps{}).err
	}
	v := b.counter.acquire(ctx, q, n, limits)
	if v.err == nil && v.over {
		return q, d.over(r, p, day, v.sums, n, limits)
	}
	return q, v.err
}

// Close ends the keeper. Used amounts stay counted.
func (d *Daily) Close() {
	if d == nil {
		return
	}
	for _, b := range d.books {
		b.counter.close(false)
		b.ledger.Close()
	}
}

// Clock counts the time of one worker's work.
type Clock struct {
	d     *Daily
	payer Payer
	end   context.CancelFunc
	done  chan struct{}
	once  sync.Once

	began time.Time
	paid  time.Duration // total taken so far
	last  subject.Quota // key of the last slice
}

// Start begins to count the time of a payer's work. It takes each slice before its use, or returns *Over. It calls
// over once if today's time is used up during the work; the time continues to count. over must not block. While the
// bus does not answer, work continues and is counted later. A nil *Clock counts nothing.
func (d *Daily) Start(ctx context.Context, p Payer, over func(*Over)) (*Clock, error) {
	if d == nil || d.books[audit.Time] == nil || d.caps(audit.Time, p, d.today()) == (caps{}) {
		return nil, nil //nolint:nilnil // a nil clock counts nothing
	}
	c := &Clock{d: d, payer: p, began: time.Now(), done: make(chan struct{})}
	if err := c.slice(ctx); err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	go c.run(life, over)
	return c, nil
}

func (c *Clock) run(life context.Context, over func(*Over)) {
	defer close(c.done)
	for {
		select {
		case <-life.Done():
			return
		case <-time.After(c.paid - time.Since(c.began)):
		}
		err := c.slice(life)
		if o, ok := errors.AsType[*Over](err); ok {
			over(o)
			return
		}
		if err != nil { // the next slice includes the time until it succeeds
			select {
			case <-life.Done():
				return
			case <-time.After(retryPause):
			}
		}
	}
}

// slice takes the next slice of the day, or the rest of the day's time.
func (c *Clock) slice(ctx context.Context) error {
	n := c.d.cfg.Slice
	q, err := c.d.take(ctx, audit.Time, c.payer, n.Milliseconds(), true)
	if o, ok := errors.AsType[*Over](err); ok {
		if n = time.Duration(o.Limit-o.Used) * time.Millisecond; n < leastSlice {
			return err
		}
		q, err = c.d.take(ctx, audit.Time, c.payer, n.Milliseconds(), true)
	}
	if err == nil {
		c.paid, c.last = c.paid+n, q
	}
	return err
}

// Stop ends the clock. It returns time that was taken but not used, and counts time that was used but not taken. It
// may be called more than once.
func (c *Clock) Stop() {
	if c == nil {
		return
	}
	c.once.Do(func() {
		c.end()
		<-c.done
		left := (c.paid - time.Since(c.began)).Milliseconds()
		switch {
		case left > 0:
			c.d.books[audit.Time].counter.release(c.last, left)
		case left < 0:
			ctx, cancel := context.WithTimeout(context.Background(), settleBudget)
			defer cancel()
			if _, err := c.d.take(ctx, audit.Time, c.payer, -left, false); err != nil {
				c.d.cfg.Conn.Logger().Warn().Err(err).Int64("ms", -left).Msg("failed to count time against daily quota")
			}
		}
	})
}
