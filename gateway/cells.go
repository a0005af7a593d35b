package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/gateway/forward"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// protocolForwarded is the name of forwarded sockets in metrics.
const protocolForwarded = "forwarded"

// newForwarder returns the forwarder of the gateway; nil in an installation of one cell.
func (s *Server) newForwarder() *forward.Forwarder {
	c := s.dep.Cells
	if c == nil {
		return nil
	}
	return forward.New(forward.Config{
		Directory: c.Directory, Cell: c.Name, URL: c.URL, Stall: s.cfg.WriteStall, Logger: s.dep.Logger, Refuse: s.refuse,
	})
}

// homed forwards requests of tenants that other cells serve. Requests without valid credentials, and those of pages that may
// not send them, go on to the handler, which refuses them in its own words.
func (s *Server) homed(h http.Handler) http.Handler {
	if s.cells == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := admission.CredentialsOf(r)
		if !given.Given && !s.gate.Anonymous || r.Method == http.MethodOptions || s.gate.Page(r) != nil {
			h.ServeHTTP(w, r)
			return
		}
		who, err := s.gate.Known(r.Context(), r.RemoteAddr, given.Token)
		if err != nil {
			h.ServeHTTP(w, r)
			return
		}
		arrival.Of(r).Yield()
		to, here, err := s.cells.Aim(who.Tenant, len(r.Header.Values(forward.HeaderCell)) > 0)
		if err == nil && !here {
			err = s.forward(w, r, who, to)
		}
		var leave func()
		if err == nil && here {
			leave, err = s.cells.Enter(who.Tenant)
		}
		switch {
		case err != nil:
			s.refuse(w, s.asFault(err))
		case here:
			defer leave()
			h.ServeHTTP(w, r)
		}
	})
}

// forward forwards the request within the limits of this gateway. It has answered if it returns nil.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, who auth.Principal, to id.Name) error {
	socket := sse.Upgrades(r)
	if socket || strings.Contains(r.Header.Get("Accept"), respond.MediaEvents) {
		return s.forwardStream(w, r, who, to, !socket)
	}
	leave, err := s.requests.Address(r.RemoteAddr)
	if err != nil {
		return err
	}
	defer leave()
	if leave, err = s.requests.Principal(who, s.gate.Anonymous); err != nil {
		return err
	}
	defer leave()
	arrival.Of(r).Admitted()
	s.cells.Serve(w, r, to)
	return nil
}

// forwardStream forwards a socket or a stream of events, which counts as a connection of its address and of its principal.
func (s *Server) forwardStream(w http.ResponseWriter, r *http.Request, who auth.Principal, to id.Name, events bool) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	f := &forwarded{cancel: cancel, gone: make(chan struct{})}
	pass := s.gate.Pass(r.RemoteAddr)
	defer pass.Leave()
	defer close(f.gone)
	if err := s.reserve(f, pass); err != nil {
		return err
	}
	if err := pass.Address(); err != nil {
		return err
	}
	if err := pass.Principal(who); err != nil {
		return err
	}
	if events {
		if err := pass.Stream(who); err != nil {
			return err
		}
	}
	if err := s.enter(pass, arrival.Of(r)); err != nil {
		return err
	}
	defer context.AfterFunc(s.ctx, cancel)() //nolint:contextcheck // the gateway ends sockets, too
	s.cells.Serve(w, r.WithContext(ctx), to)
	return nil
}

// forwarded is a socket or a stream of events of a gateway of another cell.
type forwarded struct {
	cancel context.CancelFunc
	gone   chan struct{} // closed when the socket has ended
}

var _ connection = (*forwarded)(nil)

// Protocol implements connection.
func (*forwarded) Protocol() string { return protocolForwarded }

// Settle implements connection: the other gateway knows its services.
func (*forwarded) Settle() {}

// retire implements connection: the client comes back as after a lost connection.
func (f *forwarded) retire(*fault.Fault) { f.cancel() }

// left implements connection.
func (f *forwarded) left() <-chan struct{} { return f.gone }

// flush implements connection.
func (*forwarded) flush(context.Context) {}

// queued implements connection: the kernel holds the bytes.
func (*forwarded) queued() int { return 0 }

// tenant implements connection: the tenant is not served here.
func (*forwarded) tenant() id.Tenant { return id.Tenant{} }

// sendAwayTenants asks the clients of tenants that the cell does not serve any more to reconnect.
func (s *Server) sendAwayTenants(tenants []id.Tenant) {
	for _, c := range s.open() {
		if slices.Contains(tenants, c.tenant()) {
			c.retire(fault.New(fault.TenantMoving))
		}
	}
}
