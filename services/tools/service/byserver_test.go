package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

// The service lists configured servers with their tools, and accepts the servers' own names for them.
func byServer(t *testing.T, r *rig) {
	box, ok := r.Caller.(tools.Toolbox)
	require.True(t, ok)
	servers, err := box.Servers(t.Context(), id.DefaultTenant, "")
	require.NoError(t, err)
	require.Len(t, servers, 2, "another tenant's server is not shown")
	require.Equal(t, []string{"child", "workspace"}, []string{servers[0].ID, servers[1].ID})
	require.Equal(t, []string{"stdio", "filesystem"}, []string{servers[0].Type, servers[1].Type})
	require.Equal(t, "active", servers[0].Status)
	require.Contains(t, servers[0].Capabilities, "dotted.name")
	none, err := box.Servers(t.Context(), id.DefaultTenant, tools.KindService)
	require.NoError(t, err)
	require.Empty(t, none)

	of, list, err := box.ToolsOf(t.Context(), id.DefaultTenant, tools.KindMCP, "child")
	require.NoError(t, err)
	require.Equal(t, servers[0], of)
	require.Len(t, list, len(of.Capabilities))
	for _, tool := range list {
		require.Equal(t, []string{tools.KindMCP, "child"}, []string{tool.Kind, tool.Server})
		require.Contains(t, of.Capabilities, tool.Own)
	}
	for server, code := range map[string]fault.Code{"other": fault.ServerNotFound, "": fault.ServerNotFound} {
		_, _, err := box.ToolsOf(t.Context(), id.DefaultTenant, tools.KindMCP, server)
		isFault(t, err, code)
		r.fails(t, onServer(t, server, "echo", nil), code)
	}
	_, _, err = box.ToolsOf(t.Context(), id.DefaultTenant, tools.KindService, "child")
	isFault(t, err, fault.ServiceNotFound)
	service := onServer(t, "child", "echo", nil)
	service.Kind = tools.KindService
	r.fails(t, service, fault.ServiceNotFound)
	r.fails(t, onServer(t, "child", "child_echo", nil), fault.ToolNotFound)
	require.Subset(t, servers[1].Capabilities, []string{"list", "read", "read_file", "write"})
	titled, err := r.Call(t.Context(), onServer(t, "workspace", "List files", nil))
	require.NoError(t, err, "by the only title")
	require.False(t, titled.IsError)

	res, err := r.Call(t.Context(), onServer(t, "child", "echo", args{"text": "<ä>"}))
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"text","text":"<ä>"}]`, string(res.Data))
	require.Empty(t, res.Text)
	res, err = r.Call(t.Context(), onServer(t, "child", "dotted.name", nil))
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"text","text":"{\"answer\":42}"}]`, string(res.Data))
	res, err = r.Call(t.Context(), onServer(t, "child", "fail", nil))
	require.NoError(t, err)
	require.True(t, res.IsError)
	require.JSONEq(t, `[{"type":"text","text":"no luck today"}]`, string(res.Data))
	res, err = r.Call(t.Context(), onServer(t, "child", "big", args{"text": "\"<", "n": 100_000}))
	require.NoError(t, err)
	require.True(t, res.Truncated)
	require.LessOrEqual(t, len(res.Data), 128<<10)
	require.Greater(t, len(res.Data), 64<<10)
	var cut []struct{ Type, Text string }
	require.NoError(t, json.Unmarshal(res.Data, &cut))
	require.Len(t, cut, 1)
	require.True(t, strings.HasPrefix(strings.Repeat("\"<", 100_000), cut[0].Text))
}

func onServer(t testing.TB, server, tool string, a args) tools.Call {
	t.Helper()
	c := newCall(t, tool, a)
	c.Kind, c.Server, c.Raw = tools.KindMCP, server, true
	return c
}
