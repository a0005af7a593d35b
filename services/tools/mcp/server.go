// Package mcp connects MCP servers: programs with the protocol over their standard input and output, streamable HTTP
// endpoints, and servers within this process.
//
// The package treats a server as a hostile program: it may hang, flood, die, fork or change its tools, and then harms only
// its own calls. A program runs in a process group of its own, which is killed as a whole; its output is bounded in bytes.
// The package reports a lost call as lost and never guesses its outcome.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
	"github.com/waggle-dev/waggle/services/tools/internal/scrub"
	"github.com/waggle-dev/waggle/services/tools/internal/turn"
)

const (
	// firstPause and longestPause bound the wait before a restart of a dead server: short for the first time, and long
	// enough for a program that always dies.
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
	// healthy is the lifetime of a connection after which the pauses start anew.
	healthy = 10 * time.Second
	// refreshEvery is the interval of unasked fetches of the tools. They also detect hanging servers and missing HTTP
	// servers.
	refreshEvery = time.Minute
	// refreshPause is the shortest time between two fetches, regardless of the server's messages.
	refreshPause = time.Second
	// refreshTimeout bounds one fetch.
	refreshTimeout = 15 * time.Second
	// keepListed is the time for which a server's tools stay on the list after its connection was lost. A restart must not
	// remove tools in the middle of a conversation.
	keepListed = time.Minute
	// connectWait is the time for which a call waits for a reconnecting server.
	connectWait = 10 * time.Second
)

// States of a server, and labels of its metric.
const (
	StateConnecting = "connecting"
	StateConnected  = "connected"
	StateStopped    = "stopped"
	StateSame       = "" // as before: what Describe or Report returns has changed
)

// States are all states of a server.
var States = []string{StateConnecting, StateConnected, StateStopped}

// Server keeps a connection to one MCP server: it connects in the background, again after each loss, and knows the server's
// tools. It is safe for concurrent use.
type Server struct {
	cfg     Config
	turns   *turn.Turns // for the checks of arguments and results
	dial    Dialer
	log     zerolog.Logger
	state   func(string) // receives every change of state
	refresh chan struct{}

	mu    sync.Mutex
	cur   *session // nil without a connection
	since time.Time
	tools map[string]*offer.Tool
	news  chan struct{} // closed and replaced at every change of the fields above, and of trouble

	trouble string          // why the server has no connection
	left    []tools.LeftOut // of the last list of tools
	passed  []string        // parts of that list that do not count

	programs *programs // nil without Config.PerTenant

	scrub   scrub.Scrubber
	refused atomic.Bool    // the sandbox did not start the program
	closing sync.WaitGroup // closings of HTTP sessions in the background
}

// New returns a server without a connection. It calls state, which must not block, at every change of state, and whenever
// what Describe returns has changed.
func New(cfg Config, dial Dialer, log zerolog.Logger, state func(string)) *Server {
	s := &Server{
		cfg: cfg, dial: dial, log: log.With().Str("server", cfg.Name).Logger(), state: state,
		refresh: make(chan struct{}, 1), news: make(chan struct{}), scrub: cfg.scrubber(),
	}
	if cfg.PerTenant {
		s.programs = &programs{server: s, log: log, own: map[id.Tenant]*program{}, ending: map[id.Tenant]*program{}}
	}
	return s
}

// Take makes the server check arguments and results in turns, and returns it. It precedes Run.
func (s *Server) Take(turns *turn.Turns) *Server {
	s.turns = turns
	return s
}

// Run keeps the server connected until ctx ends, and then ends the connection.
func (s *Server) Run(ctx context.Context) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = firstPause, longestPause, 2
	defer s.state(StateStopped)
	if s.programs != nil {
		s.programs.open(ctx)
		defer s.programs.wait()
	}
	legacy := false
	for ctx.Err() == nil {
		s.state(StateConnecting)
		began := time.Now()
		connected, err := s.live(ctx, legacy)
		if ctx.Err() != nil {
			return
		}
		if !connected {
			legacy = !legacy
		}
		if connected && time.Since(began) > healthy {
			pause.Reset()
		}
		wait := pause.NextBackOff()
		s.failed(err, wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// live connects once and stays until the connection ends. It reports whether it connected, and why the connection ended.
func (s *Server) live(ctx context.Context, legacy bool) (connected bool, err error) {
	dialCtx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	sess, err := s.dial(dialCtx, legacy, s.changed)
	_, refused := errors.AsType[*sandbox.GapError](err)
	s.refused.Store(refused)
	if err != nil {
		return false, err
	}
	sess.background = s.closing.Go
	defer func() {
		s.publish(nil, nil)
		sess.retire()
		if ctx.Err() != nil {
			sess.close(false)
		}
	}()
	list, err := s.fetch(ctx, sess)
	if err != nil {
		return false, sess.explain(err)
	}
	s.publish(sess, list)
	s.state(StateConnected)
	s.log.Info().Int("tools", len(list.offered)).Msg("tool server connected")
	return true, s.watch(ctx, sess)
}

// noNetwork is the remedy of programs that load themselves from a registry before they answer.
const noNetwork = "The program has no network. If it is fetched at its start (npx, uvx, docker) or connects elsewhere, set network: true."

// failed records why the server has no connection.
func (s *Server) failed(err error, wait time.Duration) {
	if err == nil {
		err = errors.New("the connection ended")
	}
	why := s.scrub.Text(err.Error(), bound.Message)
	e := s.log.Warn().Str(zerolog.ErrorFieldName, why).Dur("retry_in", wait)
	if end, ok := errors.AsType[*endError](err); ok && end.said != "" {
		e = e.Str("stderr", end.said)
		why += ". Its last words:\n" + end.said
	}
	if len(s.cfg.Command) > 0 && s.cfg.Sandbox.Mode != sandbox.Off && !s.cfg.Sandbox.Network {
		e = e.Str("hint", noNetwork)
		why += ".\n" + noNetwork
	}
	e.Msg("tool server disconnected; will reconnect")
	s.mu.Lock()
	s.trouble = why
	s.tell()
	s.mu.Unlock()
	s.state(StateConnecting)
}

// watch keeps the tools of a connection fresh. It returns the reason of the connection's end.
func (s *Server) watch(ctx context.Context, sess *session) error {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-sess.gone:
			return errors.New("it did not respond to a cancelled call, or cannot be reached")
		case <-sess.done:
			return sess.ending()
		case <-s.refresh:
		case <-tick.C:
		}
		list, err := s.fetch(ctx, sess)
		switch {
		case err == nil:
			s.publish(sess, list)
			s.state(StateConnected)
		case sess.idle():
			return err
		default:
			s.log.Warn().Err(err).Msg("failed to refresh tool list of busy server")
			s.changed()
		}
		select {
		case <-ctx.Done():
		case <-sess.done:
		case <-time.After(refreshPause):
		}
	}
}

func (s *Server) fetch(ctx context.Context, sess *session) (*listing, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	return catalogue(ctx, sess.cs, &s.cfg)
}

// changed requests a fetch of the tools. It never blocks.
func (s *Server) changed() {
	select {
	case s.refresh <- struct{}{}:
	default:
	}
}

// publish sets the current connection with its tools, or clears it. Without a connection the tools stay known: a new call
// waits for the reconnection.
func (s *Server) publish(sess *session, list *listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess == nil && s.cur != nil {
		s.since = time.Now()
	}
	s.cur = sess
	if list != nil {
		s.report(list)
		s.tools, s.left, s.passed, s.trouble = list.offered, list.left, list.passed, ""
	}
	s.tell()
}

// tell wakes those who wait for a change. The caller holds the lock.
func (s *Server) tell() {
	close(s.news)
	s.news = make(chan struct{})
}

// report logs what is new of the tools that are not on offer, and of what does not count. The caller holds the lock.
func (s *Server) report(list *listing) {
	for _, l := range list.left {
		if !slices.Contains(s.left, l) {
			s.log.Warn().Str("tool", l.Tool).Str("why", l.Why).Msg("tool left out")
		}
	}
	for _, p := range list.passed {
		if !slices.Contains(s.passed, p) {
			s.log.Warn().Str("part", p).Msg("part of tool ignored")
		}
	}
}

// Offered returns the server's tools, or none after a long loss of its connection.
func (s *Server) Offered() []tools.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == nil && time.Since(s.since) > keepListed {
		return nil
	}
	list := make([]tools.Tool, 0, len(s.tools))
	for k := range maps.Values(s.tools) {
		list = append(list, k.Tool)
	}
	return list
}

// find returns the last known tool of the name.
func (s *Server) find(offered string) *offer.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[offered]
}

// Called returns the offered name of the caller's tool: the one with that name at the server, else the only one with that
// title.
func (s *Server) Called(own string) string {
	offered := offer.Name(s.cfg.Name, own)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools[offered] != nil || own == "" {
		return offered
	}
	titled := ""
	for name, k := range s.tools {
		switch {
		case k.Title != own:
		case titled != "":
			return offered // two tools have this title
		default:
			titled = name
		}
	}
	return cmp.Or(titled, offered)
}

// acquire returns the current connection, reserved for one call, with its version of the tool. It waits for a connection for
// a limited time. The error is nil unless ctx ended; the session is nil without a connection in time, the tool if the server
// does not have it (any more).
func (s *Server) acquire(ctx context.Context, offered string) (*session, *offer.Tool, error) {
	wait := time.NewTimer(connectWait)
	defer wait.Stop()
	for {
		s.mu.Lock()
		sess, tool, news := s.cur, s.tools[offered], s.news
		s.mu.Unlock()
		if sess != nil && sess.take() {
			return sess, tool, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-wait.C:
			return nil, nil, nil
		case <-news: // A connection that has just ended changes soon, too.
		}
	}
}

// connected reports whether the server has a connection.
func (s *Server) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur != nil
}

// Ready waits for the first connection.
func (s *Server) Ready(ctx context.Context) error {
	return s.until(ctx, func() bool { return s.cur != nil })
}

// Tried waits until the server has connected, or has failed to.
func (s *Server) Tried(ctx context.Context) error {
	return s.until(ctx, func() bool { return s.cur != nil || s.trouble != "" })
}

// until waits until a change has made true what the function says, which is called under the lock.
func (s *Server) until(ctx context.Context, fits func() bool) error {
	for {
		s.mu.Lock()
		fit, news := fits(), s.news
		s.mu.Unlock()
		if fit {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Report returns why the server has no connection, the tools that are not on offer, and how many tenants have a program.
func (s *Server) Report() tools.Report {
	out := tools.Report{Tenants: !s.Shared()}
	if s.programs != nil {
		out.Programs = s.programs.count()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Trouble, out.LeftOut = s.trouble, s.left
	return out
}

// Name returns the server's name.
func (s *Server) Name() string { return s.cfg.Name }

// Visible reports whether the tenant may see the server.
func (s *Server) Visible(t id.Tenant) bool {
	return len(s.cfg.Tenants) == 0 || slices.Contains(s.cfg.Tenants, t)
}

// Shared reports whether all tenants may see the server.
func (s *Server) Shared() bool { return len(s.cfg.Tenants) == 0 }

// Wait waits for the HTTP connections that close in the background.
func (s *Server) Wait() { s.closing.Wait() }

// Types of servers.
const (
	typeProgram   = "stdio"
	typeHTTP      = "http"
	typeWorkspace = "filesystem" // the built-in server
)

// Describe returns the server's description for the tenant, with its current status: of the tenant's program, if it has one.
func (s *Server) Describe(t id.Tenant) tools.Server {
	out := tools.Server{
		Kind: tools.KindMCP, ID: s.cfg.Name, Name: s.cfg.Name, Type: typeWorkspace,
		Status: command.StatusInactive, Capabilities: []string{},
	}
	switch {
	case len(s.cfg.Command) > 0:
		out.Type = typeProgram
	case s.cfg.URL != "":
		out.Type = typeHTTP
	}
	own := s
	if s.programs != nil {
		own = cmp.Or(s.programs.find(t), s)
	}
	if own.connected() {
		out.Status = command.StatusActive
	}
	out.Trouble, out.LeftOut = own.Report().Trouble, s.Report().LeftOut
	for _, t := range s.Offered() {
		out.Capabilities = append(out.Capabilities, t.Own)
		if verb, _, _ := strings.Cut(t.Own, "_"); out.Type == typeWorkspace {
			out.Capabilities = append(out.Capabilities, verb) // read, write, list, search
		}
	}
	slices.Sort(out.Capabilities)
	return out
}
