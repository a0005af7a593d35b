package quota_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
)

// noon is the first day of these tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// calendar is a clock that the test moves, and that may differ for others.
type calendar struct{ moved atomic.Int64 }

func (c *calendar) skip(d time.Duration) { c.moved.Add(int64(d)) }

func (c *calendar) now() time.Time { return noon.Add(time.Duration(c.moved.Load())) }

func (c *calendar) wrong(by time.Duration) func() time.Time {
	return func() time.Time { return c.now().Add(by) }
}

// workers counts those of this test process.
var workers atomic.Int64

func daily(t testing.TB, c *bus.Conn, p quota.Policy, now func() time.Time) *quota.Daily {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	d, err := quota.OpenDaily(ctx, quota.Config{
		Conn: c, Policy: p, Now: now, Slice: 50 * time.Millisecond, Instance: fmt.Sprint("worker-", workers.Add(1)),
	})
	require.NoError(t, err)
	return d
}

func TestTheDaysTokensAndMoney(t *testing.T) {
	url, restart := bustest.Server(t)
	var today calendar
	p := quota.Policy{Tenant: quota.Limits{Tokens: 100, CostUSD: 1.5}}
	open := func() *quota.Daily {
		d := daily(t, bustest.Dial(t, url), p, today.now)
		t.Cleanup(d.Close)
		return d
	}
	of := tenant(t, "acme")
	ann, bob := quota.Payer{Tenant: of, Principal: "ann"}, quota.Payer{Tenant: of, Principal: "bob"}
	a, b := open(), open()
	require.NoError(t, a.Spend(t.Context(), ann, 60, 0.7))
	require.NoError(t, a.Check(ann))
	require.NoError(t, b.Spend(t.Context(), bob, 39, 0.8))
	a.Until(t, audit.CostUSD, func() bool { return a.Check(ann) != nil })
	err := b.Check(bob)
	require.ErrorIs(t, err, errExceeded)
	require.Contains(t, err.Error(), "Your tenant has used $1.5000 of $1.5000 of today. More is available from 2026-03-02T00:00:00Z")
	require.NoError(t, a.Spend(t.Context(), ann, 6, 0))
	err = a.Check(ann)
	require.ErrorContains(t, err, "105 of 100 tokens of today", "what was on when the limit was reached is counted")
	require.NoError(t, a.Check(quota.Payer{Tenant: tenant(t, "others"), Principal: "ann"}), "another tenant has its own")
	restart()
	require.Eventually(t, func() bool { return b.Spend(t.Context(), bob, 1, 0) == nil }, maxWait, time.Millisecond)
	require.ErrorIs(t, open().Check(quota.Payer{Tenant: of, Principal: "eve"}), errExceeded, "a worker that comes later knows")
	today.skip(12 * time.Hour)
	require.NoError(t, a.Check(ann))
	require.NoError(t, b.Check(bob))
}

// Tool calls are refused before they begin: exactly the limit begins, on all workers together, of which one dies.
func TestTheDaysToolCalls(t *testing.T) {
	c := bustest.Single(t)
	var today calendar
	p := quota.Policy{Tenant: quota.Limits{ToolCalls: 7, OnExceeded: quota.Ask, AskTimeout: time.Hour}, Principal: quota.Limits{ToolCalls: 4}}
	open := func() *quota.Daily { return daily(t, c, p, today.now) }
	of := tenant(t, "acme")
	ann, bob := quota.Payer{Tenant: of, Principal: "ann"}, quota.Payer{Tenant: of, Principal: "bob"}
	cfg := func(d *quota.Daily, who quota.Payer, n int) {
		t.Helper()
		for range n {
			d.Until(t, audit.ToolCalls, func() bool { return d.Call(t.Context(), who) == nil })
		}
	}
	doomed, b := open(), open()
	defer b.Close()
	cfg(doomed, ann, 3)
	doomed.Kill()
	cfg(b, ann, 1)
	err := b.Call(t.Context(), ann)
	require.ErrorContains(t, err, "You have used 4 of 4 tool calls of today. More is available from 2026-03-02T00:00:00Z")
	o, ok := errors.AsType[*quota.Over](err)
	require.True(t, ok)
	require.Equal(t, quota.ScopePrincipal, o.Scope)
	require.False(t, o.Ask, "people are not asked about quotas of principals")
	cfg(b, bob, 3)
	err = b.Call(t.Context(), bob)
	require.ErrorContains(t, err, "Your tenant has used 7 of 7 tool calls of today")
	o, ok = errors.AsType[*quota.Over](err)
	require.True(t, ok)
	require.True(t, o.Ask)
	require.Equal(t, time.Hour, o.AskTimeout)
	require.Equal(t, "2026-03-01", o.Day)
	cfg(b, quota.Payer{Tenant: tenant(t, "others"), Principal: "bob"}, 4)

	// People let bob's run continue: up to as much once more, and on that day only.
	let := func(day string) quota.Payer {
		return quota.Payer{Tenant: of, Principal: "eve", Granted: func(resource, scope, on string) int {
			if resource == "tool_calls" && scope == quota.ScopeTenant && on == day {
				return 1
			}
			return 0
		}}
	}
	require.Error(t, b.Call(t.Context(), let("2026-03-02")))
	cfg(b, let("2026-03-01"), 4)
	require.ErrorContains(t, b.Call(t.Context(), let("2026-03-01")), "You have used 4 of 4")
	require.Error(t, b.Call(t.Context(), bob), "others are not let go on")
	today.skip(12 * time.Hour)
	cfg(b, ann, 4)
}

func TestARaceForTheLastToolCalls(t *testing.T) {
	c := bustest.Single(t)
	var today calendar
	p := quota.Policy{Tenant: quota.Limits{ToolCalls: 30}}
	a, b := daily(t, c, p, today.now), daily(t, c, p, today.now)
	defer a.Close()
	defer b.Close()
	var begun atomic.Int64
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			if []*quota.Daily{a, b}[i%2].Call(t.Context(), quota.Payer{Tenant: tenant(t, "race"), Principal: fmt.Sprint(i % 5)}) == nil {
				begun.Add(1)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, begun.Load(), int64(30))
	a.Until(t, audit.ToolCalls, func() bool { // those that were refused take nothing away
		if a.Call(t.Context(), quota.Payer{Tenant: tenant(t, "race"), Principal: "late"}) == nil {
			begun.Add(1)
		}
		return begun.Load() == 30
	})
	require.Error(t, b.Call(t.Context(), quota.Payer{Tenant: tenant(t, "race"), Principal: "one-more"}))
}

// Time is taken before its use: the time of a dead worker stays counted, and a worker that ends returns its unused
// time.
func TestTheDaysTime(t *testing.T) {
	c := bustest.Single(t)
	var today calendar
	p := quota.Policy{Tenants: map[string]quota.Override{
		"acme": {Tenant: quota.Limits{Time: time.Hour}}, "tiny": {Tenant: quota.Limits{Time: 300 * time.Millisecond}},
	}}
	a, doomed := daily(t, c, p, today.now), daily(t, c, p, today.now)
	defer a.Close()
	used := func(of string) int64 { return a.Used(audit.Time, tenant(t, of), "ann", "20260301").Tenant }
	ann := quota.Payer{Tenant: tenant(t, "acme"), Principal: "ann"}
	never := func(o *quota.Over) { t.Error("it is over: ", o) }
	began := time.Now()
	one, err := a.Start(t.Context(), ann, never)
	require.NoError(t, err)
	two, err := doomed.Start(t.Context(), ann, never)
	require.NoError(t, err)
	a.Until(t, audit.Time, func() bool { return used("acme") >= 400 })
	doomed.Kill()
	two.Stop() // its process has gone: that changes nothing
	lost := a.Used(audit.Time, ann.Tenant, "ann", "20260301")
	one.Stop()
	one.Stop()
	most := 2*(time.Since(began).Milliseconds()+1) + 50 // both, each rounded up to a millisecond, and the last slice of the dead one
	a.Until(t, audit.Time, func() bool { return used("acme") <= most })
	require.GreaterOrEqual(t, lost.Tenant, int64(400))

	// At the limit running work is told, and new work does not begin.
	told := make(chan *quota.Over, 1)
	of := quota.Payer{Tenant: tenant(t, "tiny"), Principal: "ann"}
	last, err := a.Start(t.Context(), of, func(o *quota.Over) { told <- o })
	require.NoError(t, err)
	select {
	case o := <-told:
		require.ErrorIs(t, o, errExceeded)
	case <-time.After(maxWait):
		require.FailNow(t, "no notification came")
	}
	last.Stop()
	_, err = a.Start(t.Context(), of, never)
	require.ErrorIs(t, err, errExceeded)
	require.ErrorContains(t, err, "0 seconds of work of today")
	today.skip(12 * time.Hour)
	next, err := a.Start(t.Context(), of, func(*quota.Over) {})
	require.NoError(t, err)
	next.Stop()
}

// However wrong the workers' clocks are, by minutes around midnight: a use is counted once, on one day, and the same
// for all readers; on no day begin more calls than are allowed; and no worker removes holdings that others still
// count.
func TestDaysOfWorkersWhoseClocksDiffer(t *testing.T) {
	c := bustest.Single(t)
	const limit = 5
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		var today calendar
		today.skip(12*time.Hour - 15*time.Minute)
		of := quota.Payer{Tenant: tenant(t, fmt.Sprintf("t%d", round)), Principal: "ann"}
		p := quota.Policy{Tenant: quota.Limits{Tokens: 1 << 40, ToolCalls: limit}}
		clocks, fleet := []func() time.Time{}, []*quota.Daily{}
		for i := range 3 {
			by := time.Duration(rapid.IntRange(-10, 10).Draw(rt, "minutes")) * time.Minute
			clocks = append(clocks, today.wrong(by))
			fleet = append(fleet, daily(t, c, p, clocks[i]))
			defer fleet[i].Close()
		}
		tokens, calls := map[string]int64{}, map[string]int64{}
		for range rapid.IntRange(4, 16).Draw(rt, "steps") {
			i := rapid.IntRange(0, len(fleet)-1).Draw(rt, "worker")
			day := clocks[i]().Format("20060102")
			switch rapid.SampledFrom([]string{"spend", "spend", "call", "call", "wait", "sweep"}).Draw(rt, "do") {
			case "spend":
				n := rapid.Int64Range(1, 50).Draw(rt, "tokens")
				require.NoError(rt, fleet[i].Spend(context.Background(), of, n, 0))
				tokens[day] += n
			case "call":
				err := fleet[i].Call(context.Background(), of)
				if err == nil {
					calls[day]++
				} else {
					require.ErrorIs(rt, err, errExceeded)
				}
			case "wait":
				today.skip(time.Duration(rapid.IntRange(1, 10).Draw(rt, "pass")) * time.Minute)
			case "sweep":
				require.Zero(rt, fleet[i].Sweep(context.Background(), audit.Tokens))
			}
		}
		for _, w := range fleet {
			for _, day := range []string{"20260301", "20260302"} {
				require.LessOrEqual(rt, calls[day], int64(limit))
				w.Until(t, audit.Tokens, func() bool {
					return w.Used(audit.Tokens, of.Tenant, "ann", day) == quota.Sums{Tenant: tokens[day], Principal: tokens[day]}
				})
				w.Until(t, audit.ToolCalls, func() bool { return w.Used(audit.ToolCalls, of.Tenant, "ann", day).Tenant == calls[day] })
			}
		}
		today.skip(4 * 24 * time.Hour)
		require.Eventually(rt, func() bool {
			fleet[0].Sweep(context.Background(), audit.Tokens)
			return fleet[1].Used(audit.Tokens, of.Tenant, "ann", "20260301") == quota.Sums{}
		}, maxWait, time.Millisecond, "long after, it is forgotten")
	})
}
