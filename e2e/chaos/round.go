package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/e2e/chaos/fault"
	"github.com/waggle-dev/waggle/e2e/chaos/load"
	"github.com/waggle-dev/waggle/e2e/chaos/report"
	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/chaos/verify"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

const (
	// warmUp and coolDown are units of work before and after a fault.
	warmUp   = 12
	coolDown = 12
	// striking bounds a fault; the longest one restarts everything.
	striking = 5 * time.Minute
	// judging bounds what comes after it.
	judging = 2 * time.Minute
	// memory is what a process may need. It needs a fifth of that.
	memory = 512 << 20
)

// Round puts the installation under load, breaks it, and judges.
func Round(t testing.TB, s *site.Site, f fault.Fault, random *rand.Rand, record *verify.Record) report.Row {
	t.Helper()
	row := report.Row{Fault: f.Name}
	if own, why := s.Net.Isolated(); f.Alone && !own {
		row.Why = why
		return row
	}
	ctx, cancel := context.WithTimeout(context.Background(), striking)
	defer cancel()
	dead, payments := deadLetters(ctx, t, s), s.Bank.Payments()
	load := load.Begin(t, s, f.Name)
	began := time.Now()
	n := fault.New(s, random, load)
	err := errors.Join(wrap("before the fault", load.Await(ctx, warmUp)))
	if err == nil {
		err = wrap("the fault", f.Strike(ctx, n))
	}
	if err == nil {
		err = errors.Join(wrap("after the fault", load.Await(ctx, coolDown)))
	}
	if err == nil { // or nothing could be judged of effects
		err = wrap("a payment", process.Until(ctx, func() bool { return s.Bank.Payments() > payments }))
	}
	err = errors.Join(err, wrap("recovery", s.Healthy(ctx)))
	reports, errs := load.Finish()
	for _, e := range errs {
		err = errors.Join(err, e)
	}
	if len(n.Evidence()) == 0 {
		err = errors.Join(err, errors.New("nothing shows that the fault happened"))
	}
	if err != nil {
		t.Errorf("%s: %v", f.Name, err)
	}
	row.Evidence, row.Units, row.Seconds = append(n.Evidence(), load.Slowest()), load.Units(), time.Since(began).Seconds()
	row.Verdict = judge(t, s, reports, record, f, dead)
	for _, r := range reports {
		row.Returns = max(row.Returns, r.Returns)
		if len(r.Refused) > 0 {
			row.Evidence = append(row.Evidence, fmt.Sprintf("%s was refused %v", r.Who, r.Refused))
		}
	}
	if f.Returns != 0 {
		row.Graceful = graceful(f, row.Verdict, reports)
	}
	return row
}

// graceful sums up what clients had of a fault that they were not to notice.
func graceful(f fault.Fault, v *verify.Verdict, reports []verify.Report) *report.Graceful {
	g := &report.Graceful{Clients: len(reports), Restarts: max(0, f.Returns), Missed: v[verify.PromiseResume].Breaches()}
	for _, r := range reports {
		g.Asked += len(r.Asked)
		g.Events += len(r.Seen)
		g.Failed += r.Unknown
		for _, n := range r.Refused {
			g.Failed += n
		}
	}
	g.Failed += v[verify.PromiseWork].Breaches()
	return g
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// judge reads what is stored and compares.
func judge(t testing.TB, s *site.Site, reports []verify.Report, record *verify.Record, f fault.Fault, dead uint64) *verify.Verdict {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), judging)
	defer cancel()
	v := &verify.Verdict{}
	if err := s.Quiet(ctx); err != nil {
		v[verify.PromiseBounded].AddBroken("%v", err)
	}
	if err := record.Read(ctx, s.Js); err != nil {
		t.Errorf("the logs cannot be read: %v", err)
	}
	fresh := record.Fresh()
	verify.Logs(v, fresh, s.Bank.Paid)
	if f.Clock {
		verify.Deadlines(v, fresh)
	}
	for i, r := range reports {
		verify.Requests(v, r, record.Logs)
		again, err := r.Again(ctx, s.Gateways[i%len(s.Gateways)].Addr)
		if err != nil {
			v[verify.PromiseResume].AddLost("%s: %v", r.Who, err)
		}
		verify.Frames(v, r, again)
		probe(ctx, s, v, r)
		allowed := max(0, f.Returns)
		if f.Returns != 0 && r.Returns > allowed {
			v[verify.PromiseResume].AddBroken("%s came back %d times, of %d: %s", r.Who, r.Returns, allowed, strings.Join(r.Why, "; "))
		}
		if f.Returns != 0 && len(r.Refused) > 0 {
			v[verify.PromiseWork].AddBroken("%s was refused %v", r.Who, r.Refused)
		}
	}
	bounds(ctx, t, s, v, dead)
	return v
}

// probe asks as another tenant for what a client has.
func probe(ctx context.Context, s *site.Site, v *verify.Verdict, r verify.Report) {
	paths := map[string]string{"session": "/api/v1/sessions/", "task": "/api/v1/tasks/", "team": "/api/v1/teams/"}
	c := &v[verify.PromiseIsolation]
	for _, tenant := range site.Tenants {
		for i, name := range r.Logs {
			parts := strings.SplitN(name, ".", 3)
			path, ok := paths[parts[1]]
			if !ok || tenant == r.Tenant || i > 1 {
				continue
			}
			c.Checked++
			text, err := site.Request(ctx, http.MethodGet, "http://"+s.Gateways[0].Addr+path+parts[2], site.KeyOf(tenant), "")
			if err == nil || !strings.Contains(err.Error(), "404") {
				c.AddBroken("%s asks for %s of %s: %v %s", tenant, name, r.Tenant, err, text)
			}
		}
	}
}

// bounds looks at what may not grow.
func bounds(ctx context.Context, t testing.TB, s *site.Site, v *verify.Verdict, dead uint64) {
	t.Helper()
	c := &v[verify.PromiseBounded]
	for _, m := range s.All() {
		c.Checked++
		used, err := m.Memory()
		if err != nil || used > memory {
			c.AddBroken("%s uses %d bytes: %v", m.Name, used, err)
		}
	}
	c.Checked++
	if now := deadLetters(ctx, t, s); now > dead {
		c.AddLost("%d commands were given up", now-dead)
	}
}

// deadLetters returns how many commands have been given up so far.
func deadLetters(ctx context.Context, t testing.TB, s *site.Site) uint64 {
	t.Helper()
	stream, err := s.Js.Stream(ctx, "DEAD")
	if err != nil {
		t.Errorf("dead letters: %v", err)
		return 0
	}
	return stream.CachedInfo().State.LastSeq
}
