package mcp

import (
	"context"
	"net"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
)

// adding returns a server whose tools may change: its clients subscribe to that.
func adding() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "adding"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	return server
}

// TestAConnectionThatEndsLeavesNothing: the subscription to changes of the tools ends with the connection, whichever side ends it.
func TestAConnectionThatEndsLeavesNothing(t *testing.T) {
	t.Parallel()
	t.Run("the server's end", func(t *testing.T) {
		lifecycletest.LeavesNothing(t, func() {
			near, far := net.Pipe()
			ss, err := adding().Connect(t.Context(), &mcp.IOTransport{Reader: far, Writer: far}, nil)
			require.NoError(t, err)
			cs, err := handshake(t.Context(), &mcp.IOTransport{Reader: near, Writer: near}, false, func() {})
			require.NoError(t, err)
			s := newSession(cs)
			require.NoError(t, far.Close())
			<-s.done
			_ = ss.Wait()
		})
	})
	t.Run("our own", func(t *testing.T) {
		lifecycletest.LeavesNothing(t, func() {
			s, err := InProcess(adding)(t.Context(), false, func() {})
			require.NoError(t, err)
			s.close(false)
		})
	})
}
