package gateway

import (
	"context"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

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
		s.dep.Logger.Debug().Err(err).Msg("fail handshake")
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
	if !s.gate.Origin(r.Header.Values("Origin")) {
		return fault.New(fault.OriginRefused)
	}
	if err := s.reserve(c, c.pass); err != nil {
		return err
	}
	if err := c.pass.Address(r.RemoteAddr); err != nil {
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

// credentials looks at what the handshake carries. A page is told on its socket why it is
// refused: browsers do not show it why a handshake fails.
func (c *conn) credentials(r *http.Request) error {
	given := admission.CredentialsOf(r)
	if given.Subprotocol != "" {
		c.subprotocols = []string{given.Subprotocol}
	}
	if !given.Given && !c.s.gate.Anonymous {
		return nil // the first message
	}
	err := c.authenticate(r.Context(), given.Token)
	if err != nil && given.Page {
		c.denied = c.s.asFault(err)
		return nil
	}
	return err
}

// authenticate notes the principal of a token, who may open the socket and has room for
// one more.
func (c *conn) authenticate(ctx context.Context, token string) error {
	p, err := c.pass.Authenticate(ctx, token, func(p auth.Principal) bool {
		enter, _ := c.rights(p)
		return enter
	})
	if err != nil {
		return err
	}
	_, act := c.rights(p)
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

// reserve counts the connection of the gateway, unless it has no room or is about
// to end.
func (s *Server) reserve(c connection, pass *admission.Pass) error {
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
	pass.Add(func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		s.wg.Done()
	})
	return nil
}

var _ connection = (*conn)(nil)

// protocol implements connection.
func (c *conn) protocol() string { return c.dialect.Name() }

// left implements connection.
func (c *conn) left() <-chan struct{} { return c.gone }

// queued implements connection: the hub counts what waits.
func (*conn) queued() int { return 0 }

// depart takes back what admit has counted.
func (c *conn) depart() {
	close(c.gone)
	c.cut(nil)
	c.pass.Leave()
}
