package quota

import (
	"math"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// meterOwners bounds the remembered rates to about a megabyte. Above it the meter drops rates that were not used for
// a second, which are full again and so change nothing.
const meterOwners = 10_000

// tellEvery spaces the refusals of messages that Config.Refused receives: a flooding client would flood the audit
// log, too.
const tellEvery = time.Second

// allow takes a message off the rates of the tenant and the principal, if both have one.
func (m *meter) allow(t id.Tenant, principal string) (time.Duration, error) {
	tenant, own := m.c.cfg.Policy.Of(t, principal)
	if tenant.Messages == 0 && own.Messages == 0 {
		return 0, nil
	}
	now, who := m.c.cfg.Now(), owner{t, id.EntityFromExternal(principal)}
	rt, rp := tenant.Messages*m.c.share(owner{tenant: t}), own.Messages*m.c.share(who)
	m.mu.Lock()
	defer m.mu.Unlock()
	bt, bp := m.bucket(owner{tenant: t}, rt, now), m.bucket(who, rp, now)
	wt, wp := bt.wait(rt), bp.wait(rp)
	if wt <= 0 && wp <= 0 {
		bt.take(rt)
		bp.take(rp)
		return 0, nil
	}
	r, b, wait := Refusal{Tenant: t, Principal: principal, Resource: audit.Messages, Scope: ScopeTenant, Limit: int64(math.Ceil(tenant.Messages))}, bt, wt
	if wt <= 0 {
		r.Scope, r.Limit, b, wait = ScopePrincipal, int64(math.Ceil(own.Messages)), bp, wp
	}
	if r.Used = r.Limit; now.Sub(b.told) >= tellEvery {
		b.told = now
		return wait, m.c.cfg.refuse(r)
	}
	return wait, r.Fault(now)
}

// bucket returns the owner's bucket, filled up to now.
func (m *meter) bucket(o owner, rate float64, now time.Time) *allowance {
	b := m.rates[o]
	if b == nil {
		if len(m.rates) >= meterOwners {
			m.tidy(now)
		}
		b = &allowance{tokens: full(rate), last: now}
		m.rates[o] = b
	}
	if passed := now.Sub(b.last).Seconds(); passed > 0 {
		b.tokens, b.last = min(full(rate), b.tokens+passed*rate), now
	}
	return b
}

// full returns the capacity of a bucket: a second's worth, and at least one message.
func full(rate float64) float64 { return max(rate, 1) }

// wait returns the time until the bucket holds a whole message.
func (b *allowance) wait(rate float64) time.Duration {
	if rate <= 0 || b.tokens >= 1 {
		return 0
	}
	return time.Duration((1 - b.tokens) / rate * float64(time.Second))
}

func (b *allowance) take(rate float64) {
	if rate > 0 {
		b.tokens--
	}
}

func (m *meter) tidy(now time.Time) {
	for o, b := range m.rates {
		if now.Sub(b.last) > time.Second {
			delete(m.rates, o)
		}
	}
}

// share returns the fraction of the owner's connections that this gateway has.
func (c *Connections) share(o owner) float64 {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	all, ours := int64(0), c.ledger.sums[o][c.self.String()]
	for g, n := range c.ledger.sums[o] {
		if c.living.counts(g) {
			all += n
		}
	}
	if ours == 0 || all == 0 {
		return 1 // its count is still on the way
	}
	return float64(ours) / float64(all)
}

// Allow takes one message off a principal's rate, or returns QUOTA_EXCEEDED and the time until the next message is
// allowed.
func (c *Connections) Allow(t id.Tenant, principal string) (wait time.Duration, err error) {
	if c == nil {
		return 0, nil
	}
	return c.meter.allow(t, principal)
}
