package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/sandbox"
)

const (
	// connectTimeout bounds start and handshake of a server. A program that a package manager fetches on first use takes
	// longest.
	connectTimeout = 30 * time.Second
	// httpConnectTimeout is shorter: an HTTP server runs already or does not answer.
	httpConnectTimeout = 10 * time.Second
	// httpBodyLimit bounds the body of one HTTP response, an event stream included: as much as a program may send unasked.
	httpBodyLimit = floodBurst
	// idleConn is the time for which an HTTP connection waits for the next call.
	idleConn = 90 * time.Second
	// listFolder is the folder of the program that lists the tools of a server with Config.PerTenant. No tenant's folder has its name.
	listFolder = "~tools"
	// clientVersion is the version of this MCP client.
	clientVersion = "1.0.0"
	// legacyProtocol is the version for a server that did not understand the newest handshake.
	legacyProtocol = "2025-11-25"
)

// Dialer opens one connection to a server. The connection calls changed, which must not block, when the server reports
// changed tools.
type Dialer func(ctx context.Context, legacy bool, changed func()) (*session, error)

// handshake opens the protocol over a transport.
func handshake(ctx context.Context, t mcp.Transport, legacy bool, changed func()) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "waggle", Version: clientVersion}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{}, // The client offers nothing to a server: no roots, no sampling.
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed() },
	})
	opts := &mcp.ClientSessionOptions{}
	if legacy {
		opts.ProtocolVersion = legacyProtocol
	}
	return c.Connect(ctx, t, opts)
}

// dialProgram starts a program and opens the protocol over its standard input and output.
func dialProgram(cfg *Config, log zerolog.Logger) Dialer {
	var once sync.Once
	clean := cfg.scrubber()
	return func(ctx context.Context, legacy bool, changed func()) (*session, error) {
		said := &words{log: log, scrub: clean}
		p, err := startProcess(cfg, said)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", cfg.Command[0], err)
		}
		once.Do(func() { describe(p.launch, log) })
		g := newGuard(p.stdout, time.Now, said.hear("line dropped: not a protocol message"))
		// The guard bounds a line, this limit a message that is spread over lines.
		pipes := &mcp.IOTransport{Reader: g, Writer: p.stdin, MaxLineLength: maxLine + guardBlock}
		// The end of the program releases a connection that hangs in the handshake.
		stop := context.AfterFunc(ctx, func() { p.stop(true) })
		cs, err := handshake(ctx, tapped{pipes}, legacy, changed)
		if !stop() || err != nil {
			// A program that has ended fails the handshake in many ways, all of which say less than its end.
			alone := answerOf(err) == nil && p.gone(exitGrace)
			if alone { // its output may say why
				select {
				case <-g.ended:
				case <-time.After(lastWords):
				}
			}
			p.stop(true)
			_ = p.stdout.Close()
			if cs != nil { // it came up as the caller gave up
				_ = cs.Close()
			}
			return nil, unusable(ctx, err, alone, p.ending())
		}
		s := newSession(cs)
		s.proc, s.budget, s.seen, s.keep = p, g.budget, true, cfg.KeepOnCancel
		return s, nil
	}
}

// dialListing is dialProgram for the program that lists the tools of a server with Config.PerTenant.
func dialListing(cfg *Config, log zerolog.Logger) Dialer {
	var dial Dialer
	return func(ctx context.Context, legacy bool, changed func()) (*session, error) {
		if dial == nil {
			own, err := cfg.in(listFolder)
			if err != nil {
				return nil, err
			}
			dial = dialProgram(&own, log)
		}
		return dial(ctx, legacy, changed)
	}
}

// in returns the configuration of one of the programs, with a folder of its own in Dir, which is made.
func (c Config) in(name string) (Config, error) {
	c.PerTenant = false
	if c.Dir == "" {
		return c, nil
	}
	dir, err := makeFolder(c.Dir, name)
	if err != nil {
		return c, fmt.Errorf("make a folder in %s: %w", c.Dir, err)
	}
	c.Dir = dir
	return c, nil
}

// unusable returns why a program could not be used: how it ended, if it did so by itself.
func unusable(ctx context.Context, handshake error, alone bool, end error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("it did not answer within %s; %w", connectTimeout, end)
	case alone:
		return end
	}
	return fmt.Errorf("%w; %w", handshake, end)
}

// describe logs the sandbox of a program, and what a hostile one could do for lack of a layer.
func describe(l *sandbox.Launch, log zerolog.Logger) {
	for _, g := range l.Gaps {
		log.Warn().Str("missing", g.Missing).Str("allows", g.Allows).Msg("tool server sandbox has a gap")
	}
	log.Debug().Stringer("sandbox", l.Features).Strs("reads", l.Named).Msg("tool server starting")
}

// InProcess opens the protocol with a server within this process, which each connection asks for.
func InProcess(server func() *mcp.Server) Dialer {
	return func(ctx context.Context, legacy bool, changed func()) (*session, error) {
		near, far := mcp.NewInMemoryTransports()
		ss, err := server().Connect(ctx, far, nil)
		if err != nil {
			return nil, err
		}
		cs, err := handshake(ctx, tapped{near}, legacy, changed)
		if err != nil {
			return nil, errors.Join(err, ss.Close())
		}
		s := newSession(cs)
		s.seen = true
		s.end = func() {
			_ = cs.Close() // first: the server waits for the end of the subscription to its changes
			_ = ss.Close()
		}
		return s, nil
	}
}
