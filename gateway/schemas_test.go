package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/bundle"
)

// A gateway that requires keys serves the bundles without one, and answers 304 to a client that
// has them.
func TestSchemas(t *testing.T) {
	r := start(t, func(_ *gateway.Config, d *gateway.Deps) {
		var err error
		d.Auth, err = auth.New(t.Context(), auth.Config{APIKeys: []auth.APIKey{
			{ID: "k", SHA256: auth.HashKey("key"), Tenant: "red", Roles: []auth.Role{auth.RoleUser}},
		}})
		require.NoError(t, err)
	})
	status, body, header := r.get("/api/v1/schemas")
	require.Equal(t, []any{http.StatusOK, "application/json"}, []any{status, header.Get("Content-Type")})
	var list struct {
		Schemas []struct {
			Name string `json:"name"`
			ID   string `json:"$id"`
			URL  string `json:"url"`
		} `json:"schemas"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.Len(t, list.Schemas, len(bundle.All()))
	tags := map[string]bool{}
	for i, b := range bundle.All() {
		s := list.Schemas[i]
		require.Equal(t, []string{b.Name, b.ID, "/api/v1/schemas/" + b.Name}, []string{s.Name, s.ID, s.URL})
		status, body, header := r.get(s.URL)
		require.Equal(t, []any{http.StatusOK, "application/schema+json", b.JSON()}, []any{status, header.Get("Content-Type"), body})
		tag := header.Get("ETag")
		require.Regexp(t, `^"[0-9a-f]{32}"$`, tag)
		require.False(t, tags[tag], "two bundles have the same ETag")
		tags[tag] = true

		for _, match := range []string{tag, `"other", ` + tag, "W/" + tag, "*"} {
			status, body, header = r.get(s.URL, "If-None-Match", match)
			require.Equal(t, []any{http.StatusNotModified, "", tag}, []any{status, body, header.Get("ETag")}, match)
		}
		status, body, _ = r.get(s.URL, "If-None-Match", `"other"`)
		require.Equal(t, []any{http.StatusOK, b.JSON()}, []any{status, body})
	}
}

// TestSchemasAreServedAsEverythingElse: under the gateway's names, and to its origins.
func TestSchemasAreServedAsEverythingElse(t *testing.T) {
	r := start(t)
	for _, path := range []string{"/api/v1/schemas", "/api/v1/schemas/orbit"} {
		for _, c := range []struct {
			method string
			header []string
			status int
			title  string
		}{
			{"GET", []string{"Host", "evil.net"}, http.StatusMisdirectedRequest, "HOST_REFUSED"},
			{"GET", []string{"Origin", "http://evil.net"}, http.StatusForbidden, "ORIGIN_REFUSED"},
			{"POST", nil, http.StatusNotFound, "NOT_FOUND"},
		} {
			status, body, header := r.request(c.method, path, c.header...)
			require.Equal(t, c.status, status, "%s %s: %s", c.method, path, body)
			require.Contains(t, body, c.title)
			require.Equal(t, "application/problem+json", header.Get("Content-Type"))
		}
		status, _, header := r.get(path, "Origin", "http://"+r.addr)
		require.Equal(t, []any{http.StatusOK, "http://" + r.addr}, []any{status, header.Get("Access-Control-Allow-Origin")})
		status, body, header := r.request("HEAD", path)
		require.Equal(t, []any{http.StatusOK, ""}, []any{status, body})
		require.True(t, strings.HasSuffix(header.Get("Content-Type"), "json"))
	}
	for _, none := range []string{"nothing", "orbit.json", "..%2fapi", "%00", "orbit/"} {
		status, body, header := r.get("/api/v1/schemas/" + none)
		require.Equal(t, http.StatusNotFound, status, none)
		require.Contains(t, body, "NOT_FOUND")
		require.Equal(t, "application/problem+json", header.Get("Content-Type"))
	}
}
