package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/e2e/chaos/load"
	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Injector breaks things and keeps the evidence. Every one of its methods fails if what
// it was to do cannot be shown to have happened.
type Injector struct {
	s        *site.Site
	load     *load.Load
	random   *rand.Rand
	evidence []string
}

// New returns one that chooses by the generator, while the load is there.
func New(s *site.Site, random *rand.Rand, load *load.Load) *Injector {
	return &Injector{s: s, load: load, random: random}
}

// Evidence is what shows that something was broken.
func (n *Injector) Evidence() []string { return n.evidence }

func (n *Injector) note(format string, v ...any) {
	n.evidence = append(n.evidence, fmt.Sprintf(format, v...))
}

// one chooses a process.
func (n *Injector) one(members []*site.Member) *site.Member {
	return members[n.random.IntN(len(members))]
}

// service chooses a process of a role.
func (n *Injector) service(role string) *site.Member { return n.one(n.s.Services[role]) }

// otherServer chooses a NATS server that is not m.
func (n *Injector) otherServer(m *site.Member) *site.Member {
	for {
		if other := n.one(n.s.Servers); other != m {
			return other
		}
	}
}

// hold lets time pass.
func (n *Injector) hold(ctx context.Context, d time.Duration) error { return process.Rest(ctx, d) }

// kill kills a process.
func (n *Injector) kill(m *site.Member) error {
	proof, err := m.Kill()
	if err == nil {
		n.note("%s", proof)
	}
	return err
}

// killFor kills processes at once, and starts them again later.
func (n *Injector) killFor(ctx context.Context, d time.Duration, members ...*site.Member) error {
	for _, m := range members {
		if err := n.kill(m); err != nil {
			return err
		}
	}
	err := n.hold(ctx, d)
	for _, m := range members {
		m.Start()
	}
	return err
}

// pauseFor stops a process where it is, does something meanwhile, and lets it continue.
func (n *Injector) pauseFor(ctx context.Context, d time.Duration, m *site.Member, meanwhile func() error) error {
	proof, err := m.Pause()
	if err != nil {
		return err
	}
	defer m.Continue()
	n.note("%s for %v", proof, d)
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return err
		}
	}
	return n.hold(ctx, d)
}

// stop has a process end in good order, and starts it again.
func (n *Injector) stop(m *site.Member) error {
	proof, err := m.Leave()
	if err != nil {
		return err
	}
	n.note("%s", proof)
	m.Start()
	return nil
}

// cutFor drops packets between a process and others, and does something meanwhile.
func (n *Injector) cutFor(ctx context.Context, d time.Duration, m *site.Member, way string, from []string, meanwhile func() error) (err error) {
	if err := m.Place.Cut(way, from...); err != nil {
		return err
	}
	defer func() {
		packets, e := m.Place.Heal()
		if e == nil && packets == 0 {
			e = fmt.Errorf("no packet between %s and %v was dropped", m.Name, from)
		}
		n.note("%s: %d packets from or to %s dropped (%s)", m.Name, packets, strings.Join(from, " "), way)
		err = errors.Join(err, e)
	}()
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return err
		}
	}
	return n.hold(ctx, d)
}

// bus are the addresses of the NATS servers, but for those of some.
func (n *Injector) bus(but ...*site.Member) (out []string) {
	for _, m := range n.s.Servers {
		for _, b := range but {
			if m == b {
				m = nil
				break
			}
		}
		if m != nil {
			out = append(out, m.Place.IP)
		}
	}
	return out
}

// allAddresses are the addresses of all processes but one, and of the lines to it.
func (n *Injector) allAddresses(but *site.Member) []string {
	out := n.bus(but)
	for _, m := range n.s.All() {
		if m != but {
			out = append(out, m.Place.IP)
		}
	}
	return append(out, n.s.Net.Hub())
}

// stream chooses a shard of the event log.
func (n *Injector) stream() string {
	all := subject.DefaultPartitions.All()
	return all[n.random.IntN(len(all))].EventStream()
}

// leader returns the server that leads a stream.
func (n *Injector) leader(ctx context.Context, stream string) (*site.Member, error) {
	for {
		s, err := n.s.Js.Stream(ctx, stream)
		if err == nil && s.CachedInfo().Cluster != nil {
			for _, m := range n.s.Servers {
				if m.Name == s.CachedInfo().Cluster.Leader {
					return m, nil
				}
			}
		}
		if e := process.Rest(ctx, process.Poll); e != nil {
			return nil, fmt.Errorf("leader of %s: %w: %w", stream, e, err)
		}
	}
}

// stepDown makes the leader of a stream give up, and waits until another was announced.
func (n *Injector) stepDown(ctx context.Context, stream string) error {
	before := n.s.Elections()
	answer, err := n.s.Conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil)
	if err != nil {
		return fmt.Errorf("step-down of %s: %w", stream, err)
	}
	var r struct {
		Success bool `json:"success"`
	}
	if err := json.Unmarshal(answer.Data, &r); err != nil || !r.Success {
		return fmt.Errorf("step-down of %s: %s", stream, answer.Data)
	}
	for n.s.Elections() == before {
		if err := process.Rest(ctx, process.Poll); err != nil {
			return fmt.Errorf("no election of %s was announced: %w", stream, err)
		}
	}
	return nil
}

// repeatFor publishes every tenth command again, without the mark by which the bus
// would notice.
func (n *Injector) repeatFor(ctx context.Context, d time.Duration) error {
	repeated := 0
	sub, err := n.s.Conn.Subscribe("cmd.>", func(m *nats.Msg) {
		if n.random.IntN(10) != 0 {
			return
		}
		again := nats.NewMsg(m.Subject)
		again.Data = m.Data
		for k, v := range m.Header {
			if k != nats.MsgIdHdr {
				again.Header[k] = v
			}
		}
		if n.s.Conn.PublishMsg(again) == nil {
			repeated++
		}
	})
	if err != nil {
		return err
	}
	err = n.hold(ctx, d)
	sub.SetClosedHandler(nil)
	if e := sub.Unsubscribe(); e != nil {
		return e
	}
	if e := n.s.Conn.FlushTimeout(load.DialTimeout); e != nil {
		return e
	}
	if repeated == 0 {
		return errors.Join(err, errors.New("no command was sent twice"))
	}
	n.note("%d commands were sent twice", repeated)
	return err
}
