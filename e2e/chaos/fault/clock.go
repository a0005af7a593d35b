package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/e2e/chaos/load"
	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

const (
	// farOff is more than every deadline and lease of the load, and than the two
	// minutes for which NATS knows a message again.
	farOff = 10 * time.Minute
	// halfOff is the same for two clocks that are wrong in opposite directions.
	halfOff = 5 * time.Minute
)

// stamps are the events that were published with a wrong time, by who published them.
type stamps struct {
	mu  sync.Mutex
	off map[string]int
	far map[string]time.Duration
}

// listen notes the times of all events that are published from now on.
func listen(s *site.Site) (*stamps, *nats.Subscription, error) {
	w := &stamps{off: map[string]int{}, far: map[string]time.Duration{}}
	sub, err := s.Conn.Subscribe("evt.>", func(m *nats.Msg) {
		var e struct {
			Source string    `json:"source"`
			Time   time.Time `json:"time"`
		}
		if json.Unmarshal(m.Data, &e) != nil {
			return // the check of the logs reports it
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if off := time.Until(e.Time); off.Abs() > time.Minute {
			w.off[e.Source]++
			w.far[e.Source] = off
		}
	})
	return w, sub, err
}

// tell adds what was noted to the evidence.
func (w *stamps) tell(n *Injector) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, source := range slices.Sorted(maps.Keys(w.off)) {
		n.note("%d events of %s have a wrong time, one of them by %.0f s", w.off[source], source, w.far[source].Seconds())
	}
}

// wrongFor sets clocks, lets the processes work with them for longer than a lease, and sets them right again:
// each clock steps twice while its process runs.
func (n *Injector) wrongFor(ctx context.Context, by map[*site.Member]time.Duration) error {
	heard, sub, err := listen(n.s)
	if err != nil {
		return err
	}
	for m, shift := range by {
		err = errors.Join(err, n.set(ctx, m, shift))
	}
	err = errors.Join(err, n.hold(ctx, lease), sub.Unsubscribe())
	heard.tell(n)
	for m := range by {
		err = errors.Join(err, n.set(ctx, m, 0))
	}
	return err
}

func clocks() []Fault {
	one := func(pick func(*Injector) *site.Member, shift time.Duration) func(context.Context, *Injector) error {
		return func(ctx context.Context, n *Injector) error {
			return n.wrongFor(ctx, map[*site.Member]time.Duration{pick(n): shift})
		}
	}
	apart := func(role string) func(context.Context, *Injector) error {
		return func(ctx context.Context, n *Injector) error {
			two := n.s.Services[role]
			return n.wrongFor(ctx, map[*site.Member]time.Duration{two[0]: halfOff, two[1]: -halfOff})
		}
	}
	service := func(role string) func(*Injector) *site.Member {
		return func(n *Injector) *site.Member { return n.service(role) }
	}
	gateway := func(n *Injector) *site.Member { return n.one(n.s.Gateways) }
	server := func(n *Injector) *site.Member { return n.one(n.s.Servers) }
	out := []Fault{
		{Name: "clock of gateway 10 min ahead", Strike: one(gateway, farOff)},
		{Name: "clock of gateway 10 min behind", Strike: one(gateway, -farOff)},
		{Name: "clock of agent 10 min behind", Strike: one(service(config.RoleWorker), -farOff)},
		{Name: "clocks of agent 10 min apart", Strike: apart(config.RoleWorker)},
		{Name: "clocks of pipeline 10 min apart", Strike: apart(config.RolePipeline)},
		{Name: "clocks of task 10 min apart", Strike: apart(config.RoleTask)},
		{Name: "clocks of team 10 min apart", Strike: apart(config.RoleTeam)},
		{Name: "clock of NATS server 10 min ahead", Strike: one(server, farOff)},
		{Name: "all clocks apart", Strike: func(ctx context.Context, n *Injector) error {
			by := map[*site.Member]time.Duration{}
			for _, m := range n.s.All() {
				by[m] = time.Duration(n.random.IntN(2*600)-600) * time.Second
			}
			return n.wrongFor(ctx, by)
		}},
		{Name: "kill -9 worker, back with a clock 10 min behind", Strike: func(ctx context.Context, n *Injector) error {
			m := n.service(config.RoleWorker)
			if err := errors.Join(m.Shift(-farOff), n.killFor(ctx, away, m)); err != nil {
				return err
			}
			return n.wrongFor(ctx, map[*site.Member]time.Duration{m: -farOff})
		}},
	}
	for i := range out {
		out[i].Clock = true
	}
	return out
}

// set sets a clock and waits until the process shows it.
func (n *Injector) set(ctx context.Context, m *site.Member, d time.Duration) error {
	if err := m.Shift(d); err != nil {
		return err
	}
	for {
		try, cancel := context.WithTimeout(ctx, load.DialTimeout)
		at, err := m.Ahead(try)
		cancel()
		if err == nil && (at-d).Abs() < site.ClockSlack {
			if d != 0 {
				n.note("the clock of %s is set to %+v; its answers are dated %+.0f s", m.Name, d, at.Seconds())
			}
			return nil
		}
		if e := process.Rest(ctx, process.Poll); e != nil {
			return fmt.Errorf("%s does not show its clock: %+v where %+v was set: %w: %w", m.Name, at, d, e, err)
		}
	}
}
