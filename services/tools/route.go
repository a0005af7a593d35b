package tools

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// route is the way of a call to its tool.
type route interface {
	// label is the server in metrics: few words, none of them a stranger's.
	label() string
	// limit returns how long a call may take that asks for so much; 0 = it does not ask.
	limit(asked time.Duration) time.Duration
	// repeatable reports whether the call may be repeated when its outcome is unknown.
	repeatable(call Call) bool
	// run runs the call. Errors are faults.
	run(ctx context.Context, call Call, told func(Notification)) (Result, error)
}

// route finds the way of a call.
func (s *Service) route(call Call) (route, error) {
	switch {
	case call.Kind == "" && call.Server == "":
		if srv := s.serverOf(call.Tenant, call.Tool); srv != nil {
			return mcpRoute{s, srv, call.Tool}, nil
		}
		if s.swarm != nil {
			if rt, ok := s.swarm.offered(call.Tenant, call.Tool); ok {
				return rt, nil
			}
		}
	case call.Kind == KindMCP:
		srv := s.serverNamed(call.Tenant, call.Server)
		if srv == nil {
			return nil, fault.New(fault.ServerNotFound)
		}
		return mcpRoute{s, srv, srv.called(call.Tool)}, nil
	case call.Kind == KindService && s.swarm != nil:
		return s.swarm.named(call.Tenant, call.Server, call.Tool)
	case call.Kind == KindService:
		return nil, fault.New(fault.ServiceNotFound)
	default:
		return nil, badKind()
	}
	return nil, fault.Newf(fault.ToolNotFound, "There is no tool %s.", shorten(call.Tool, maxName))
}

// mcpRoute leads to a tool of an MCP server.
type mcpRoute struct {
	s    *Service
	srv  *server
	tool string // as offered
}

func (m mcpRoute) label() string { return m.srv.cfg.Name }

func (m mcpRoute) limit(asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, m.srv.cfg.Timeout)
	}
	return m.srv.cfg.Timeout
}

func (m mcpRoute) repeatable(call Call) bool {
	k := m.srv.find(m.tool)
	return k != nil && k.Repeatable(call.Arguments)
}

func (m mcpRoute) run(ctx context.Context, call Call, _ func(Notification)) (Result, error) {
	call.Tool = m.tool
	return m.s.try(ctx, m.srv, call)
}
