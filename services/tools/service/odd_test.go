package service_test

import (
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// overAll runs a test with the script as a program, and over both forms of HTTP answers.
func overAll(t *testing.T, s script, test func(*testing.T, *rig)) {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	for name, cfg := range map[string]mcpservers.Config{
		"program": program("odd", "script", "SCRIPT", s.String()),
		"JSON":    {Name: "odd", URL: srv.URL + "/mcp"},
		"events":  {Name: "odd", URL: srv.URL + "/events"},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, start(t, service.Config{Servers: []mcpservers.Config{cfg}}))
		})
	}
}

// server returns the description of the one server.
func (r *rig) server(t testing.TB) tools.Server {
	t.Helper()
	box, ok := r.Caller.(tools.Toolbox)
	require.True(t, ok)
	all, err := box.Servers(t.Context(), id.DefaultTenant, tools.KindMCP)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

// Tools that other clients offer are offered, and what cannot be offered is named.
func TestOddToolsAreOffered(t *testing.T) {
	overAll(t, script{Pages: []string{
		`{"tools":[{"name":"no_schema"},{"name":"hint","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"true"}},7],"nextCursor":"1"}`,
		`{"tools":[{"name":"marked","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}},{"name":"last"},{"name":"last"}],"nextCursor":""}`,
	}, Result: `{"content":[{"type":"text","text":"done"},{"type":"widget"}]}`}, func(t *testing.T, r *rig) {
		r.await(t, "odd_last")
		list, err := r.List(t.Context(), id.DefaultTenant)
		require.NoError(t, err)
		require.Len(t, list, 3)
		require.False(t, list[0].ReadOnly)
		require.Equal(t, "done\n(a content block of type widget was left out)", r.call(t, "odd_no_schema", nil))
		left := r.server(t).LeftOut
		require.Equal(t, tools.LeftOut{Why: "entry 3 of the list: it is not an object"}, left[0])
		require.Equal(t, "last", left[1].Tool)
		require.Contains(t, left[1].Why, "has its name, odd_last")
		require.Equal(t, "marked", left[2].Tool)
		require.Contains(t, left[2].Why, "x-mcp-header")
		require.Empty(t, r.server(t).Trouble)
	})
}

// A list without an end has the tools of its pages.
func TestListsWithoutAnEnd(t *testing.T) {
	for name, s := range map[string]script{
		"the same page": {Pages: []string{`{"tools":[{"name":"a"}],"nextCursor":"1"}`, `{"tools":[{"name":"b"}],"nextCursor":"1"}`}},
		"two pages":     {Pages: []string{`{"tools":[{"name":"a"}],"nextCursor":"1"}`, `{"tools":[{"name":"b"}],"nextCursor":"2"}`, `{"tools":[],"nextCursor":"1"}`}},
		"a number":      {Pages: []string{`{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, service.Config{Servers: []mcpservers.Config{program("odd", "script", "SCRIPT", s.String())}})
			r.await(t, "odd_b")
			list, err := r.List(t.Context(), id.DefaultTenant)
			require.NoError(t, err)
			require.Len(t, list, 2)
			left := r.server(t).LeftOut
			require.Contains(t, left[len(left)-1].Why, "further tools")
		})
	}
}

// The log says once which tools are left out, however often the list is fetched.
func TestLeftOutToolsAreLoggedOnce(t *testing.T) {
	var log lockedBuffer
	s := script{Pages: []string{`{"tools":[{"name":"a","annotations":5},8]}`}}
	svc, err := service.New(unasked(service.Config{Servers: []mcpservers.Config{program("odd", "script", "SCRIPT", s.String())}}),
		service.Deps{Logger: zerolog.New(&log)})
	require.NoError(t, err)
	t.Cleanup(svc.Stop)
	require.NoError(t, svc.Start(t.Context()))
	r := &rig{Caller: svc, svc: svc}
	r.await(t, "odd_a")
	for range 2 { // the end of a program is the end of its list, too
		r.fails(t, newCall(t, "odd_a", nil), fault.ToolLost)
	}
	r.fails(t, newCall(t, "odd_a", nil), fault.ToolLost)
	svc.Stop()
	// The last words of a program say why it was lost, too.
	require.Contains(t, log.String(), `"error":"the program ended: exit status 7"`)
	require.Contains(t, log.String(), `"stderr":"panic: no result"`)
	require.Equal(t, 1, occurrences(log.String(), `"why":"entry 2 of the list: it is not an object","message":"tool left out"`), log.String())
	require.Equal(t, 1, occurrences(log.String(), `"part":"annotations of a: it has a wrong type","message":"part of tool ignored"`), log.String())
}
