package events

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/events/canonical"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/sight"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// subscribeMaxWait bounds the wait for the bus to have a subscription: a client that is
// refused comes back.
const subscribeMaxWait = 5 * time.Second

// announced are the kinds of logs whose announcements are shown. Inboxes are their
// clients' own.
var announced = []id.Kind{id.KindSession, id.KindTask, id.KindTeam, id.KindMember}

// Announcements are the announcements of tenants, each of which is subscribed to once,
// while it has viewers. All methods are safe for concurrent use.
type Announcements struct {
	conn   *bus.Conn
	sight  *sight.Sight
	logger zerolog.Logger
	clock  func() time.Time

	turn    sync.Mutex // held while a tenant's subscriptions begin or end
	mu      sync.Mutex // guards what follows
	tenants map[id.Tenant]*tenant
}

// tenant is a tenant with viewers.
type tenant struct {
	subs    []*nats.Subscription
	stop    context.CancelFunc // ends the work of announce
	ended   sync.WaitGroup     // subscriptions that may call announce
	viewers map[*Live]struct{}
	dropped map[*nats.Subscription]int // announcements that this process was too slow for, as far as viewers know
}

// unheard counts the announcements that the client library has dropped since the last call. mu is held.
func (t *tenant) unheard(sub *nats.Subscription) int {
	n, err := sub.Dropped()
	if err != nil { // it has ended
		return 0
	}
	before := t.dropped[sub]
	t.dropped[sub] = n
	return n - before
}

// NewAnnouncements returns the announcements on the bus.
func NewAnnouncements(conn *bus.Conn, sight *sight.Sight, logger zerolog.Logger, clock func() time.Time) *Announcements {
	return &Announcements{conn: conn, sight: sight, logger: logger, clock: clock, tenants: map[id.Tenant]*tenant{}}
}

// Live shows the announcements of a tenant, without history: what is announced while the
// client is away, or does not read, it does not get, and is told so.
type Live struct {
	a      *Announcements
	tenant id.Tenant
	who    auth.Principal
	types  map[event.Type]bool // nil = all
	to     transport.Transport

	watches *stream.Watches

	mu   sync.Mutex
	lost int        // announcements since the queue was full
	lag  stream.Lag // while any are lost
}

var (
	_ Binding        = (*Live)(nil)
	_ stream.Watcher = (*Live)(nil)
)

// Show shows a principal the announcements of the types, without types all of them, from its
// return on: those of the logs of its tenant that it sees. It lists the viewer in w.
func (a *Announcements) Show(ctx context.Context, who auth.Principal, types []event.Type, to transport.Transport, w *stream.Watches) (*Live, error) {
	t := who.Tenant
	l := &Live{a: a, tenant: t, who: who, to: to, watches: w}
	for _, one := range types {
		if l.types == nil {
			l.types = map[event.Type]bool{}
		}
		l.types[one] = true
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	a.mu.Lock()
	of := a.tenants[t]
	fresh := of == nil
	if fresh {
		of = &tenant{viewers: map[*Live]struct{}{}, dropped: map[*nats.Subscription]int{}}
		a.tenants[t] = of
	}
	of.viewers[l] = struct{}{}
	a.mu.Unlock()
	if fresh {
		if err := a.subscribe(ctx, t, of); err != nil {
			a.leave(l)
			return nil, fault.New(fault.BusUnavailable).Wrap(err)
		}
	}
	w.Add(l)
	return l, nil
}

// subscribe begins the subscriptions of a tenant. turn is held.
func (a *Announcements) subscribe(ctx context.Context, t id.Tenant, of *tenant) error {
	life, stop := context.WithCancel(context.WithoutCancel(ctx)) // other viewers outlive the first
	of.stop = stop
	for _, k := range announced {
		sub, err := a.conn.NATS().Subscribe(subject.LiveTenantKind(t, k), func(m *nats.Msg) { a.announce(life, of, m) })
		if err != nil {
			return fmt.Errorf("subscribe to announcements of %s: %w", k, err)
		}
		of.ended.Add(1)
		sub.SetClosedHandler(func(string) { of.ended.Done() })
		of.subs = append(of.subs, sub)
	}
	ctx, cancel := context.WithTimeout(ctx, subscribeMaxWait)
	defer cancel()
	if err := a.conn.Flush(ctx); err != nil {
		return fmt.Errorf("subscribe to announcements: %w", err)
	}
	return nil
}

// leave takes a viewer off its tenant, and ends the subscriptions with the last. turn is
// held.
func (a *Announcements) leave(l *Live) {
	a.mu.Lock()
	of := a.tenants[l.tenant]
	delete(of.viewers, l)
	last := len(of.viewers) == 0
	if last {
		delete(a.tenants, l.tenant)
	}
	a.mu.Unlock()
	if !last {
		return
	}
	of.stop()
	for _, sub := range of.subs {
		if err := sub.Unsubscribe(); err != nil { // the connection is closed, and calls no handler
			a.logger.Debug().Err(err).Msg("failed to unsubscribe from announcements")
			of.ended.Done()
		}
	}
	of.ended.Wait()
}

// announce shows an announcement to the viewers of a tenant.
func (a *Announcements) announce(ctx context.Context, of *tenant, m *nats.Msg) {
	log, kind, err := subject.ParseLive(m.Subject)
	if err != nil {
		a.logger.Warn().Err(err).Str("subject", m.Subject).Msg("announcement dropped: invalid subject")
		return
	}
	one := transport.New(eventdata.RawForPeople(event.Type(kind), m.Data), kind, transport.Position{})
	visible := a.visible(ctx, of, log)
	a.mu.Lock()
	defer a.mu.Unlock()
	lost := of.unheard(m.Sub)
	for l := range of.viewers {
		l.miss(lost)
		if (l.types == nil || l.types[event.Type(kind)]) && (visible[l.who.Subject] || a.sight.SeesAll(l.who)) {
			l.show(one)
		}
	}
}

// sightMaxWait bounds the wait for the owner of a log that the gateway has not met yet.
const sightMaxWait = 2 * time.Second

// visible returns the subjects of the viewers that see the log although they do not see all.
func (a *Announcements) visible(ctx context.Context, of *tenant, log subject.Log) map[string]bool {
	a.mu.Lock()
	narrow := map[string]auth.Principal{}
	for l := range of.viewers {
		if !a.sight.SeesAll(l.who) {
			narrow[l.who.Subject] = l.who
		}
	}
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sightMaxWait)
	defer cancel()
	out := map[string]bool{}
	for name, who := range narrow {
		seen, err := a.sight.Sees(ctx, who, log)
		if err != nil && !errors.Is(err, context.Canceled) {
			a.logger.Warn().Err(err).Stringer("log", log).Msg("announcement hidden: owner of log unknown")
		}
		out[name] = seen && err == nil
	}
	return out
}

// show sends an announcement, or counts it as lost until the gap has room.
func (l *Live) show(m *transport.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.recover() || l.to.Send(m) == 0 {
		l.lose(1)
	}
}

// lose counts announcements that the client does not get. The caller has locked.
func (l *Live) lose(n int) {
	if l.lost == 0 {
		l.lag = stream.Lag{Reason: stream.QueueFull, Since: l.a.clock()}
	}
	l.lost += n
}

// State implements stream.Watcher.
func (l *Live) State() stream.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return stream.State{Missed: l.lost, Lag: l.lag}
}

// miss counts announcements that this process has lost: of all types, and of any session.
func (l *Live) miss(n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose(n)
	l.recover()
}

// recover tells the client what it has lost, and reports whether nothing is untold. The
// caller has locked.
func (l *Live) recover() bool {
	if l.lost == 0 {
		return true
	}
	gap := transport.New(canonical.Gap{Dropped: l.lost}.Encode(), canonical.EventGap, transport.Position{})
	if l.to.Send(gap) == 0 {
		return false
	}
	l.lost, l.lag = 0, stream.Lag{}
	return true
}

// Room implements Binding.
func (l *Live) Room() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recover()
}

// Close implements Binding.
func (l *Live) Close() {
	l.watches.Remove(l, l.a.logger)
	l.a.turn.Lock()
	defer l.a.turn.Unlock()
	l.a.leave(l)
}
