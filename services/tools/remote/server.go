package remote

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
)

// Host is a tool service from the view of its requests. It is safe for concurrent use.
type Host interface {
	tools.Toolbox
	// Begin returns the run of a call, started if it is new, and, with listen, a listener for its notifications.
	Begin(ctx context.Context, call tools.Call, listen bool) (*calls.Run, calls.Listener, error)
	// Find returns the run of that key, or nil.
	Find(key calls.Key) *calls.Run
}

// Config holds the dependencies and limits of a server.
type Config struct {
	Conn      *bus.Conn
	Directory *directory.Directory // the server answers a request once this copy has caught up with the sender's; nil: at once
	Logger    zerolog.Logger
	MaxCalls  int           // the host's maximum; four times as many callers may follow at once
	Beat      time.Duration // interval of a running call's signs of life; 0: 2 s
}

// running is a run from the view of its followers.
type running = rpc.Running[tools.Notification, tools.Result]

// NewServer returns a server that answers the requests to the host and is not started. The host has to end its calls
// before the server stops.
func NewServer(host Host, cfg Config) *rpc.Server {
	s := rpc.NewServer(cfg.Conn, rpc.Config{
		Service: tools.ServiceName, Description: "Runs tools of MCP servers and services", Logger: cfg.Logger, Directory: cfg.Directory,
	})
	limit := func() int { return int(cfg.Conn.NATS().MaxPayload()) - envelope } // of the NATS server of the moment
	kept := newOffers()
	rpc.Handle(s, verbList, func(ctx context.Context, in listRequest) (toolPage, error) {
		if in.Kind == "" && in.Server == "" {
			return kept.page(ctx, host, in, limit())
		}
		return toolsOf(ctx, host, in, limit())
	})
	rpc.Handle(s, verbServers, func(ctx context.Context, in listRequest) (out serverPage, err error) {
		all, err := host.Servers(ctx, in.Tenant, in.Kind)
		out.Servers, out.More = page(all, tools.Server.Order, in.After, limit())
		return out, err
	})
	rpc.HandleOperations(s, rpc.Operations[tools.Call, callRef, tools.Notification, tools.Result]{
		Verbs: verbsOfCalls, Fit: fit, Followers: calls.FollowersPerCall * cfg.MaxCalls, Beat: cfg.Beat,
		Begin: func(ctx context.Context, in tools.Call, listen bool) (callRef, running, error) {
			r, heard, err := host.Begin(ctx, in, listen)
			if err != nil {
				return callRef{}, running{}, err
			}
			of := runningOf(r)
			of.Notes, of.Release = heard.C, heard.Stop
			return refOf(in), of, nil
		},
		Find: func(ref callRef) (running, bool) {
			r := host.Find(ref.key())
			if r == nil {
				return running{}, false
			}
			return runningOf(r), true
		},
	})
	return s
}

func runningOf(r *calls.Run) running {
	return running{Done: r.Done(), Outcome: r.Outcome, Cancel: func() { r.Cancel(calls.ErrCancelled) }}
}

func nameOf(t tools.Tool) string { return t.Name }

// page returns a page of the tools on offer of at most limit bytes, or says that the caller has all of them.
func (o offers) page(ctx context.Context, host tools.Caller, in listRequest, limit int) (out toolPage, err error) {
	all, err := host.List(ctx, in.Tenant)
	if err != nil {
		return out, err
	}
	if out.Digest, err = o.digest(in.Tenant, all); err != nil {
		return toolPage{}, err
	}
	if out.Same = in.Known == out.Digest; !out.Same {
		out.Tools, out.More = page(all, nameOf, in.After, limit)
	}
	return out, nil
}

// toolsOf returns a page of the tools of a server of at most limit bytes.
func toolsOf(ctx context.Context, host tools.Toolbox, in listRequest, limit int) (out toolPage, err error) {
	server, all, err := host.ToolsOf(ctx, in.Tenant, in.Kind, in.Server)
	if err != nil {
		return out, err
	}
	head, err := json.Marshal(server)
	out.Server = &server
	out.Tools, out.More = page(all, nameOf, in.After, limit-len(head))
	return out, err
}

// page returns the elements after a place in the order, as many as fit and at least one, and whether more follow.
func page[T any](all []T, order func(T) string, after string, room int) (some []T, more bool) {
	for _, t := range all {
		if order(t) <= after {
			continue
		}
		b, err := json.Marshal(t)
		if err != nil || len(b)+1 > room && len(some) > 0 {
			return some, true
		}
		room -= len(b) + 1
		some = append(some, t)
	}
	return some, false
}
