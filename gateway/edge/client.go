package edge

import (
	"context"
	"sync"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Origin says in the audit log where a client comes from.
type Origin struct {
	Protocol   string
	Remote     string // the address, as the audit log writes it
	Connection string // empty for a request
}

// Client is a user or a program outside of the installation: on a connection, or of one request. All methods may be called concurrently.
type Client struct {
	e      *Edge
	origin Origin
	shown  *stream.Questions // on the connection; nil: a request, which has shown none

	watches stream.Watches // of the connection

	mu        sync.Mutex
	principal auth.Principal
	known     bool // principal has been authenticated
	acts      bool // and may do more than watch
}

// Client returns the client of one request.
func (e *Edge) Client(p auth.Principal, o Origin) *Client {
	return &Client{e: e, origin: o, principal: p, known: true, acts: p.MayAct()}
}

// Connect makes c the client of a connection that has not authenticated yet. shown are the questions that the connection shows.
func (e *Edge) Connect(c *Client, shown *stream.Questions, o Origin) {
	c.e, c.shown, c.origin = e, shown, o
	c.watches.Of(c)
}

// Watches returns what the connection watches, nil for no client.
func (c *Client) Watches() *stream.Watches {
	if c == nil {
		return nil
	}
	return &c.watches
}

// MarshalZerologObject implements zerolog.LogObjectMarshaler: the fields name the connection, as the audit log does.
func (c *Client) MarshalZerologObject(e *zerolog.Event) {
	p := c.Principal()
	e.Str("connection", c.origin.Connection).Str("dialect", c.origin.Protocol).Stringer("tenant", p.Tenant).Str("principal", p.Subject)
}

// Origin returns where the client comes from.
func (c *Client) Origin() Origin { return c.origin }

// Identify sets the principal of a connection, and whether it may do more than watch there.
func (c *Client) Identify(p auth.Principal, acts bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.principal, c.known, c.acts = p, true, acts
}

// Identified reports whether the client has authenticated.
func (c *Client) Identified() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// Principal returns the authenticated user, zero before it has authenticated.
func (c *Client) Principal() auth.Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.principal
}

// MayAct reports whether the client may do more than watch.
func (c *Client) MayAct() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acts
}

// Protocol returns the name of the client's protocol.
func (c *Client) Protocol() string { return c.origin.Protocol }

// Questions returns those that the connection has shown, nil for a request.
func (c *Client) Questions() *stream.Questions { return c.shown }

// Room takes room for so many bytes of an answer that is larger than a small one, and waits for it a little. The part is nil for a
// small answer.
func (c *Client) Room(ctx context.Context, bytes int) (*answer.Part, error) {
	if bytes <= answer.Small {
		return nil, nil //nolint:nilnil // a small answer needs none
	}
	p := c.Principal()
	return c.e.Room.Enter(ctx, p.Tenant.String()+"/"+p.Subject, bytes)
}

// Record writes an audit record about the client.
func (c *Client) Record(action id.Name, r audit.Record) {
	tenant, r := c.Described(r)
	c.e.Audit.Record(action, tenant, r)
}

// Described returns the record with the client in it, and the tenant that it belongs to.
func (c *Client) Described(r audit.Record) (id.Tenant, audit.Record) {
	p := c.Principal()
	r.Principal, r.Remote, r.Connection, r.Dialect = p.Subject, c.origin.Remote, c.origin.Connection, c.origin.Protocol
	return p.Tenant, r
}
