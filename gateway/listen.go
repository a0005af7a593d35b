package gateway

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"

	"github.com/pires/go-proxyproto"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// listen opens a listener. With the PROXY protocol, trusted proxies have to begin each
// connection with its header, and other peers speak HTTP at once.
func (s *Server) listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if !s.cfg.ProxyProtocol {
		return s.arrivals.Listen(l), nil
	}
	policy, err := proxyproto.PolicyFromRanges(s.cfg.TrustedProxies, proxyproto.REQUIRE, proxyproto.SKIP)
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("gateway.trusted_proxies: %w", err)
	}
	return s.arrivals.Listen(&proxyproto.Listener{Listener: l, ConnPolicy: policy, ReadHeaderTimeout: s.cfg.HandshakeTimeout}), nil
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // of proxies: a browser opens six connections of HTTP/1.1, and a stream takes one
	return &http.Server{
		Protocols: &protocols,
		Handler:   arrival.Watch(answer.Guard(through(h, s.counted, s.addressed), s.cfg.WriteStall, &s.answering)), ReadHeaderTimeout: s.cfg.HandshakeTimeout, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * has the headers of every answer, too
		ReadTimeout:                  s.cfg.MessageTimeout, IdleTimeout: idleHTTP,
		ConnContext: s.arrivals.Accept, ConnState: s.arrivals.Changed,
		ErrorLog: stdlog.New(s.dep.Logger.With().Str("level", "debug").Logger(), "", 0),
	}
}

// counted counts the requests.
func (s *Server) counted(http.ResponseWriter, *http.Request) bool {
	s.met.requests.Inc()
	return true
}

// addressed gives requests of trusted proxies the address of their client, for the limits of
// addresses and for the audit log.
func (s *Server) addressed(w http.ResponseWriter, r *http.Request) bool {
	if !s.proxies.Any() {
		return true
	}
	client, err := s.proxies.Client(r.RemoteAddr, r.Header)
	if err != nil {
		s.refuse(w, s.asFault(err))
		return false
	}
	r.RemoteAddr = client
	return true
}

// listenExtra opens the extra listeners of the configuration: all of them or none.
func (s *Server) listenExtra(ctx context.Context) (all []extra, err error) {
	for _, e := range s.cfg.Legacy {
		l, err := s.listen(ctx, e.Addr)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("gateway.legacy: %w", err), closeExtra(all))
		}
		all = append(all, extra{paths: e.Paths, l: l, http: s.httpServer(fromQuery(through(s.extraRoutes(e.Paths), s.probed, s.named)))})
	}
	return all, nil
}

// probed answers questions after the gateway's health, which clients of the original servers ask at their addresses.
func (s *Server) probed(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || sse.Upgrades(r) || r.URL.Path != pathHealth && r.URL.Path != pathTeamHealth {
		return true
	}
	s.health(w, r)
	return false
}

// fromQuery lets programs of the original servers send their token in the query.
func fromQuery(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, admission.FromQuery(r)) })
}

// extraRoutes returns the handler of an extra listener.
func (s *Server) extraRoutes(paths []string) http.Handler {
	if len(paths) == 1 {
		return s.under(paths[0], s.socketsUnder(paths[0]))
	}
	mux := http.NewServeMux()
	for _, path := range paths {
		mux.Handle(path, s.homed(s.socketsUnder(path)))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { s.problem(w, fault.New(fault.NotFound)) })
	return mux
}

// under gives requests of any path the path of a route, under which other cells' gateways serve it, too.
func (s *Server) under(path string, h http.Handler) http.Handler {
	h = s.homed(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.cells != nil {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = path, ""
		}
		h.ServeHTTP(w, r)
	})
}

// socketsUnder returns the handler that opens the sockets of a path.
func (s *Server) socketsUnder(path string) http.HandlerFunc {
	return s.accept(s.dep.Routes[path])
}

// serveExtra serves the extra listeners until they are closed.
func (s *Server) serveExtra(all []extra) {
	s.extra = all
	for _, e := range all {
		s.wg.Go(func() {
			if err := e.http.Serve(e.l); err != nil && !errors.Is(err, http.ErrServerClosed) {
				select {
				case s.fail <- fmt.Errorf("gateway: %w", err):
				default: // it has failed already
				}
			}
		})
		s.dep.Logger.Info().Stringer("addr", e.l.Addr()).Strs("paths", e.paths).Msg("listening for clients of one protocol")
	}
}

// shutdownExtra ends the extra listeners gracefully.
func (s *Server) shutdownExtra(ctx context.Context) error {
	s.mu.Lock()
	all := s.extra
	s.mu.Unlock()
	var errs []error
	for _, e := range all {
		errs = append(errs, e.http.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// LegacyAddrs returns the addresses of the extra listeners by the path that they
// serve; none before Start.
func (s *Server) LegacyAddrs() map[string]net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]net.Addr, len(s.extra))
	for _, e := range s.extra {
		for _, path := range e.paths {
			out[path] = e.l.Addr()
		}
	}
	return out
}
