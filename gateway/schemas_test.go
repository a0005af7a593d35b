package gateway_test

import (
	"encoding/json"
	"net/http"
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
	status, body, header = r.request("HEAD", "/api/v1/schemas/orbit")
	require.Equal(t, []any{http.StatusOK, "", "application/schema+json"}, []any{status, body, header.Get("Content-Type")})
	for _, none := range []string{"nothing", "orbit.json", "..%2fapi", "%00", "orbit/"} {
		status, body, header := r.get("/api/v1/schemas/" + none)
		require.Equal(t, []any{http.StatusNotFound, "application/problem+json"}, []any{status, header.Get("Content-Type")}, none)
		require.Contains(t, body, "NOT_FOUND")
	}
}
