package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
)

// arguments returns the arguments of a call if they fit the tool. Errors are *fault.Fault.
func (s *Server) arguments(ctx context.Context, tool *offer.Tool, call tools.Call) (map[string]any, error) {
	done, err := s.turns.Take(ctx, call.Tenant)
	if err != nil {
		return nil, calls.Interrupted(err, false)
	}
	defer done()
	return tool.Arguments.Arguments(call.Arguments)
}

// answered turns a tool's answer into a result. Errors are *fault.Fault.
func (s *Server) answered(ctx context.Context, got *mcp.CallToolResult, tool *offer.Tool, call tools.Call) (tools.Result, error) {
	done, err := s.turns.Take(ctx, call.Tenant)
	if err != nil {
		return tools.Result{}, calls.Interrupted(err, true)
	}
	defer done()
	return answered(got, tool, call.Raw, s.cfg.OutputCap)
}
