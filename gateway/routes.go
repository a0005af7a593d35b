package gateway

import (
	"net/http"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/binding/single"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// viewers is the policy of routes on which users watch and act.
func viewers(*Server) binding.Policy { return binding.Policy{Rights: binding.Viewer} }

// Single returns the route of a dialect whose connections show one session each.
func Single(d dialect.Dialect) Route {
	return Route{protocol: d.Name(), policy: viewers, bind: func(s *Server, c binding.Connection, r *http.Request, target *binding.Target) (binding.Binding, error) {
		codec, err := d.Bind(r.URL.Query())
		if err != nil {
			return nil, err
		}
		return single.New(s.shared, c, codec, target), nil
	}}
}

// Multi returns the route of a dialect whose connections hold several sessions.
func Multi(d dialect.MultiDialect) Route {
	return Route{protocol: d.Name(), policy: viewers, bind: func(s *Server, c binding.Connection, r *http.Request, target *binding.Target) (binding.Binding, error) {
		codec, err := d.BindSessions(r.URL.Query())
		if err != nil {
			return nil, err
		}
		return s.multi.Bind(c, translated(codec, r), target), nil
	}}
}

// Team returns the route of a dialect whose connections show the team or the member that their
// path names with the wildcard {team_id} or {agent_id}, or that their query names.
func Team(d dialect.TeamDialect) Route {
	return Route{protocol: d.Name(), policy: viewers, bind: func(s *Server, c binding.Connection, r *http.Request, target *binding.Target) (binding.Binding, error) {
		codec, err := d.BindTeams(r.URL.Query())
		if err != nil {
			return nil, err
		}
		return single.NewTeam(s.shared, c, codec, target), nil
	}}
}

// Swarm returns the route of clients, agents or providers of a swarm.
func Swarm(codec dialect.Participants) Route {
	return Route{
		protocol: codec.Name(), swarm: true,
		policy: func(s *Server) binding.Policy { return s.swarm.Policy(codec) },
		bind: func(s *Server, c binding.Connection, _ *http.Request, target *binding.Target) (binding.Binding, error) {
			return s.swarm.Bind(c, codec, target), nil
		},
	}
}

// routes returns the handler of all requests. It serves probes under any host name,
// because their clients know the machine by its address.
func (s *Server) routes() http.Handler {
	paths := http.NewServeMux()
	api.New(api.Config{
		Conn: s.dep.Conn, Log: s.dep.Log, Commands: s.dep.Commands, Signer: s.dep.Signer, Auth: s.gate, Sight: s.sight, Logger: s.dep.Logger, Status: s.dep.Status,
		Admit:  s.admitRequest,
		Stream: s.streamLog, Live: s.serveEvents((*events).bindLive),
	}).Mount(paths)
	paths.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { s.problem(w, fault.New(fault.NotFound)) })
	mux := http.NewServeMux()
	for path, route := range s.dep.Routes {
		mux.Handle(path, s.named(s.accept(route)))
	}
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, map[string]string{"status": "alive"}) })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("/", s.named(s.sameOrigin(s.limited(s.audited(http.MaxBytesHandler(paths, s.cfg.ReadLimit))))))
	return mux
}
