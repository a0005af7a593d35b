// Package mcp connects MCP servers: programs that speak over their standard input and
// output, streamable HTTP endpoints, and servers within this process.
//
// A server is somebody else's program and treated as hostile: it may hang, flood, die,
// fork or change its tools, and then harms only the calls that it was given. A program
// runs in a process group of its own, which is killed as a whole; its output is bounded
// in bytes. A call that a server lost is reported as lost, its outcome never guessed.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
)

const (
	// firstPause and longestPause bound the wait before a server that died is
	// started again: quick for the first time, bearable for a program that always dies.
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
	// healthy is how long a connection must have held for the pauses to start anew.
	healthy = 10 * time.Second
	// refreshEvery is how often tools are fetched unasked. It also finds servers
	// that hang, and HTTP servers that are gone.
	refreshEvery = time.Minute
	// refreshPause is the shortest time between two fetches, whatever a server says.
	refreshPause = time.Second
	// refreshTimeout bounds one fetch.
	refreshTimeout = 15 * time.Second
	// keepListed is how long the tools of a server stay on the list after its
	// connection was lost. A restart must not make tools disappear in the middle
	// of a conversation.
	keepListed = time.Minute
	// connectWait is how long a call waits for a server that is being reconnected.
	connectWait = 10 * time.Second
)

// States of a server, and labels of its metric.
const (
	StateConnecting = "connecting"
	StateConnected  = "connected"
	StateStopped    = "stopped"
)

// States are all states of a server.
var States = []string{StateConnecting, StateConnected, StateStopped}

// Server keeps a connection to one MCP server: it connects in the background, again and
// again, and knows the server's tools. It is safe for concurrent use.
type Server struct {
	cfg     Config
	dial    Dialer
	log     zerolog.Logger
	state   func(string) // told of every change of state
	refresh chan struct{}

	mu    sync.Mutex
	cur   *session // nil while there is no connection
	since time.Time
	tools map[string]*offer.Tool
	news  chan struct{} // closed and replaced at every change of the above

	closing sync.WaitGroup // ends of HTTP sessions that nobody waits for
}

// New returns a server that is not connected. state, which must not block, is told of
// every change of state.
func New(cfg Config, dial Dialer, log zerolog.Logger, state func(string)) *Server {
	return &Server{
		cfg: cfg, dial: dial, log: log.With().Str("server", cfg.Name).Logger(), state: state,
		refresh: make(chan struct{}, 1), news: make(chan struct{}),
	}
}

// Run keeps the server connected until ctx ends, and ends the connection then.
func (s *Server) Run(ctx context.Context) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = firstPause, longestPause, 2
	defer s.state(StateStopped)
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
		s.log.Warn().Err(err).Dur("retry_in", wait).Msg("reconnect tool server")
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// live connects once and stays until the connection ends. It reports whether
// there was a connection, and why it is no more.
func (s *Server) live(ctx context.Context, legacy bool) (connected bool, err error) {
	dialCtx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	sess, err := s.dial(dialCtx, legacy, s.changed)
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
	offered, err := s.fetch(ctx, sess)
	if err != nil {
		return false, err
	}
	s.publish(sess, offered)
	s.state(StateConnected)
	s.log.Info().Int("tools", len(offered)).Msg("connect tool server")
	return true, s.watch(ctx, sess)
}

// watch keeps the tools of a connection fresh. It returns why the connection is over.
func (s *Server) watch(ctx context.Context, sess *session) error {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-sess.gone:
			return errors.New("it did not react to a cancelled call, or cannot be reached")
		case <-sess.done:
			return sess.ending()
		case <-s.refresh:
		case <-tick.C:
		}
		offered, err := s.fetch(ctx, sess)
		switch {
		case err == nil:
			s.publish(sess, offered)
		case sess.idle():
			return err
		default:
			s.log.Warn().Err(err).Msg("fail to list tools of busy server")
			s.changed()
		}
		select {
		case <-ctx.Done():
		case <-sess.done:
		case <-time.After(refreshPause):
		}
	}
}

func (s *Server) fetch(ctx context.Context, sess *session) (map[string]*offer.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	return catalogue(ctx, sess.cs, &s.cfg, s.log)
}

// changed asks for a fetch of the tools. It never blocks.
func (s *Server) changed() {
	select {
	case s.refresh <- struct{}{}:
	default:
	}
}

// publish makes a connection current, or none. Without one the tools stay known:
// a call that comes now waits for the reconnection.
func (s *Server) publish(sess *session, offered map[string]*offer.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess == nil && s.cur != nil {
		s.since = time.Now()
	}
	s.cur = sess
	if offered != nil {
		s.tools = offered
	}
	close(s.news)
	s.news = make(chan struct{})
}

// Offered returns the server's tools, or none if it has been away for too long.
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

// find returns the tool as last known.
func (s *Server) find(offered string) *offer.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[offered]
}

// Called returns the offered name of the tool that a caller means: the one that the server
// calls so, else the only one of that title.
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

// acquire returns the current connection, reserved for one call, and the tool as
// it is there. It waits for a connection for a while. The error is nil unless ctx
// ended; the session is nil if there was no connection in time, the tool if the
// server does not have it (any more).
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
		case <-news: // Of a connection that has just ended there soon is, too.
		}
	}
}

// connected reports whether there is a connection now.
func (s *Server) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur != nil
}

// Ready waits for the first connection.
func (s *Server) Ready(ctx context.Context) error {
	for {
		s.mu.Lock()
		sess, news := s.cur, s.news
		s.mu.Unlock()
		if sess != nil {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Name returns the server's name.
func (s *Server) Name() string { return s.cfg.Name }

// Visible reports whether the tenant may see the server.
func (s *Server) Visible(t id.Tenant) bool {
	return len(s.cfg.Tenants) == 0 || slices.Contains(s.cfg.Tenants, t)
}

// Wait returns when the HTTP connections that were closed in the background are closed.
func (s *Server) Wait() { s.closing.Wait() }

// Types of servers.
const (
	typeProgram   = "stdio"
	typeHTTP      = "http"
	typeWorkspace = "filesystem" // the built-in one
)

// Describe returns the server's description and its status now.
func (s *Server) Describe() tools.Server {
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
	if s.connected() {
		out.Status = command.StatusActive
	}
	for _, t := range s.Offered() {
		out.Capabilities = append(out.Capabilities, t.Own)
		if verb, _, _ := strings.Cut(t.Own, "_"); out.Type == typeWorkspace {
			out.Capabilities = append(out.Capabilities, verb) // read, write, list, search
		}
	}
	slices.Sort(out.Capabilities)
	return out
}
