package load

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/chaos/verify"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// ending bounds how long clients may take for what they have begun when the load ends:
// several times what a task needs whose agent died.
const ending = 100 * time.Second

// party is one client of any dialect at work.
type party interface {
	// work does one unit after the other until stop is closed, and returns when what it
	// has begun has ended, or with an error when that does not end.
	work(ctx context.Context, stop <-chan struct{}) error
	// report is asked when work has returned, while the connection is still there.
	report() verify.Report
}

// Load is the clients of all dialects at work.
type Load struct {
	t    testing.TB
	s    *site.Site
	name string // unique among the loads of a site
	stop chan struct{}
	done sync.WaitGroup

	units   atomic.Int64
	mu      sync.Mutex
	slowest unit
	clients []party
	Chats   []*chat
	errs    []error
}

// Begin starts the clients and returns when units of all have ended.
func Begin(t testing.TB, s *site.Site, name string) *Load {
	t.Helper()
	l := &Load{t: t, s: s, name: name, stop: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for i, tenant := range site.Tenants {
		l.startAgents(ctx, tenant)
		l.add(newSwarmClient(ctx, l, tenant, i))
		l.add(newTeam(l, tenant, i))
		for _, k := range []int{i, i + 2} {
			c := newChat(ctx, l, tenant, k)
			l.Chats = append(l.Chats, c)
			l.add(c)
			l.add(newStalled(l, c, Dialects[k], k))
		}
		l.add(newPlans(ctx, l, tenant, i))
	}
	for _, c := range l.clients {
		l.done.Go(func() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				select {
				case <-l.stop:
				case <-ctx.Done():
					return
				}
				late := time.NewTimer(ending)
				defer late.Stop()
				select {
				case <-late.C:
					cancel()
				case <-ctx.Done():
				}
			}()
			if err := c.work(ctx, l.stop); err != nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.errs = append(l.errs, fmt.Errorf("%s: %w", c.report().Who, err))
			}
		})
	}
	return l
}

func (l *Load) add(c party) { l.clients = append(l.clients, c) }

// unit is what a client wanted and how long that took.
type unit struct {
	what string
	took time.Duration
	over time.Time
}

func (u unit) String() string {
	return fmt.Sprintf("the slowest unit took %v, until %s: %s", u.took.Round(100*time.Millisecond), u.over.UTC().Format("15:04:05.0"), u.what)
}

// ended counts a unit that was begun then.
func (l *Load) ended(what string, began time.Time) {
	l.units.Add(1)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if took := now.Sub(began); took > l.slowest.took {
		l.slowest = unit{what, took, now}
	}
}

// Slowest says which unit took longest.
func (l *Load) Slowest() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slowest.String()
}

// Units returns how many units have ended.
func (l *Load) Units() int { return int(l.units.Load()) }

// Await waits until n more units have ended.
func (l *Load) Await(ctx context.Context, n int) error {
	goal := l.Units() + n
	err := process.Until(ctx, func() bool { return l.Units() >= goal })
	if err != nil {
		return fmt.Errorf("%d of %d units: %w", n-goal+l.Units(), n, err)
	}
	return nil
}

// Finish lets the clients end what they have begun, and returns what they have to say.
func (l *Load) Finish() ([]verify.Report, []error) {
	close(l.stop)
	l.done.Wait()
	out := make([]verify.Report, len(l.clients))
	for i, c := range l.clients {
		out[i] = c.report()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return out, l.errs
}

// addrs are where the clients connect: the near ends of lines to the gateways.
func (l *Load) addrs() []string {
	var out []string
	for i := range l.s.Gateways {
		out = append(out, l.s.Proxies.End(fmt.Sprintf("gateway-%d", i+1)))
	}
	return out
}

// strange is what ids cannot hold.
var strange = regexp.MustCompile("[^A-Za-z0-9]+")

// nameOf returns the name of a client.
func (l *Load) nameOf(tenant, kind string, i int) string {
	return fmt.Sprintf("%s-load-%s-%s-%d", tenant, strings.Trim(strange.ReplaceAllString(l.name, "-"), "-"), kind, i)
}

// stopped reports whether the channel is closed.
func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// Chats has n clients of the first tenant get an answer each, and returns what shows
// their sessions, and the position of the last frame of each.
func Chats(ctx context.Context, t testing.TB, s *site.Site, name string, n int) (sessions []string, again func() (map[string]uint64, error)) {
	t.Helper()
	l := &Load{t: t, s: s, name: name, stop: make(chan struct{})}
	all := make([]*chat, n)
	ask := func() (map[string]uint64, error) {
		ends := map[string]uint64{}
		for _, c := range all {
			if err := c.ask(ctx); err != nil {
				return nil, err
			}
			c.mu.Lock()
			ends["/ws?session="+c.session] = c.last
			c.mu.Unlock()
		}
		return ends, nil
	}
	for i := range all {
		all[i] = newChat(ctx, l, site.Tenants[0], i)
	}
	if _, err := ask(); err != nil {
		t.Errorf("the first answers: %v", err)
	}
	for _, c := range all {
		c.mu.Lock()
		sessions = append(sessions, c.session)
		c.mu.Unlock()
	}
	return sessions, ask
}
