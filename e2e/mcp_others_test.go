//go:build nightly

package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// TestToolServersOfOthers runs two published MCP servers, unmodified, as operators
// would: programs under Node.js that speak over their standard input and output.
func TestToolServersOfOthers(t *testing.T) {
	installed := packages(t, "mcp")
	bin := filepath.Join(installed, "node_modules", ".bin")
	dir := t.TempDir()
	accessible(t, dir)
	box := sandbox.Settings{Read: []string{installed}}
	unasked := tools.Rules{Approval: event.ApprovalNever}
	svc, err := service.New(service.Config{Servers: []mcp.Config{
		{Name: "files", Command: []string{filepath.Join(bin, "mcp-server-filesystem"), dir}, Dir: dir, Sandbox: box, Rules: unasked},
		{Name: "all", Command: []string{filepath.Join(bin, "mcp-server-everything")}, Sandbox: box, Rules: unasked},
	}}, service.Deps{})
	require.NoError(t, err)
	t.Cleanup(svc.Stop)
	require.NoError(t, svc.Start(t.Context()))
	require.Eventually(t, func() bool {
		all, err := svc.Servers(context.Background(), id.DefaultTenant, tools.KindMCP)
		return err == nil && all[0].Status == "active" && all[1].Status == "active"
	}, process.MaxWait, 20*time.Millisecond)
	c := caller{t: t, svc: svc}
	t.Run("files", func(t *testing.T) { c.t = t; filesOfOthers(c, dir) })
	t.Run("everything", func(t *testing.T) { c.t = t; everything(c) })
}

// accessible gives a folder to the user as whom programs of a root process run. They reach it by its path.
func accessible(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() == 0 {
		const unprivileged = 65534
		require.NoError(t, os.Chown(dir, unprivileged, unprivileged))
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	}
}

func filesOfOthers(c caller, dir string) {
	path := filepath.Join(dir, "a.txt")
	c.text("files_write_file", map[string]any{"path": path, "content": "grüße\n"})
	raw, err := os.ReadFile(path)
	require.NoError(c.t, err)
	require.Equal(c.t, "grüße\n", string(raw))
	require.Equal(c.t, "grüße\n", c.text("files_read_text_file", map[string]any{"path": path}))
	require.Contains(c.t, c.text("files_list_directory", map[string]any{"path": dir}), "a.txt")
	res, err := c.call("files_read_text_file", map[string]any{"path": "/etc/hostname"})
	require.NoError(c.t, err)
	require.True(c.t, res.IsError, "what the server refuses is an answer, not a fault")
	_, err = c.call("files_read_text_file", map[string]any{"path": 7})
	c.fault(err, fault.ToolBadInput, "/path")

	_, list, err := c.svc.ToolsOf(context.Background(), id.DefaultTenant, tools.KindMCP, "files")
	require.NoError(c.t, err)
	promise := 0
	for _, tool := range list {
		if len(tool.OutputSchema) > 0 {
			promise++
		}
		require.Equal(c.t, tool.Own == "read_text_file", tool.Name == "files_read_text_file")
	}
	require.Equal(c.t, 14, len(list))
	require.Equal(c.t, 14, promise, "each has an output schema, and the answers above fit theirs")
}

func everything(c caller) {
	require.Equal(c.t, "Echo: hello", c.text("all_echo", map[string]any{"message": "hello"}))
	require.Contains(c.t, c.text("all_get-sum", map[string]any{"a": 40, "b": 2}), "42")
	require.Contains(c.t, c.text("all_get-tiny-image", nil), "[An image, image/png")
	require.Contains(c.t, c.text("all_get-structured-content", map[string]any{"location": "Chicago"}), `"temperature"`)
	require.NotContains(c.t, c.text("all_get-env", nil), "WAGGLE_E2E", "a tool server gets nothing of this environment")
	_, err := c.call("all_get-structured-content", map[string]any{"location": "Atlantis"})
	c.fault(err, fault.ToolBadInput, "/location")

	call := c.make("get-sum", map[string]any{"a": 1, "b": 2})
	call.Kind, call.Server, call.Raw = tools.KindMCP, "all", true
	res, err := c.svc.Call(context.Background(), call)
	require.NoError(c.t, err)
	var content []struct{ Type, Text string }
	require.NoError(c.t, json.Unmarshal(res.Data, &content))
	require.Len(c.t, content, 1)

	long := c.make("all_trigger-long-running-operation", map[string]any{"duration": 600, "steps": 2})
	long.Timeout = time.Second
	_, err = c.svc.Call(context.Background(), long)
	c.fault(err, fault.ToolTimeout, "")
	require.Equal(c.t, "Echo: still here", c.text("all_echo", map[string]any{"message": "still here"}))
}

// caller calls tools of a service.
type caller struct {
	t   *testing.T
	svc *service.Service
}

func (c caller) make(tool string, arguments map[string]any) tools.Call {
	c.t.Helper()
	raw, err := json.Marshal(arguments)
	require.NoError(c.t, err)
	return tools.Call{
		ID: rand.Text(), Scope: "e2e", Tenant: id.DefaultTenant, Tool: tool, Arguments: raw, Timeout: process.MaxWait,
	}
}

func (c caller) call(tool string, arguments map[string]any) (tools.Result, error) {
	c.t.Helper()
	return c.svc.Call(context.Background(), c.make(tool, arguments))
}

func (c caller) text(tool string, arguments map[string]any) string {
	c.t.Helper()
	res, err := c.call(tool, arguments)
	require.NoError(c.t, err)
	require.False(c.t, res.IsError, res.Text)
	return res.Text
}

func (c caller) fault(err error, code fault.Code, field string) {
	c.t.Helper()
	var f *fault.Fault
	require.ErrorAs(c.t, err, &f)
	require.Equal(c.t, code, f.Code, err)
	require.Equal(c.t, field, f.Field, err)
}
