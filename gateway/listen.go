package gateway

import (
	stdlog "log"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func (s *Server) httpServer(h http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // of proxies: a browser opens six connections of HTTP/1.1, and a stream takes one
	return &http.Server{
		Protocols: &protocols,
		Handler:   arrival.Watch(answer.Guard(through(h, s.door.counted, s.door.addressed), s.cfg.WriteStall, &s.answering)), ReadHeaderTimeout: s.cfg.HandshakeTimeout, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * has the headers of every answer, too
		ReadTimeout:                  s.cfg.MessageTimeout, IdleTimeout: idleHTTP,
		ConnContext: s.arrivals.Accept, ConnState: s.arrivals.Changed,
		ErrorLog: stdlog.New(s.dep.Logger.With().Str("level", "debug").Logger(), "", 0),
	}
}

// extraServer returns the server of the paths of an extra listener.
func (s *Server) extraServer(paths []string) *http.Server {
	return s.httpServer(fromQuery(through(s.extraRoutes(paths), s.probed, s.door.named)))
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
		mux.Handle(path, s.elsewhere.homed(s.socketsUnder(path)))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { s.problem(w, fault.New(fault.NotFound)) })
	return mux
}

// under gives requests of any path the path of a route, under which other cells' gateways serve it, too.
func (s *Server) under(path string, h http.Handler) http.Handler {
	h = s.elsewhere.homed(h)
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
