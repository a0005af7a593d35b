package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/text/language"

	"github.com/waggle-dev/waggle/gateway/agui"
	"github.com/waggle-dev/waggle/gateway/agui/thread"
	"github.com/waggle-dev/waggle/gateway/aisdk"
	"github.com/waggle-dev/waggle/gateway/aisdk/chat"
	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/binding/single"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/gateway/team/teams"
	"github.com/waggle-dev/waggle/gateway/translation"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxLanguages bounds the header that is read: no user knows more languages.
const maxLanguages = 1 << 10

// queryLanguage is the parameter that names the language of texts for people, in every
// dialect that has such texts.
const queryLanguage = "language"

// viewers is the policy of routes on which users watch and act.
func viewers(*Server) binding.Policy { return binding.Policy{Rights: binding.Viewer} }

// Single returns the route of a dialect whose connections show one session each.
func Single(d dialect.Dialect) Route {
	return Route{protocol: d.Name(), frames: translation.Of(d), policy: viewers, bind: func(s *Server, c binding.Connection, r *http.Request, target *binding.Target) (binding.Binding, error) {
		codec, err := d.Bind(r.URL.Query())
		if err != nil {
			return nil, err
		}
		return single.New(s.shared, c, codec, target), nil
	}}
}

// Multi returns the route of a dialect whose connections hold several sessions.
func Multi(d myagent.Dialect) Route {
	return Route{protocol: d.Name(), frames: translation.Of(d), policy: viewers, bind: func(s *Server, c binding.Connection, r *http.Request, target *binding.Target) (binding.Binding, error) {
		codec, err := d.Codec(r.URL.Query())
		if err != nil {
			return nil, err
		}
		return s.multi.Bind(c, translated(codec, r), target), nil
	}}
}

// translated returns the codec for the preferred language of a browser. It returns the given one
// if the query names a language, or if the dialect has no texts in a preferred one.
func translated(codec *myagent.Codec, r *http.Request) *myagent.Codec {
	header := r.Header.Get("Accept-Language")
	if header == "" || len(header) > maxLanguages || r.URL.Query().Get(queryLanguage) != "" {
		return codec
	}
	tags, weights, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return codec
	}
	for i, t := range tags {
		base, confidence := t.Base()
		if weights[i] == 0 || confidence == language.No {
			continue
		}
		if in, ok := codec.In(base.String()); ok {
			return in
		}
	}
	return codec
}

// Team returns the route of a dialect whose connections show the team or the member that their
// path names with the wildcard {team_id} or {agent_id}, or that their query names.
func Team(d team.Dialect) Route {
	return Route{protocol: d.Name(), frames: translation.Of(d), policy: viewers, bind: func(s *Server, c binding.Connection, r *http.Request, target *binding.Target) (binding.Binding, error) {
		codec, err := d.Codec(r.URL.Query())
		if err != nil {
			return nil, err
		}
		return teams.New(s.shared, c, codec, target), nil
	}}
}

// Swarm returns the route of clients, agents or providers of a swarm.
func Swarm(codec *asp.Codec) Route {
	var frames translation.Protocol
	if codec.Kind() == command.ParticipantClient { // others watch no log
		frames = translation.Watched(codec.Encode)
	}
	return Route{
		protocol: codec.Name(), swarm: true, frames: frames,
		policy: func(s *Server) binding.Policy { return s.swarm.Policy(codec) },
		bind: func(s *Server, c binding.Connection, _ *http.Request, target *binding.Target) (binding.Binding, error) {
			return s.swarm.Bind(c, codec, target), nil
		},
	}
}

// translator returns the translation of logs into the protocols of the routes, and into AG-UI.
func (s *Server) translator() func(subject.Log, url.Values) (api.Translation, error) {
	all := translation.AGUI()
	for _, route := range s.dep.Routes {
		if route.frames != nil {
			all[route.protocol] = route.frames
		}
	}
	return func(l subject.Log, query url.Values) (api.Translation, error) {
		t, err := all.Begin(l.Kind, l.Entity.String(), query)
		return api.Translation(t), err
	}
}

// routes returns the handler of all requests. It serves probes under any host name,
// because their clients know the machine by its address.
func (s *Server) routes() http.Handler {
	paths := http.NewServeMux()
	var reports http.HandlerFunc
	if s.dep.Pages != nil {
		reports = s.pageReports.ServeHTTP
	}
	api.New(api.Config{
		Edge: s.shared.Edge, Signatures: s.dep.Signatures, Auth: s.gate, Admit: s.door.admitRequest,
		Status: s.dep.Status, Settings: s.dep.Settings, Rates: s.dep.Rates, Examine: s.dep.Examine, Connections: s.census.List,
		Stream: s.streams.streamLog, Live: s.streams.serveEvents((*eventStream).bindLive), Translate: s.translator(), Reports: reports, Console: s.dep.Console,
	}).Mount(paths)
	agui.Mount(paths, thread.New(s.shared, min(s.cfg.ReadyTimeout, thread.DefaultMaxWait)), s.streams.streamThread, s.streams.threadServer(), s.dep.Version)
	aisdk.Mount(paths, chat.New(s.shared), s.streams.streamChat, s.streams.chatServer())
	paths.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.unserved(w, r, paths) })
	mux := http.NewServeMux()
	for path, route := range s.dep.Routes {
		mux.Handle(path, through(s.elsewhere.homed(s.accept(route)), s.door.named))
	}
	mux.HandleFunc("GET "+pathHealth, s.health)
	mux.HandleFunc("GET "+pathTeamHealth, s.health)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, map[string]string{"status": "alive"}) })
	mux.HandleFunc("GET /readyz", s.readyz)
	// Browsers send reports without the origin of their page, and strangers leave no audit records.
	mux.Handle("POST "+api.ReportsPath, through(s.door.limited(paths), s.door.named))
	recorded := edge.Recorder{Log: s.dep.Audit, Refusals: s.refusals, Auth: s.dep.Auth}
	mux.Handle("/", through(s.elsewhere.homed(through(s.door.limited(recorded.Handler(paths)), s.door.sameOrigin, s.door.bounded)), s.door.named, s.door.paged()))
	return mux
}

// unserved answers a request that no route takes. One whose address takes other methods is told which.
func (s *Server) unserved(w http.ResponseWriter, r *http.Request, paths *http.ServeMux) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if _, pattern := paths.Handler(&http.Request{Method: method, Host: r.Host, URL: r.URL}); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		if page := s.dep.Pages; page == nil || strings.HasPrefix(r.URL.Path, "/api/") || !page.Lost(w, r) {
			s.problem(w, fault.New(fault.NotFound))
		}
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.problem(w, fault.New(fault.MethodNotAllowed))
}
