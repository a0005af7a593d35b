package admission

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Defaults of Config. They bound one stranger; loopback and private addresses are mostly
// proxies, which stand for many clients, and have no bound unless it is set.
const (
	defaultPerIP          = 50
	defaultHandshakeRate  = 10
	defaultHandshakeBurst = 50
)

// Config says how many connections an address and a principal may have. Zero fields mean
// the defaults.
type Config struct {
	Names         Names
	PerIP         int     // connections per address, default 50 except for loopback and private addresses
	HandshakeRate float64 // connections per second and address, default 10 with the same exception
	PerPrincipal  int     // connections per principal, 0 = any number; anonymous ones are not counted
}

// Gate admits connections. It is safe for concurrent use.
type Gate struct {
	Names

	*Logins

	quota *quota.Connections
	clock func() time.Time

	strangers, proxies, principals, streams *Table
}

// NewGate returns a gate that has admitted nothing. A nil quota bounds nothing.
func NewGate(cfg Config, a auth.Authenticator, q *quota.Connections, clock func() time.Time) (g *Gate, err error) {
	g = &Gate{Names: cfg.Names, quota: q, clock: clock}
	if g.Logins, err = NewLogins(a, clock); err != nil {
		return nil, err
	}
	set := Limits{Connections: cfg.PerIP, Rate: cfg.HandshakeRate, Burst: defaultHandshakeBurst}
	if g.proxies, err = NewTable(set); err != nil {
		return nil, err
	}
	if set.Connections == 0 {
		set.Connections = defaultPerIP
	}
	if set.Rate == 0 {
		set.Rate = defaultHandshakeRate
	}
	if g.strangers, err = NewTable(set); err != nil {
		return nil, err
	}
	if g.streams, err = NewTable(Limits{Connections: MaxStreams}); err != nil {
		return nil, err
	}
	g.principals, err = NewTable(Limits{Connections: cfg.PerPrincipal})
	return g, err
}

// MaxStreams are the streams of events that a principal may have at once: a browser has ten windows with six each.
const MaxStreams = 64

// Pass returns what one connection from an address ("192.0.2.1:4711") is counted by.
func (g *Gate) Pass(remote string) *Pass { return &Pass{g: g, remote: remote} }

// Pass is what one connection was counted by, until Leave. It is safe for concurrent use.
type Pass struct {
	g      *Gate
	remote string

	mu    sync.Mutex
	leave []func()
	left  bool
}

// Address counts the connection under the address that it comes from.
func (p *Pass) Address() error {
	key, many := Address(p.remote)
	if many {
		return p.enter(p.g.proxies, key)
	}
	return p.enter(p.g.strangers, key)
}

// Authenticate returns the principal of a token, as Logins does, and counts the connection under
// it. may reports whether the principal may open the connection.
func (p *Pass) Authenticate(ctx context.Context, token string, may func(auth.Principal) bool) (who auth.Principal, err error) {
	if who, err = p.g.Logins.Authenticate(ctx, p.remote, token); err != nil {
		return who, err
	}
	if !may(who) {
		return who, fault.New(fault.Forbidden)
	}
	if err := p.Principal(who); err != nil {
		return who, err
	}
	leave, err := p.g.quota.Enter(ctx, who.Tenant, who.Subject)
	if err == nil {
		p.Add(leave)
	}
	return who, err
}

// Principal counts the connection under a principal. Anonymous ones are not counted.
func (p *Pass) Principal(who auth.Principal) error {
	if p.g.Anonymous {
		return nil
	}
	return p.enter(p.g.principals, who.Tenant.String()+"/"+who.Subject)
}

// Stream counts the connection as a stream of events of the principal. Anonymous ones are not counted.
func (p *Pass) Stream(who auth.Principal) error {
	if p.g.Anonymous {
		return nil
	}
	return p.enter(p.g.streams, who.Tenant.String()+"/"+who.Subject)
}

// enter counts the connection in a table.
func (p *Pass) enter(t *Table, key string) error {
	leave, verdict := t.Enter(key, p.g.clock())
	switch verdict {
	case TooMany:
		return fault.New(fault.TooManySockets)
	case TooFast:
		return fault.Newf(fault.RateLimited, "Too many connections in a short time. Wait a little, then connect again.")
	}
	p.Add(leave)
	return nil
}

// Add has leave called by Leave, or at once after Leave.
func (p *Pass) Add(leave func()) {
	p.mu.Lock()
	left := p.left
	if !left {
		p.leave = append(p.leave, leave)
	}
	p.mu.Unlock()
	if left {
		leave()
	}
}

// Leave takes back all that the connection was counted by, once.
func (p *Pass) Leave() {
	p.mu.Lock()
	all := p.leave
	p.leave, p.left = nil, true
	p.mu.Unlock()
	for _, leave := range all {
		leave()
	}
}

// Credentials are what the request of a connection carries. A token in the query does not
// count: addresses end up in logs and histories.
type Credentials struct {
	Token       string
	Given       bool   // the request has a token, perhaps an empty one
	Subprotocol string // to be agreed on, because it carried the token
	Page        bool   // of a browser's page, which is not shown why a handshake fails
}

// CredentialsOf returns the credentials of a request. Only pages put a token into the
// subprotocol.
func CredentialsOf(r *http.Request) (c Credentials) {
	c.Token, c.Subprotocol, c.Given = auth.TokenFromRequest(r)
	c.Page = r.Header.Get("Authorization") == "" && r.Header.Get("X-API-Key") == "" && c.Subprotocol != ""
	return c
}
