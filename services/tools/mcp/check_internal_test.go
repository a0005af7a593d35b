package mcp

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
	"github.com/waggle-dev/waggle/services/tools/internal/turn"
)

// TestChecksWaitForATurn: a tenant whose checks are running gets no further ones, and a call that ends meanwhile says so.
func TestChecksWaitForATurn(t *testing.T) {
	cfg := &Config{Name: "s"}
	k, err := new(listing).learn(cfg, &mcp.Tool{Name: "t", InputSchema: map[string]any{"type": "object"}})
	require.NoError(t, err)
	s := New(*cfg, nil, zerolog.Nop(), func(string) {}).Take(turn.New(1))
	done, err := s.turns.Take(t.Context(), id.DefaultTenant)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(calls.ErrCancelled)
	call := tools.Call{Tenant: id.DefaultTenant, Arguments: json.RawMessage(`{}`)}
	_, err = s.arguments(ctx, k, call)
	require.ErrorIs(t, err, fault.New(fault.ToolCancelled))
	_, err = s.answered(ctx, &mcp.CallToolResult{}, k, call)
	require.ErrorIs(t, err, fault.New(fault.ToolCancelled))
	done()
	_, err = s.arguments(t.Context(), k, call)
	require.NoError(t, err)
}
