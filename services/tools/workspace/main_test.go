package workspace_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is an MCP client of a file server over an in-memory transport.
type client struct {
	*mcp.ClientSession
	dir string
}

func open(t testing.TB, dir string) *client {
	t.Helper()
	return openLimited(t, dir, quota.Config{})
}

// openLimited is open with quotas.
func openLimited(t testing.TB, dir string, cfg quota.Config) *client {
	t.Helper()
	folders, err := workspace.Open(dir)
	require.NoError(t, err)
	folders.Limit(cfg)
	near, far := mcp.NewInMemoryTransports()
	ss, err := workspace.New(folders).Connect(t.Context(), far, nil)
	require.NoError(t, err)
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cs.Close(); _ = ss.Wait() })
	return &client{cs, dir}
}

type args map[string]any

// call returns the text of the result and whether it is an error.
func (c *client) call(t testing.TB, tool string, a args) (string, bool) {
	t.Helper()
	return c.callAs(t, "", tool, a)
}

func (c *client) callAs(t testing.TB, tenant, tool string, a args) (string, bool) {
	t.Helper()
	p := &mcp.CallToolParams{Name: tool, Arguments: a}
	if tenant != "" {
		p.Meta = mcp.Meta{tools.MetaTenant: tenant}
	}
	res, err := c.CallTool(context.Background(), p)
	require.NoError(t, err)
	var b strings.Builder
	for _, part := range res.Content {
		text, ok := part.(*mcp.TextContent)
		require.True(t, ok)
		b.WriteString(text.Text)
	}
	return b.String(), res.IsError
}

func (c *client) ok(t testing.TB, tool string, a args) string {
	t.Helper()
	text, isError := c.call(t, tool, a)
	require.False(t, isError, "%s %v: %s", tool, a, text)
	return text
}

func (c *client) refused(t testing.TB, tool string, a args) string {
	t.Helper()
	text, isError := c.call(t, tool, a)
	require.True(t, isError, "%s %v: %s", tool, a, text)
	require.NotContains(t, text, c.dir, "an error may not tell where the workspace lies")
	return text
}

func put(t testing.TB, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func get(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}
