package tools

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"
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

// State of a server, and label of its metric.
const (
	stateConnecting = "connecting"
	stateConnected  = "connected"
	stateStopped    = "stopped"
)

var states = []string{stateConnecting, stateConnected, stateStopped}

// server keeps a connection to one MCP server: it connects in the background,
// again and again, and knows the server's tools.
type server struct {
	cfg     ServerConfig
	dial    dialer
	log     zerolog.Logger
	state   func(string) // told of every change of state
	refresh chan struct{}

	mu    sync.Mutex
	cur   *session // nil while there is no connection
	since time.Time
	tools map[string]*known
	news  chan struct{} // closed and replaced at every change of the above

	closing sync.WaitGroup // ends of HTTP sessions that nobody waits for
}

func newServer(cfg ServerConfig, dial dialer, log zerolog.Logger, state func(string)) *server {
	return &server{
		cfg: cfg, dial: dial, log: log.With().Str("server", cfg.Name).Logger(), state: state,
		refresh: make(chan struct{}, 1), news: make(chan struct{}),
	}
}

// run keeps the server connected until ctx ends, and ends the connection then.
func (s *server) run(ctx context.Context) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = firstPause, longestPause, 2
	defer s.state(stateStopped)
	legacy := false
	for ctx.Err() == nil {
		s.state(stateConnecting)
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
		s.log.Warn().Err(err).Dur("retry_in", wait).Msg("tool server is not connected")
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// live connects once and stays until the connection ends. It reports whether
// there was a connection, and why it is no more.
func (s *server) live(ctx context.Context, legacy bool) (connected bool, err error) {
	dialCtx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	sess, err := s.dial(dialCtx, legacy, s.changed)
	if err != nil {
		return false, err
	}
	sess.aside = s.closing.Go
	defer func() {
		s.publish(nil, nil)
		sess.retire()
		if ctx.Err() != nil {
			sess.close(false)
		}
	}()
	tools, err := s.fetch(ctx, sess)
	if err != nil {
		return false, err
	}
	s.publish(sess, tools)
	s.state(stateConnected)
	s.log.Info().Int("tools", len(tools)).Msg("tool server is connected")
	return true, s.watch(ctx, sess)
}

// watch keeps the tools of a connection fresh. It returns why the connection is over.
func (s *server) watch(ctx context.Context, sess *session) error {
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
		tools, err := s.fetch(ctx, sess)
		switch {
		case err == nil:
			s.publish(sess, tools)
		case sess.idle():
			return err
		default:
			s.log.Warn().Err(err).Msg("a busy tool server does not list its tools")
			s.changed()
		}
		select {
		case <-ctx.Done():
		case <-sess.done:
		case <-time.After(refreshPause):
		}
	}
}

func (s *server) fetch(ctx context.Context, sess *session) (map[string]*known, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	return catalogue(ctx, sess.cs, &s.cfg, s.log)
}

// changed asks for a fetch of the tools. It never blocks.
func (s *server) changed() {
	select {
	case s.refresh <- struct{}{}:
	default:
	}
}

// publish makes a connection current, or none. Without one the tools stay known:
// a call that comes now waits for the reconnection.
func (s *server) publish(sess *session, tools map[string]*known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess == nil && s.cur != nil {
		s.since = time.Now()
	}
	s.cur = sess
	if tools != nil {
		s.tools = tools
	}
	close(s.news)
	s.news = make(chan struct{})
}

// offered returns the server's tools, or none if it has been away for too long.
func (s *server) offered() []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == nil && time.Since(s.since) > keepListed {
		return nil
	}
	list := make([]Tool, 0, len(s.tools))
	for k := range maps.Values(s.tools) {
		list = append(list, k.Tool)
	}
	return list
}

// find returns the tool as last known.
func (s *server) find(offered string) *known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[offered]
}

// called returns the offered name of the tool that a caller means: the one that the server
// calls so, else the only one of that title.
func (s *server) called(own string) string {
	offered := offeredName(s.cfg.Name, own)
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
			return offered // two of one title are none
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
func (s *server) acquire(ctx context.Context, offered string) (*session, *known, error) {
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
func (s *server) connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur != nil
}

// ready waits for the first connection.
func (s *server) ready(ctx context.Context) error {
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
