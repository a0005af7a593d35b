package gateway

import (
	"context"
	"fmt"
	stdlog "log"
	"net"
	"net/http"

	"github.com/pires/go-proxyproto"
)

// listen opens a listener. With the PROXY protocol, trusted proxies have to begin each
// connection with its header, and other peers speak HTTP at once.
func (s *Server) listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil || !s.cfg.ProxyProtocol {
		return l, err
	}
	policy, err := proxyproto.PolicyFromRanges(s.cfg.TrustedProxies, proxyproto.REQUIRE, proxyproto.SKIP)
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("gateway.trusted_proxies: %w", err)
	}
	return &proxyproto.Listener{Listener: l, ConnPolicy: policy, ReadHeaderTimeout: s.cfg.HandshakeTimeout}, nil
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: s.guarded(s.addressed(h)), ReadHeaderTimeout: s.cfg.HandshakeTimeout, MaxHeaderBytes: maxHeader,
		ReadTimeout: s.cfg.MessageTimeout, IdleTimeout: idleHTTP,
		ConnContext: s.arrivals.accept, ConnState: s.arrivals.changed,
		ErrorLog: stdlog.New(s.dep.Logger.With().Str("level", "debug").Logger(), "", 0),
	}
}

// addressed gives requests of trusted proxies the address of their client, for the limits of
// addresses and for the audit log.
func (s *Server) addressed(h http.Handler) http.Handler {
	if !s.proxies.Any() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, err := s.proxies.Client(r.RemoteAddr, r.Header)
		if err != nil {
			s.refuse(w, s.asFault(err))
			return
		}
		r.RemoteAddr = client
		h.ServeHTTP(w, r)
	})
}
