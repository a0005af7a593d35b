package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/chaos/verify"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// stalledBuffer is the receive buffer of a viewer that does not read: the least that the
// kernel gives, so that what it does not read waits at the gateway and not here.
const stalledBuffer = 2304

// dialect is how a session is watched in one dialect.
type dialect struct {
	name   string
	Path   string // up to the session
	whole  bool   // a viewer that comes back is shown the whole log, not only the later events
	frames uint64 // positions of one event
	seq    func(raw string) uint64
	loose  func(raw string) (of, text string, loose bool)
}

// Dialects are all dialects.
var Dialects = []dialect{
	{name: "ORBIT", Path: "/ws?deltas=true&watch=session/", frames: 1, loose: looseChat, seq: func(raw string) uint64 { return orbitOf(raw).Seq }},
	{name: "MyAgent", Path: "/ws/session?deltas=all&watch=session/", frames: 1, loose: loosePlan, seq: func(raw string) uint64 { return orbitOf(raw).Seq }},
	{name: "ASP", Path: "/ws/asp/client?watch=session/", frames: 1, whole: true, seq: watchedSeq, loose: func(string) (string, string, bool) { return "", "", false }},
	{name: "team", Path: "/ws/agent-team?watch=session/", frames: 16, loose: looseTeam, seq: func(raw string) uint64 {
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

// stalled is a viewer of a chat of another client that connects, reads nothing until the load is
// over, and then has to see everything.
type stalled struct {
	l       *Load
	who     string
	dialect dialect
	of      *chat
	addrs   []string // without the lines to the gateways: those would read

	last     uint64
	opened   int
	timeouts int // connections that were ended because nothing came from this side for too long
	seen     []verify.Seen
	why      []string
	session  string
}

func newStalled(l *Load, of *chat, m dialect, i int) *stalled {
	d := &stalled{l: l, who: l.nameOf(of.Tenant, "deaf-"+m.name, i), dialect: m, of: of}
	for k := range l.s.Gateways {
		d.addrs = append(d.addrs, l.s.Gateways[(i+k)%len(l.s.Gateways)].Addr)
	}
	return d
}

func (d *stalled) work(ctx context.Context, stop <-chan struct{}) error {
	for d.session = d.of.Name(); d.session == ""; d.session = d.of.Name() {
		if err := process.Rest(ctx, process.Poll); err != nil {
			return err
		}
	}
	conn, err := d.connect(ctx)
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
	for d.last/d.dialect.frames < goal {
		if err := d.read(ctx, conn); err != nil {
			return fmt.Errorf("session %s at %d of %d: %w", d.session, d.last, goal, err)
		}
		if d.last/d.dialect.frames >= goal {
			break
		}
		if conn, err = d.connect(ctx); err != nil {
			return err
		}
	}
	return conn.CloseNow()
}

// connect connects, at one gateway after the other, to what has not been seen yet.
func (d *stalled) connect(ctx context.Context) (*websocket.Conn, error) {
	for {
		addr := d.addrs[d.opened%len(d.addrs)]
		path := d.dialect.Path + d.session
		if d.dialect.whole {
			d.seen, d.last = nil, 0
		} else {
			path += fmt.Sprintf("&after=%d", d.last)
		}
		conn, err := DialStalled(ctx, addr, path, site.KeyOf(d.of.Tenant))
		if err == nil {
			d.opened++
			return conn, nil
		}
		d.addrs = append(d.addrs[1:], d.addrs[0])
		if e := process.Rest(ctx, process.Poll); e != nil {
			return nil, fmt.Errorf("%s: %w: %w", path, e, err)
		}
	}
}

// read reads on until what it watches is over, or the connection.
func (d *stalled) read(ctx context.Context, conn *websocket.Conn) error {
	for goal := d.of.position(); d.last/d.dialect.frames < goal; {
		_, raw, err := conn.Read(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			d.why = append(d.why, err.Error())
			if int(websocket.CloseStatus(err)) == fault.Lookup(fault.PeerSilent).Close {
				d.timeouts++
			}
			_ = conn.CloseNow()
			return nil // it comes back
		}
		if at := d.dialect.seq(string(raw)); at > 0 {
			d.seen, d.last = append(d.seen, verify.Seen{Seq: at, Raw: string(raw)}), at
		}
	}
	return nil
}

func (d *stalled) report() verify.Report {
	last := d.last
	path := d.dialect.Path + d.session
	if !d.dialect.whole {
		path += "&after=0"
	}
	return verify.Report{
		Who: d.who, Tenant: d.of.Tenant, Kind: d.dialect.name, Seen: d.seen, Returns: max(0, d.opened-1-d.timeouts), Why: d.why, Loose: d.dialect.loose,
		Again: func(ctx context.Context, addr string) ([]verify.Seen, error) {
			return replay(ctx, addr, path, site.KeyOf(d.of.Tenant), last, d.dialect.seq)
		},
	}
}

// DialStalled connects with a small buffer.
func DialStalled(ctx context.Context, addr, path, key string) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+addr+path, &websocket.DialOptions{ //nolint:bodyclose // closed by the library
		HTTPHeader: http.Header{"Authorization": {"Bearer " + key}},
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: smallBuffers.DialContext, DisableKeepAlives: true}},
	})
	if err == nil {
		conn.SetReadLimit(frameLimit)
	}
	return conn, err
}

// smallBuffers dials with a small receive buffer.
var smallBuffers = &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, stalledBuffer)
	}); e != nil {
		return e
	}
	return err
}}
