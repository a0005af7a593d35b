package quota_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestMain shortens the property tests to seconds, unless the command line says otherwise.
func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "20")
	goleak.VerifyTestMain(m)
}

const maxWait = 60 * time.Second

var errExceeded = fault.New(fault.QuotaExceeded)

func tenant(t testing.TB, s string) id.Tenant {
	t.Helper()
	out, err := id.ParseTenant(s)
	require.NoError(t, err)
	return out
}

func entity(s string) id.Entity { return id.EntityFromExternal(s) }

// fleet is several gateways that a test starts and kills.
type fleet struct {
	t      testing.TB
	conn   *bus.Conn
	opened int
	policy quota.Policy
	clock  *atomic.Int64 // nanoseconds that have been added to the time

	mu    sync.Mutex
	alive map[string]bool
}

func newFleet(t testing.TB, c *bus.Conn, p quota.Policy) *fleet {
	return &fleet{t: t, conn: c, policy: p, clock: &atomic.Int64{}, alive: map[string]bool{}}
}

func (f *fleet) now() time.Time { return time.Now().Add(time.Duration(f.clock.Load())) }

func (f *fleet) set(instance string, alive bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive[instance] = alive
}

func (f *fleet) isAlive(e id.Entity) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.alive[e.String()]
}

func (f *fleet) config(c *bus.Conn) quota.Config {
	return quota.Config{Conn: c, Policy: f.policy, Alive: f.isAlive, Now: f.now}
}

type gateway struct {
	*quota.Connections
	name  string
	leave []func()
}

func (f *fleet) gateway() *gateway {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	f.opened++
	cfg := f.config(f.conn)
	cfg.Instance = fmt.Sprintf("%p-%d", f, f.opened)
	f.set(cfg.Instance, true)
	q, err := quota.OpenConnections(ctx, cfg)
	require.NoError(f.t, err)
	return &gateway{Connections: q, name: cfg.Instance}
}

// kill ends a gateway without a close: its holdings stay in the ledger.
func (f *fleet) kill(g *gateway) {
	g.Kill()
	f.set(g.name, false)
	f.clock.Add(int64(31 * time.Second)) // later gateways never saw it alive, and count it for as long
}

func (f *fleet) stop(g *gateway) {
	g.Close()
	f.set(g.name, false)
}

func (g *gateway) enter(t testing.TB, of id.Tenant, who string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	leave, err := g.Enter(ctx, of, who)
	if errors.Is(err, errExceeded) {
		return false
	}
	require.NoError(t, err)
	g.leave = append(g.leave, leave)
	return true
}

// However gateways come, go and die, open connections never exceed the limit, and released ones are free for others.
func TestConnectionsAreCountedOverAllGateways(t *testing.T) {
	c := bustest.Single(t)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		of, limit := tenant(t, fmt.Sprintf("t%d", round)), rapid.Int64Range(1, 6).Draw(rt, "limit")
		own := rapid.Int64Range(1, 6).Draw(rt, "own")
		f := newFleet(t, c, quota.Policy{Tenant: quota.Limits{Connections: limit}, Principal: quota.Limits{Connections: own}})
		var running []*gateway
		var holders []map[*func()]string // per gateway: principal of each connection
		running, holders = append(running, f.gateway(), f.gateway()), append(holders, map[*func()]string{}, map[*func()]string{})
		check := func() {
			total, each := int64(0), map[string]int64{}
			for _, h := range holders {
				for _, who := range h {
					total++
					each[who]++
				}
			}
			require.LessOrEqual(rt, total, limit)
			for who, n := range each {
				require.LessOrEqual(rt, n, own, who)
			}
		}
		steps := rapid.IntRange(5, 15).Draw(rt, "steps")
		for range steps {
			i := rapid.IntRange(0, len(running)-1).Draw(rt, "gateway")
			g, who := running[i], rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "who")
			switch rapid.SampledFrom([]string{"enter", "enter", "enter", "leave", "kill", "stop"}).Draw(rt, "do") {
			case "enter":
				if g.enter(t, of, who) {
					holders[i][&g.leave[len(g.leave)-1]] = who
				}
			case "leave":
				for l := range holders[i] {
					(*l)()
					delete(holders[i], l)
					break
				}
			case "kill":
				f.kill(g)
				running[i], holders[i] = f.gateway(), map[*func()]string{}
			case "stop":
				f.stop(g)
				running[i], holders[i] = f.gateway(), map[*func()]string{}
			}
			check()
		}
		// Nothing stays behind: when all gateways have gone, the whole limit is free again.
		for i, g := range running[1:] {
			f.kill(g)
			holders[i+1] = nil
		}
		for l := range holders[0] {
			(*l)()
		}
		holders[0] = map[*func()]string{}
		last := running[0]
		defer f.stop(last)
		want := min(limit, own)
		for n := int64(0); n < want; n++ {
			last.Until(t, func() bool { return last.enter(t, of, "ann") })
		}
		require.False(rt, last.enter(t, of, "ann"))
	})
}

// Many at once, on two gateways: exactly the limit is admitted.
func TestARaceForTheLastConnections(t *testing.T) {
	c := bustest.Single(t)
	of := tenant(t, "race")
	var refusals atomic.Int64
	f := newFleet(t, c, quota.Policy{Tenants: map[string]quota.Override{"race": {Tenant: quota.Limits{Connections: 40}}}})
	a, b := f.gateway(), f.gateway()
	defer f.stop(a)
	defer f.stop(b)
	var in atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		g := []*gateway{a, b}[i%2]
		wg.Go(func() {
			switch _, err := g.Enter(t.Context(), of, fmt.Sprint("p", i%7)); {
			case err == nil:
				in.Add(1)
			case errors.Is(err, errExceeded):
				refusals.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, in.Load(), int64(40))
	require.Equal(t, int64(100), in.Load()+refusals.Load())
	a.Until(t, func() bool { // requests that were refused because of others' claims, which were refused too
		leave, err := a.Enter(t.Context(), of, "late")
		if err == nil && in.Add(1) > 40 {
			leave()
		}
		return in.Load() >= 40
	})
	_, err := b.Enter(t.Context(), of, "one-more")
	require.ErrorIs(t, err, errExceeded)
	require.Contains(t, err.Error(), "Your tenant has used up the quota of 40 connections at once")
	_, err = a.Enter(t.Context(), tenant(t, "others"), "x")
	require.NoError(t, err, "another tenant has no limit")
}

// A gateway counts a value that it reads late, even if it was replaced meanwhile.
func TestALateCopyCountsWhatWasWrittenOver(t *testing.T) {
	c := bustest.Single(t)
	of, stream := tenant(t, "late"), "KV_"+subject.QuotaBucket(audit.Connections)
	f := newFleet(t, c, quota.Policy{Tenants: map[string]quota.Override{"late": {Tenant: quota.Limits{Connections: 3}}}})
	a := f.gateway()
	defer f.stop(a)
	before := consumers(t, c, stream)
	b := f.gateway()
	defer f.stop(b)
	for name := range consumers(t, c, stream) {
		if !before[name] {
			_, err := c.JS().PauseConsumer(t.Context(), stream, name, time.Now().Add(time.Hour))
			require.NoError(t, err)
			defer func() { _, _ = c.JS().ResumeConsumer(context.Background(), stream, name) }()
			before[name] = false
		}
	}
	for range 3 {
		require.True(t, a.enter(t, of, "ann"))
	}
	entered := make(chan bool, 1)
	written := writes(t, c)
	go func() { entered <- b.enter(t, of, "bob") }()
	<-written
	require.False(t, a.enter(t, of, "ann"), "a refusal is written, and taken back")
	for name, other := range before {
		if !other {
			_, err := c.JS().ResumeConsumer(t.Context(), stream, name)
			require.NoError(t, err)
		}
	}
	require.False(t, <-entered)
}

func consumers(t *testing.T, c *bus.Conn, stream string) map[string]bool {
	t.Helper()
	s, err := c.JS().Stream(t.Context(), stream)
	require.NoError(t, err)
	out := map[string]bool{}
	names := s.ConsumerNames(t.Context())
	for name := range names.Name() {
		out[name] = true
	}
	require.NoError(t, names.Err())
	return out
}

// writes reports the next writes of the bucket.
func writes(t *testing.T, c *bus.Conn) <-chan jetstream.KeyValueEntry {
	t.Helper()
	kv, err := c.Bucket(t.Context(), subject.QuotaBucket(audit.Connections))
	require.NoError(t, err)
	w, err := kv.WatchAll(t.Context(), jetstream.UpdatesOnly())
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Stop() })
	return w.Updates()
}

func TestMessagesAreSharedByConnections(t *testing.T) {
	c := bustest.Single(t)
	of := tenant(t, "talk")
	f := newFleet(t, c, quota.Policy{Tenant: quota.Limits{Messages: 8}})
	start := time.Now()
	frozen := func() time.Time { return start }
	open := func() *gateway {
		g := f.gateway()
		g.Close()
		cfg := f.config(f.conn)
		cfg.Now, cfg.Instance = frozen, g.name
		var err error
		g.Connections, err = quota.OpenConnections(t.Context(), cfg)
		require.NoError(t, err)
		return g
	}
	a, b := open(), open()
	defer f.stop(a)
	defer f.stop(b)
	count := func(g *gateway) (n int) {
		for {
			wait, err := g.Allow(of, "ann")
			if err != nil {
				require.ErrorIs(t, err, errExceeded)
				require.Positive(t, wait)
				return n
			}
			n++
		}
	}
	for range 3 {
		require.True(t, a.enter(t, of, "ann"))
	}
	require.True(t, b.enter(t, of, "bob"))
	a.Until(t, func() bool { return a.Share(of) == 0.75 })
	b.Until(t, func() bool { return b.Share(of) == 0.25 })
	require.Equal(t, 6, count(a), "three of four connections are here")
	require.Equal(t, 2, count(b))
}

func TestPlacesOfEntities(t *testing.T) {
	c := bustest.Single(t)
	of := tenant(t, "acme")
	ended := sync.Map{}
	var refused []quota.Refusal
	var e quota.Entities
	err := e.Open(t.Context(), audit.Sessions, quota.Config{
		Conn: c, Policy: quota.Policy{Tenant: quota.Limits{Sessions: 2}, Principal: quota.Limits{Sessions: 1}}, Sweep: time.Millisecond,
		Over: func(_ context.Context, _ id.Tenant, s id.Entity) (bool, error) {
			_, over := ended.Load(s.String())
			return over, nil
		},
		Refused: func(r quota.Refusal) { refused = append(refused, r) },
	})
	require.NoError(t, err)
	defer e.Close()
	hold := func(who, session string) error { return e.Hold(t.Context(), of, who, entity(session)) }
	require.NoError(t, hold("ann", "s1"))
	require.NoError(t, hold("ann", "s1"), "a command that comes again takes no second place")
	require.ErrorIs(t, hold("ann", "s2"), errExceeded)
	require.NoError(t, hold("bob", "s3"))
	require.ErrorIs(t, hold("eve", "s4"), errExceeded)
	require.Equal(t, []string{quota.ScopePrincipal, quota.ScopeTenant}, []string{refused[0].Scope, refused[1].Scope})
	require.Equal(t, int64(2), refused[1].Limit)

	require.NoError(t, e.Free(t.Context(), of, entity("s3")))
	require.NoError(t, e.Free(t.Context(), of, entity("s3")), "again, when its end is handled again")
	e.Until(t, func() bool { return hold("eve", "s5") == nil })

	// A process died between the end of a session and the return of its holding.
	ended.Store("s1", true)
	e.Until(t, func() bool { return hold("ann", "s6") == nil })
}

// TestPlacesBesideManyOthers: 70 MiB of other holdings leave room for one more.
func TestPlacesBesideManyOthers(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	of := tenant(t, "acme")
	var e quota.Entities
	require.NoError(t, e.Open(t.Context(), audit.Sessions, quota.Config{Conn: c, Policy: quota.Policy{Tenant: quota.Limits{Sessions: 2}}}))
	defer e.Close()
	bustest.Fill(t, c, 70<<20, func(i int) string {
		q := subject.Quota{Tenant: tenant(t, "other"), Resource: audit.Sessions, Principal: entity("eve"), Holder: entity(fmt.Sprint(i))}
		return subject.BucketSubject(subject.QuotaBucket(audit.Sessions), q.Key())
	})
	require.NoError(t, e.Hold(t.Context(), of, "ann", entity("s1")))
}

func TestWhoHasNoLimitIsNotCounted(t *testing.T) {
	var e quota.Entities
	require.NoError(t, e.Open(t.Context(), audit.Teams, quota.Config{Policy: quota.Policy{Tenant: quota.Limits{Tokens: 1}}}))
	require.NoError(t, e.Hold(t.Context(), id.DefaultTenant, "x", entity("x")))
	require.NoError(t, e.Free(t.Context(), id.DefaultTenant, entity("x")))
	e.Close()
	var c *quota.Connections
	leave, err := c.Enter(t.Context(), id.DefaultTenant, "x")
	require.NoError(t, err)
	leave()
	_, err = c.Allow(id.DefaultTenant, "x")
	require.NoError(t, err)
	c.Close()
	var d *quota.Daily
	x := quota.Payer{Tenant: id.DefaultTenant, Principal: "x"}
	require.NoError(t, d.Check(x))
	require.NoError(t, d.Spend(t.Context(), x, 5, 1))
	require.NoError(t, d.Call(t.Context(), x))
	clock, err := d.Start(t.Context(), x, nil)
	require.NoError(t, err)
	clock.Stop()
	d.Close()
}

func TestOverridesSayWhatTheyChange(t *testing.T) {
	p := quota.Policy{
		Tenant: quota.Limits{Sessions: 10, Tokens: 5}, Principal: quota.Limits{Sessions: 2},
		Tenants: map[string]quota.Override{"big": {
			Tenant:     quota.Limits{Sessions: 100, Tokens: quota.None},
			Principal:  quota.Limits{CostUSD: 2, ToolCalls: 7, Time: time.Hour, OnExceeded: quota.Ask, AskTimeout: time.Minute},
			Principals: map[string]quota.Limits{"robot": {Sessions: quota.None, Messages: 1.5, CostUSD: quota.None, Time: -time.Second, OnExceeded: quota.Stop}},
		}},
	}
	tenantLimits, own := p.Of(tenant(t, "small"), "ann")
	require.Equal(t, quota.Limits{Sessions: 10, Tokens: 5}, tenantLimits)
	require.Equal(t, quota.Limits{Sessions: 2}, own)
	tenantLimits, own = p.Of(tenant(t, "big"), "robot")
	require.Equal(t, quota.Limits{Sessions: 100}, tenantLimits)
	require.Equal(t, quota.Limits{Messages: 1.5, ToolCalls: 7, OnExceeded: quota.Stop, AskTimeout: time.Minute}, own)
	require.True(t, p.Bounds(audit.Messages))
	require.False(t, p.Bounds(audit.Teams, audit.Connections))
}
