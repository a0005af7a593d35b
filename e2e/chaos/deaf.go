package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// earSize is the receive buffer of a viewer that does not read: the least that the
// kernel gives, so that what it does not read waits at the gateway and not here.
const earSize = 2304

// manner is how a session is watched in one dialect.
type manner struct {
	name   string
	path   string // up to the session
	whole  bool   // whoever comes back is shown the whole log, not what it has not seen
	frames uint64 // positions of one event
	seq    func(raw string) uint64
	loose  func(raw string) (of, text string, loose bool)
}

// manners are all dialects.
var manners = []manner{
	{name: "ORBIT", path: "/ws?deltas=true&watch=session/", frames: 1, loose: looseChat, seq: func(raw string) uint64 { return orbitOf(raw).Seq }},
	{name: "MyAgent", path: "/ws/session?deltas=all&watch=session/", frames: 1, loose: loosePlan, seq: func(raw string) uint64 { return orbitOf(raw).Seq }},
	{name: "ASP", path: "/ws/asp/client?watch=session/", frames: 1, whole: true, seq: watchedSeq, loose: func(string) (string, string, bool) { return "", "", false }},
	{name: "team", path: "/ws/agent-team?watch=session/", frames: 16, loose: looseTeam, seq: func(raw string) uint64 {
		var f teamFrame
		_ = json.Unmarshal([]byte(raw), &f) // others have no position
		return f.Payload.Envelope.Sequence
	}},
}

func watchedSeq(raw string) uint64 {
	var f struct {
		Watched struct {
			Seq uint64 `json:"seq"`
		} `json:"watched"`
	}
	_ = json.Unmarshal([]byte(raw), &f) // others have no position
	return f.Watched.Seq
}

// deaf is a viewer of somebody's chat that connects, reads nothing until the load is
// over, and then has to see everything.
type deaf struct {
	l      *Load
	who    string
	manner manner
	of     *chat
	addrs  []string // without the lines to the gateways: those would read

	last    uint64
	opened  int
	silent  int // connections that were ended because nothing came from this side for too long
	seen    []Seen
	why     []string
	session string
}

func newDeaf(l *Load, of *chat, m manner, i int) *deaf {
	d := &deaf{l: l, who: l.who(of.tenant, "deaf-"+m.name, i), manner: m, of: of}
	for k := range l.s.Gateways {
		d.addrs = append(d.addrs, l.s.Gateways[(i+k)%len(l.s.Gateways)].Addr)
	}
	return d
}

func (d *deaf) work(ctx context.Context, stop <-chan struct{}) error {
	for d.session = d.of.name(); d.session == ""; d.session = d.of.name() {
		if err := rest(ctx, minBackoff); err != nil {
			return err
		}
	}
	conn, err := d.attend(ctx)
	if err != nil {
		return err
	}
	select {
	case <-stop:
	case <-ctx.Done():
	}
	select {
	case <-d.of.over:
	case <-ctx.Done():
	}
	goal := d.of.position()
	for d.last/d.manner.frames < goal {
		if err := d.hear(ctx, conn); err != nil {
			return fmt.Errorf("session %s at %d of %d: %w", d.session, d.last, goal, err)
		}
		if d.last/d.manner.frames >= goal {
			break
		}
		if conn, err = d.attend(ctx); err != nil {
			return err
		}
	}
	return conn.CloseNow()
}

// attend connects, at one gateway after the other, to what has not been seen yet.
func (d *deaf) attend(ctx context.Context) (*websocket.Conn, error) {
	for {
		addr := d.addrs[d.opened%len(d.addrs)]
		path := d.manner.path + d.session
		if d.manner.whole {
			d.seen, d.last = nil, 0
		} else {
			path += fmt.Sprintf("&after=%d", d.last)
		}
		conn, err := dialDeaf(ctx, addr, path, Key(d.of.tenant))
		if err == nil {
			d.opened++
			return conn, nil
		}
		d.addrs = append(d.addrs[1:], d.addrs[0])
		if e := rest(ctx, minBackoff); e != nil {
			return nil, fmt.Errorf("%s: %w: %w", path, e, err)
		}
	}
}

// hear reads on until what it watches is over, or the connection.
func (d *deaf) hear(ctx context.Context, conn *websocket.Conn) error {
	for goal := d.of.position(); d.last/d.manner.frames < goal; {
		_, raw, err := conn.Read(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			d.why = append(d.why, err.Error())
			if int(websocket.CloseStatus(err)) == fault.Lookup(fault.PeerSilent).Close {
				d.silent++
			}
			_ = conn.CloseNow()
			return nil // it comes back
		}
		if at := d.manner.seq(string(raw)); at > 0 {
			d.seen, d.last = append(d.seen, Seen{at, string(raw)}), at
		}
	}
	return nil
}

func (d *deaf) report() Report {
	last := d.last
	path := d.manner.path + d.session
	if !d.manner.whole {
		path += "&after=0"
	}
	return Report{
		Who: d.who, Tenant: d.of.tenant, Kind: d.manner.name, Seen: d.seen, Returns: max(0, d.opened-1-d.silent), Why: d.why, Loose: d.manner.loose,
		Again: func(ctx context.Context, addr string) ([]Seen, error) {
			return replay(ctx, addr, path, Key(d.of.tenant), last, d.manner.seq)
		},
	}
}

// dialDeaf connects with a small buffer.
func dialDeaf(ctx context.Context, addr, path, key string) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+addr+path, &websocket.DialOptions{ //nolint:bodyclose // closed by the library
		HTTPHeader: http.Header{"Authorization": {"Bearer " + key}},
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: smallEars.DialContext, DisableKeepAlives: true}},
	})
	if err == nil {
		conn.SetReadLimit(frameLimit)
	}
	return conn, err
}

// smallEars dials with a small receive buffer.
var smallEars = &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, earSize)
	}); e != nil {
		return e
	}
	return err
}}

const (
	// crowdOfDeaf are viewers of one chat that read nothing, fifty times as many as there
	// are clients.
	crowdOfDeaf = 500
	// deafFor is longer than a gateway bears with a socket that accepts nothing: 30 s.
	deafFor = 40 * time.Second
)

func viewers() []Fault {
	return []Fault{{Name: "500 viewers do not read", Strike: func(ctx context.Context, n *Nemesis) error {
		g := n.one(n.s.Gateways)
		c := n.load.chats[0]
		conns := make([]*websocket.Conn, 0, crowdOfDeaf)
		defer func() {
			for _, conn := range conns {
				_ = conn.CloseNow()
			}
		}()
		before, err := g.metric(ctx, "waggle_gateway_closes_total")
		if err != nil {
			return err
		}
		for i := range crowdOfDeaf {
			m := manners[i%len(manners)]
			conn, err := dialDeaf(ctx, g.Addr, m.path+c.name(), Key(c.tenant))
			if err != nil {
				return fmt.Errorf("viewer %d: %w", i, err)
			}
			conns = append(conns, conn)
		}
		if err := n.hold(ctx, deafFor); err != nil {
			return err
		}
		waiting, err := g.metric(ctx, "waggle_gateway_queue_bytes")
		if err != nil {
			return err
		}
		closed, err := g.metric(ctx, "waggle_gateway_closes_total")
		if err != nil {
			return err
		}
		if waiting == 0 && closed == before {
			return fmt.Errorf("%s has not noticed that %d viewers do not read", g.Name, crowdOfDeaf)
		}
		n.saw("%d viewers at %s read nothing for %v: %.0f bytes wait for them, %.0f sockets were closed", crowdOfDeaf, g.Name, deafFor, waiting, closed-before)
		return nil
	}}}
}

// metric returns the sum of a metric's values.
func (m *Member) metric(ctx context.Context, name string) (sum float64, err error) {
	text, err := request(ctx, http.MethodGet, "http://"+m.Addr+"/metrics", Key(tenants[0]), "")
	if err != nil {
		return 0, err
	}
	for _, found := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return 0, fmt.Errorf("%s of %s: %w", name, m.Name, err)
		}
		sum += v
	}
	return sum, nil
}
