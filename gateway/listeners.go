package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/pires/go-proxyproto"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/arrival"
)

// listeners are where clients connect.
type listeners struct {
	cfg      Config
	arrivals *arrival.Table
	logger   zerolog.Logger
	fail     chan<- error

	mu    sync.Mutex
	main  net.Listener // nil before the start
	extra []extra
}

// extra is a listener that serves the dialect of one path under every path, or those of
// several paths under theirs.
type extra struct {
	paths []string
	l     net.Listener
	http  *http.Server
}

// listen opens a listener. With the PROXY protocol, trusted proxies have to begin each
// connection with its header, and other peers speak HTTP at once.
func (a *listeners) listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if !a.cfg.ProxyProtocol {
		return a.arrivals.Listen(l), nil
	}
	policy, err := proxyproto.PolicyFromRanges(a.cfg.TrustedProxies, proxyproto.REQUIRE, proxyproto.SKIP)
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("gateway.trusted_proxies: %w", err)
	}
	return a.arrivals.Listen(&proxyproto.Listener{Listener: l, ConnPolicy: policy, ReadHeaderTimeout: a.cfg.HandshakeTimeout}), nil
}

// open opens the listeners of the configuration: all of them or none. server returns what serves the paths of an extra one.
func (a *listeners) open(ctx context.Context, server func(paths []string) *http.Server) error {
	main, err := a.listen(ctx, a.cfg.Addr)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	var all []extra
	for _, e := range a.cfg.Legacy {
		l, err := a.listen(ctx, e.Addr)
		if err != nil {
			return errors.Join(fmt.Errorf("gateway.legacy: %w", err), closed(main, all))
		}
		all = append(all, extra{paths: e.Paths, l: l, http: server(e.Paths)})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.main, a.extra = main, all
	return nil
}

// serve serves the listeners until they are closed.
func (a *listeners) serve(server *http.Server, work *sync.WaitGroup) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.extra {
		work.Go(func() { a.until(e.http.Serve(e.l)) })
		a.logger.Info().Stringer("addr", e.l.Addr()).Strs("paths", e.paths).Msg("listening for clients of one protocol")
	}
	main := a.main
	work.Go(func() { a.until(server.Serve(main)) })
}

// until takes the error with which a server has ended.
func (a *listeners) until(err error) {
	if errors.Is(err, http.ErrServerClosed) {
		return
	}
	select {
	case a.fail <- fmt.Errorf("gateway: %w", err):
	default: // another one has failed already
	}
}

// shutdown ends the extra listeners gracefully.
func (a *listeners) shutdown(ctx context.Context) error {
	a.mu.Lock()
	all := a.extra
	a.mu.Unlock()
	var errs []error
	for _, e := range all {
		errs = append(errs, e.http.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// close cuts the connections of the extra listeners, and takes no others.
func (a *listeners) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return closed(a.main, a.extra)
}

func closed(main net.Listener, all []extra) error {
	if main == nil {
		return nil
	}
	errs := []error{main.Close()}
	for _, e := range all {
		errs = append(errs, e.http.Close(), e.l.Close())
	}
	return errors.Join(errs...)
}

// addr returns the address of the listener of all protocols, nil before the start.
func (a *listeners) addr() net.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.main == nil {
		return nil
	}
	return a.main.Addr()
}

// extraAddrs returns the addresses of the extra listeners by the path that they serve.
func (a *listeners) extraAddrs() map[string]net.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[string]net.Addr, len(a.extra))
	for _, e := range a.extra {
		for _, path := range e.paths {
			out[path] = e.l.Addr()
		}
	}
	return out
}
