package gateway

import (
	"context"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// upgrade makes the request a socket, or answers it and returns false.
func (s *Server) upgrade(c *conn, w http.ResponseWriter, r *http.Request) (ok bool) {
	defer func() {
		if !ok {
			c.depart()
		}
	}()
	if err := c.admit(r); err != nil {
		w.Header().Set("Connection", "close") // a refused client must not keep the connection
		f := s.asFault(err)
		c.turnedAway(f)
		s.refuse(w, f)
		return false
	}
	c.arrival.Upgrades()
	sock, err := s.sockets().Accept(&handshake{ResponseWriter: w, answers: s.answers}, r, c.subprotocols)
	if err != nil { // the answer is written already
		c.arrival.Becomes(nil)
		s.dep.Logger.Debug().Err(err).Msg("handshake failed")
		s.met.refused.WithLabelValues(refusedHandshake).Inc()
		return false
	}
	c.mu.Lock() // operators may list it
	c.Socket = sock
	c.mu.Unlock()
	sock.Bind(c)
	c.arrival.Becomes(c.evict)
	return true
}

// admit decides whether a request may open a socket, and counts it if so. The
// checks run from cheap to expensive.
func (c *conn) admit(r *http.Request) error {
	s := c.s
	c.arrival = arrival.Of(r)
	s.shared.Connect(&c.client, &c.questions, edge.Origin{Protocol: c.Protocol(), Remote: s.dep.Audit.Remote(r.RemoteAddr), Connection: c.ref})
	if err := s.gate.Page(r); err != nil {
		s.foreign.Refused(r)
		return err
	}
	if err := s.conns.reserve(c, c.pass); err != nil {
		return err
	}
	if err := c.pass.Address(); err != nil {
		return err
	}
	query := r.URL.Query()
	target, err := binding.TargetOf(r, query)
	if err != nil {
		return err
	}
	c.query = query.Encode()
	if c.binding, err = c.route.bind(s, c, r, target); err != nil {
		return err
	}
	return c.credentials(r)
}

// credentials checks the credentials of the handshake. A web page gets the reason of a refusal
// on its socket, because browsers hide why a handshake failed.
func (c *conn) credentials(r *http.Request) error {
	given := admission.CredentialsOf(r)
	if given.Subprotocol != "" {
		c.subprotocols = []string{given.Subprotocol}
	}
	if !given.Given && !c.s.gate.Anonymous { // the first message
		if c.s.cells != nil {
			c.bridged(r)
		}
		return nil
	}
	if c.s.conns.full() { // before the credentials cost anything
		return fault.New(fault.Overloaded)
	}
	err := c.authenticate(r.Context(), given.Token)
	if err != nil && given.Page {
		c.denied = c.s.asFault(err)
		return nil
	}
	return err
}

// authenticate stores the principal of a token, if that principal may open the socket and is
// below its limit of connections.
func (c *conn) authenticate(ctx context.Context, token string) error {
	p, err := c.pass.Authenticate(ctx, token, func(p auth.Principal) bool {
		enter, _ := c.policy.Rights(p)
		return enter
	})
	if err != nil {
		return err
	}
	if err := c.s.conns.enter(c.pass, c.arrival); err != nil {
		return err
	}
	if err := c.home(p, token); err != nil {
		return err
	}
	_, act := c.policy.Rights(p)
	c.client.Identify(p, act)
	return nil
}

var _ connection = (*conn)(nil)

// flush implements connection.
func (c *conn) flush(ctx context.Context) {
	select {
	case <-c.opened:
		c.binding.Flush(ctx)
	default:
	}
}

// tenant implements connection.
func (c *conn) tenant() id.Tenant { return c.client.Principal().Tenant }

// left implements connection.
func (c *conn) left() <-chan struct{} { return c.gone }

// queued implements connection: the hub counts the queued bytes of sockets.
func (*conn) queued() int { return 0 }

// listed implements connection.
func (c *conn) listed() listing {
	out := listing{client: &c.client, since: c.born}
	c.mu.Lock()
	socket := c.Socket
	c.mu.Unlock()
	if socket != nil {
		out.queued = socket.Queued()
	}
	return out
}

// depart reverts the counts of admit.
func (c *conn) depart() {
	close(c.gone)
	c.cut(nil)
	c.pass.Leave()
	if c.Socket != nil { // otherwise the connection continues as HTTP
		c.arrival.Ended()
	}
}

// evict ends a socket whose client has not authenticated. Its client has time to read why until
// as many others are ending.
func (c *conn) evict() {
	c.End(arrival.Evicted())
	e := c.s.arrivals.Ending.Enter(c.Abort)
	c.pass.Add(func() { e.Leave() })
}

// refusedHandshake is the reason for requests other than a WebSocket handshake.
const refusedHandshake = "HANDSHAKE"
