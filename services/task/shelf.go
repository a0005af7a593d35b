package task

import (
	"context"
	"slices"
	"sync"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/tools"
)

const (
	// toolsFresh is how long it is remembered which tools a server has.
	toolsFresh = 10 * time.Second
	// toolsWait is how long a task's other commands wait for the list of tools.
	toolsWait = 2 * time.Second
	// maxServers bounds the remembered servers.
	maxServers = 1024
)

// shelf remembers for a moment which tools servers have. It is safe for concurrent use.
type shelf struct {
	*base

	tools tools.Toolbox

	mu    sync.Mutex
	known map[shelfKey]shelved
}

type shelfKey struct {
	tenant       id.Tenant
	kind, server string
}

type shelved struct {
	server tools.Server
	tools  []tools.Tool
	until  time.Time
}

// tool returns the registry's entry of the tool that a command names. An unknown tool is not
// repeatable; the worker that runs the call reports the error.
func (x *shelf) tool(ctx context.Context, c cmd.Command) assignment.Tool {
	var d cmd.ToolRequest
	if c.Verb != cmd.CallTool || c.Decode(&d) != nil || x.payloads.Fill(ctx, c.Tenant, &d) != nil {
		return assignment.Tool{}
	}
	return x.toolOf(ctx, c.Tenant, d)
}

// toolOf returns the registry's entry of the requested tool.
func (x *shelf) toolOf(ctx context.Context, t id.Tenant, d cmd.ToolRequest) assignment.Tool {
	got := x.look(ctx, shelfKey{t, d.Kind, d.Server})
	out := assignment.Tool{ServerName: got.server.Name}
	for _, t := range got.tools {
		if t.Own == d.Tool || t.Name == d.Tool {
			out.Idempotent = t.Repeatable(d.Arguments)
			return out
		}
	}
	titled := slices.DeleteFunc(slices.Clone(got.tools), func(t tools.Tool) bool { return t.Title != d.Tool })
	out.Idempotent = len(titled) == 1 && titled[0].Repeatable(d.Arguments)
	return out
}

// look returns a server's tools, as they were a moment ago at most.
func (x *shelf) look(ctx context.Context, key shelfKey) shelved {
	now := x.cfg.Now()
	x.mu.Lock()
	got, ok := x.known[key]
	x.mu.Unlock()
	if ok && now.Before(got.until) {
		return got
	}
	ctx, cancel := context.WithTimeout(ctx, toolsWait)
	defer cancel()
	server, list, err := x.tools.ToolsOf(ctx, key.tenant, key.kind, key.server)
	if err != nil {
		x.deps.Logger.Debug().Err(err).Str("server", key.server).Msg("tool list unavailable; server has no tools for now")
	}
	got = shelved{server: server, tools: list, until: now.Add(toolsFresh)}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known == nil || len(x.known) >= maxServers {
		x.known = map[shelfKey]shelved{}
	}
	x.known[key] = got
	return got
}
