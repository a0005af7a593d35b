package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// listenExtra opens the extra listeners of the configuration: all of them or none.
func (s *Server) listenExtra(ctx context.Context) (all []extra, err error) {
	for _, e := range s.cfg.Legacy {
		l, err := s.listen(ctx, e.Addr)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("gateway.legacy: %w", err), closeExtra(all))
		}
		all = append(all, extra{paths: e.Paths, l: l, http: s.httpServer(s.named(s.extraRoutes(e.Paths)))})
	}
	return all, nil
}

// extraRoutes returns the handler of an extra listener.
func (s *Server) extraRoutes(paths []string) http.Handler {
	if len(paths) == 1 {
		return s.socketsUnder(paths[0])
	}
	mux := http.NewServeMux()
	for _, path := range paths {
		mux.Handle(path, s.socketsUnder(path))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { s.problem(w, fault.New(fault.NotFound)) })
	return mux
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
		s.dep.Logger.Info().Stringer("addr", e.l.Addr()).Strs("paths", e.paths).Msg("listen for clients of one protocol")
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
