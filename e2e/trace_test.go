package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// span is what the console exporter writes of a span.
type span struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ SpanID string }
}

// TestOneTraceFromTheSocketToTheTool: one message is one trace, through WebSocket,
// NATS, worker, model and tools.
func TestOneTraceFromTheSocketToTheTool(t *testing.T) {
	t.Parallel()
	addr := freeport.Addr(t)
	p := process.Start(t, process.Options{
		Name: "up", Env: []string{"OTEL_TRACES_EXPORTER=console"},
		Args: []string{"up", "--addr", addr, "--nats-addr", freeport.Addr(t)},
	})
	p.Ready(addr)
	c := client.DialOrbit(t, "ws://"+addr+"/ws")
	c.Until("agent_ready")
	c.Ask(question)
	c.Until("agent_response")
	c.Close()
	require.NoError(t, p.Terminate(), "what is left is exported on the way out")

	byID, traces := map[string]span{}, map[string]bool{}
	for line := range strings.Lines(p.Output()) {
		var s span
		if json.Unmarshal([]byte(line), &s) == nil && s.SpanContext.SpanID != "" {
			byID[s.SpanContext.SpanID] = s
		}
	}
	var names []string
	for _, s := range byID {
		if strings.HasPrefix(s.Name, "execute_tool") {
			traces[s.SpanContext.TraceID] = true
			names = nil
			for at, ok := s, true; ok; at, ok = byID[at.Parent.SpanID] {
				names = append(names, at.Name)
			}
			require.Contains(t, strings.Join(names, " < "), "invoke_agent", "spans: %v", names)
		}
	}
	require.Len(t, traces, 1, "both tool calls belong to one trace; spans: %d", len(byID))
	chain := strings.Join(names, " < ")
	t.Logf("%d spans; %s", len(byID), chain)
	require.Contains(t, names[len(names)-1], "receive", "the trace begins at the socket: %s", chain)
	models := 0
	for _, s := range byID {
		if strings.HasPrefix(s.Name, "chat ") && traces[s.SpanContext.TraceID] {
			models++
		}
	}
	require.Equal(t, 2, models, "both model calls are in it")
}
