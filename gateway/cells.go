package gateway

import (
	"context"
	"net/http"
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

// elsewhere forwards requests of tenants that other cells serve, within the limits of this gateway.
type elsewhere struct {
	*answers

	cells    *forward.Forwarder // nil in an installation of one cell
	gate     *admission.Gate
	requests *admission.Requests
	conns    *connections
	ctx      context.Context //nolint:containedctx // of the gateway, which ends sockets, too
}

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
// not send them, continue to the handler, which refuses them in its own words.
func (e *elsewhere) homed(h http.Handler) http.Handler {
	if e.cells == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := admission.CredentialsOf(r)
		if !given.Given && !e.gate.Anonymous || r.Method == http.MethodOptions || e.gate.Page(r) != nil {
			h.ServeHTTP(w, r)
			return
		}
		who, err := e.gate.Known(r.Context(), r.RemoteAddr, given.Token)
		if err != nil {
			h.ServeHTTP(w, r)
			return
		}
		arrival.Of(r).Yield()
		to, here, err := e.cells.Aim(who.Tenant, len(r.Header.Values(forward.HeaderCell)) > 0)
		if err == nil && !here {
			err = e.forward(w, r, who, to)
		}
		var leave func()
		if err == nil && here {
			leave, err = e.cells.Enter(who.Tenant)
		}
		switch {
		case err != nil:
			e.refuse(w, e.asFault(err))
		case here:
			defer leave()
			h.ServeHTTP(w, r)
		}
	})
}

// forward forwards the request within the limits of this gateway. It has answered if it returns nil.
func (e *elsewhere) forward(w http.ResponseWriter, r *http.Request, who auth.Principal, to id.Name) error {
	socket := sse.Upgrades(r)
	if socket || strings.Contains(r.Header.Get("Accept"), respond.MediaEvents) {
		return e.forwardStream(w, r, who, to, !socket)
	}
	leave, err := e.requests.Address(r.RemoteAddr)
	if err != nil {
		return err
	}
	defer leave()
	if leave, err = e.requests.Principal(who, e.gate.Anonymous); err != nil {
		return err
	}
	defer leave()
	arrival.Of(r).Admitted()
	e.cells.Serve(w, r, to)
	return nil
}

// forwardStream forwards a socket or a stream of events, which counts as a connection of its address and of its principal.
func (e *elsewhere) forwardStream(w http.ResponseWriter, r *http.Request, who auth.Principal, to id.Name, events bool) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	f := &forwarded{cancel: cancel, gone: make(chan struct{})}
	pass := e.gate.Pass(r.RemoteAddr)
	defer pass.Leave()
	defer close(f.gone)
	if err := e.conns.reserve(f, pass); err != nil {
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
	if err := e.conns.enter(pass, arrival.Of(r)); err != nil {
		return err
	}
	defer context.AfterFunc(e.ctx, cancel)() //nolint:contextcheck // the gateway ends sockets, too
	e.cells.Serve(w, r.WithContext(ctx), to)
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

// listed implements connection: the other gateway lists it.
func (*forwarded) listed() listing { return listing{} }

// tenant implements connection: the tenant is not served here.
func (*forwarded) tenant() id.Tenant { return id.Tenant{} }
