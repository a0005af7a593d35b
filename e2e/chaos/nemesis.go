package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Nemesis breaks things and keeps the evidence. Every one of its methods fails if what
// it was to do cannot be shown to have happened.
type Nemesis struct {
	s        *Site
	load     *Load
	random   *rand.Rand
	evidence []string
}

// NewNemesis returns one that chooses by the generator, while the load is there.
func (s *Site) NewNemesis(random *rand.Rand, load *Load) *Nemesis {
	return &Nemesis{s: s, load: load, random: random}
}

// Evidence is what shows that something was broken.
func (n *Nemesis) Evidence() []string { return n.evidence }

func (n *Nemesis) saw(format string, v ...any) {
	n.evidence = append(n.evidence, fmt.Sprintf(format, v...))
}

// one chooses a process.
func (n *Nemesis) one(members []*Member) *Member { return members[n.random.IntN(len(members))] }

// service chooses a process of a role.
func (n *Nemesis) service(role string) *Member { return n.one(n.s.Services[role]) }

// hold lets time pass.
func (n *Nemesis) hold(ctx context.Context, d time.Duration) error { return rest(ctx, d) }

// kill kills a process.
func (n *Nemesis) kill(m *Member) error {
	proof, err := m.Kill()
	if err == nil {
		n.saw("%s", proof)
	}
	return err
}

// killFor kills processes at once, and starts them again later.
func (n *Nemesis) killFor(ctx context.Context, d time.Duration, members ...*Member) error {
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

// pauseFor stops a process where it is, does something meanwhile, and lets it go on.
func (n *Nemesis) pauseFor(ctx context.Context, d time.Duration, m *Member, meanwhile func() error) error {
	proof, err := m.Pause()
	if err != nil {
		return err
	}
	defer m.Continue()
	n.saw("%s for %v", proof, d)
	if meanwhile != nil {
		if err := meanwhile(); err != nil {
			return err
		}
	}
	return n.hold(ctx, d)
}

// leave has a process end in good order, and starts it again.
func (n *Nemesis) leave(m *Member) error {
	proof, err := m.Leave()
	if err != nil {
		return err
	}
	n.saw("%s", proof)
	m.Start()
	return nil
}

// cutFor drops packets between a process and others, and does something meanwhile.
func (n *Nemesis) cutFor(ctx context.Context, d time.Duration, m *Member, way string, from []string, meanwhile func() error) (err error) {
	if err := m.Place.Cut(way, from...); err != nil {
		return err
	}
	defer func() {
		packets, e := m.Place.Heal()
		if e == nil && packets == 0 {
			e = fmt.Errorf("no packet between %s and %v was dropped", m.Name, from)
		}
		n.saw("%s: %d packets from or to %s dropped (%s)", m.Name, packets, strings.Join(from, " "), way)
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
func (n *Nemesis) bus(but ...*Member) (out []string) {
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

// everybody are the addresses of all processes but one, and of the lines to it.
func (n *Nemesis) everybody(but *Member) []string {
	out := n.bus(but)
	for _, m := range n.s.All() {
		if m != but {
			out = append(out, m.Place.IP)
		}
	}
	return append(out, n.s.Net.Hub())
}

// stream chooses a shard of the event log.
func (n *Nemesis) stream() string {
	all := subject.AllPartitions()
	return all[n.random.IntN(len(all))].EventStream()
}

// leader returns the server that leads a stream.
func (n *Nemesis) leader(ctx context.Context, stream string) (*Member, error) {
	for {
		s, err := n.s.js.Stream(ctx, stream)
		if err == nil && s.CachedInfo().Cluster != nil {
			for _, m := range n.s.Servers {
				if m.Name == s.CachedInfo().Cluster.Leader {
					return m, nil
				}
			}
		}
		if e := rest(ctx, minBackoff); e != nil {
			return nil, fmt.Errorf("leader of %s: %w: %w", stream, e, err)
		}
	}
}

// stepDown makes the leader of a stream give up, and waits until another was announced.
func (n *Nemesis) stepDown(ctx context.Context, stream string) error {
	before := n.s.elections()
	answer, err := n.s.conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil)
	if err != nil {
		return fmt.Errorf("step-down of %s: %w", stream, err)
	}
	var r struct {
		Success bool `json:"success"`
	}
	if err := json.Unmarshal(answer.Data, &r); err != nil || !r.Success {
		return fmt.Errorf("step-down of %s: %s", stream, answer.Data)
	}
	for n.s.elections() == before {
		if err := rest(ctx, minBackoff); err != nil {
			return fmt.Errorf("no election of %s was announced: %w", stream, err)
		}
	}
	return nil
}

// repeatFor publishes every tenth command again, without the mark by which the bus
// would notice.
func (n *Nemesis) repeatFor(ctx context.Context, d time.Duration) error {
	repeated := 0
	sub, err := n.s.conn.Subscribe("cmd.>", func(m *nats.Msg) {
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
		if n.s.conn.PublishMsg(again) == nil {
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
	if e := n.s.conn.FlushTimeout(dialTimeout); e != nil {
		return e
	}
	if repeated == 0 {
		return errors.Join(err, errors.New("no command was sent twice"))
	}
	n.saw("%d commands were sent twice", repeated)
	return err
}

// Healthy waits until every process says that it is well. One that could not start, as
// when the bus was away, is started again, as orchestrators do; one that crashed is not.
func (s *Site) Healthy(ctx context.Context) error {
	for _, m := range append(append([]*Member(nil), s.Servers...), s.All()...) {
		if err := m.Healthy(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Healthy is Healthy of one process.
func (m *Member) Healthy(ctx context.Context) error {
	url := "http://" + m.probe() + "/readyz"
	if m.Role == roleNATS {
		url = "http://" + m.probe() + "/healthz"
	}
	for {
		text, err := request(ctx, http.MethodGet, url, "", "")
		if err == nil {
			return nil
		}
		if e := m.revive(); e != nil {
			return e
		}
		if e := rest(ctx, minBackoff); e != nil {
			return fmt.Errorf("%s: %w: %w: %s", m.Name, e, err, text)
		}
	}
}

// revive starts a process that has ended by itself, unless it crashed.
func (m *Member) revive() error {
	select {
	case <-m.p.Ended():
	default:
		return nil
	}
	out := m.p.Output()
	for _, sign := range []string{"panic:", "fatal error:", "DATA RACE"} {
		if strings.Contains(out, sign) {
			return fmt.Errorf("%s crashed: %s", m.Name, out)
		}
	}
	m.s.t.Logf("%s ended by itself and is started again; it said last: %s", m.Name, out[max(0, len(out)-lastWords):])
	m.Start()
	return nil
}

// lastWords are shown of a process that ended by itself.
const lastWords = 600
