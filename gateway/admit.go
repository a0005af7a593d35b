package gateway

import (
	"context"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/limit"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// limits makes the tables that count connections. Loopback and private addresses
// are mostly proxies, which stand for many people: the defaults do not apply to them.
func (s *Server) limits() (err error) {
	set := limit.Limits{Connections: s.cfg.PerIP, Rate: s.cfg.HandshakeRate, Burst: defaultHandshakeBurst}
	if s.proxies, err = limit.NewTable(set); err != nil {
		return err
	}
	if set.Connections == 0 {
		set.Connections = defaultPerIP
	}
	if set.Rate == 0 {
		set.Rate = defaultHandshakeRate
	}
	if s.strangers, err = limit.NewTable(set); err != nil {
		return err
	}
	s.principals, err = limit.NewTable(limit.Limits{Connections: s.cfg.PerPrincipal})
	return err
}

// accept returns the handler that opens sockets of a dialect.
func (s *Server) accept(d dialect.Dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.problem(w, fault.New(fault.NotFound))
			return
		}
		c := newConn(s, d)
		if s.upgrade(c, w, r) {
			go c.serve() //nolint:contextcheck // the socket outlives its request: the handler returns, which frees its request and stack
		}
	}
}

// upgrade makes the request a socket, or answers it and returns false.
func (s *Server) upgrade(c *conn, w http.ResponseWriter, r *http.Request) (ok bool) {
	defer func() {
		if !ok {
			c.depart()
		}
	}()
	if err := c.admit(r); err != nil {
		f := s.asFault(err)
		c.turnedAway(f)
		s.met.refused.WithLabelValues(string(f.Code)).Inc()
		w.Header().Set("Connection", "close") // a stranger must not keep it for nothing
		s.problem(w, f)
		return false
	}
	sock, err := s.sockets().Accept(&handshake{ResponseWriter: w, s: s}, r, c.subprotocols)
	if err != nil { // the answer is written already
		s.dep.Logger.Debug().Err(err).Msg("a handshake failed")
		s.met.refused.WithLabelValues(refusedHandshake).Inc()
		return false
	}
	c.sock = sock
	sock.Bind(c)
	return true
}

// admit decides whether a request may open a socket, and counts it if so. The
// order is from cheap to dear.
func (c *conn) admit(r *http.Request) error {
	s := c.s
	c.remote = s.dep.Audit.Remote(r.RemoteAddr)
	if !s.originAllowed(r.Header.Values("Origin")) {
		return fault.New(fault.OriginRefused)
	}
	if err := s.reserve(c); err != nil {
		return err
	}
	key, many := limit.Address(r.RemoteAddr)
	table := s.strangers
	if many {
		table = s.proxies
	}
	if err := c.enter(table, key); err != nil {
		return err
	}
	query := r.URL.Query()
	codec, err := c.dialect.Bind(query)
	if err != nil {
		return err
	}
	if c.watch, err = watchedOf(r, query); err != nil {
		return err
	}
	c.use(speaking(codec, r))
	c.query = query
	return c.credentials(r)
}

// credentials looks at what the handshake carries. A token in the query is none:
// addresses end up in logs and histories. Only browsers put a token into
// the subprotocol, and they are not shown why a handshake fails: they are told on
// the socket.
func (c *conn) credentials(r *http.Request) error {
	token, subprotocol, given := auth.TokenFromRequest(r)
	if subprotocol != "" {
		c.subprotocols = []string{subprotocol}
	}
	if !given && !c.s.anonymous {
		return nil // the first message
	}
	err := c.authenticate(r.Context(), token)
	browser := r.Header.Get("Authorization") == "" && r.Header.Get("X-API-Key") == "" && subprotocol != ""
	if err != nil && browser {
		c.denied = c.s.asFault(err)
		return nil
	}
	return err
}

// authenticate makes out who is there, and whether they may take part and have
// room for one more socket.
func (c *conn) authenticate(ctx context.Context, token string) error {
	p, err := c.s.dep.Auth.Authenticate(ctx, token)
	if err != nil {
		return err
	}
	enter, act := c.rights(p)
	if !enter {
		return fault.New(fault.Forbidden)
	}
	if !c.s.anonymous {
		if err := c.enter(c.s.principals, p.Tenant.String()+"/"+p.Subject); err != nil {
			return err
		}
	}
	leave, err := c.s.dep.Quota.Enter(ctx, p.Tenant, p.Subject)
	if err != nil {
		return err
	}
	c.leave = append(c.leave, leave)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.principal, c.known, c.acts = p, true, act
	return nil
}

// rights says whether the principal may open the socket, and do more on it than watch.
// Nobody watches as an agent or a service: they are there to act.
func (c *conn) rights(p auth.Principal) (enter, act bool) {
	act = p.MayAct()
	if s, ok := c.codec.(spoken); ok {
		switch s.Kind() {
		case command.PeerAgent:
			act = act || p.Has(auth.RoleAgent)
			return act, act
		case command.PeerService:
			act = act || p.Has(auth.RoleService)
			return act, act
		}
	}
	return p.MayWatch(), act
}

// enter counts the connection in a table until it departs.
func (c *conn) enter(t *limit.Table, key string) error {
	leave, verdict := t.Enter(key, c.s.dep.Clock())
	switch verdict {
	case limit.TooMany:
		return fault.New(fault.TooManySockets)
	case limit.TooFast:
		return fault.Newf(fault.RateLimited, "Too many connections in a short time. Wait a little, then connect again.")
	}
	c.leave = append(c.leave, leave)
	return nil
}

// reserve counts the connection of the gateway, unless it has no room or is about
// to end.
func (s *Server) reserve(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return fault.New(fault.Draining)
	case len(s.conns) >= s.cfg.MaxConnections:
		return fault.New(fault.Overloaded)
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	c.leave = append(c.leave, func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.wg.Done()
	})
	return nil
}

// depart takes back what admit has counted.
func (c *conn) depart() {
	close(c.gone)
	c.cut(nil)
	for _, leave := range c.leave {
		leave()
	}
}
