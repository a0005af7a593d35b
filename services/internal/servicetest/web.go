package servicetest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Web is the API of an installation with the users alice and bob, the viewer vera and the operator olga, of the default
// tenant, and the user eve, of another one.
type Web struct {
	*Rig
	url    string
	client *http.Client
	check  Check
}

// Check returns an error if a response breaks the contract of the API.
type Check func(r *http.Request, status int, header http.Header, body []byte) error

// Web serves what mount adds to the mux, and checks every response.
func (r *Rig) Web(check Check, mount func(*http.ServeMux, auth.Authenticator)) *Web {
	r.T.Helper()
	return r.WebAt(check, func(a auth.Authenticator) string {
		mux := http.NewServeMux()
		mount(mux, a)
		srv := httptest.NewServer(mux)
		r.T.Cleanup(srv.Close)
		return srv.URL
	})
}

// WebAt is Web for a server that serve starts, at the address that it returns.
func (r *Rig) WebAt(check Check, serve func(auth.Authenticator) (url string)) *Web {
	r.T.Helper()
	tenant := id.DefaultTenant.String()
	a, err := auth.New(r.Ctx, auth.Config{APIKeys: []auth.APIKey{
		{ID: "1", SHA256: auth.HashKey("key-of-alice"), Subject: "alice", Tenant: tenant, Roles: []auth.Role{auth.RoleUser}},
		{ID: "2", SHA256: auth.HashKey("key-of-eve"), Subject: "eve", Tenant: "other", Roles: []auth.Role{auth.RoleUser}},
		{ID: "3", SHA256: auth.HashKey("key-of-vera"), Subject: "vera", Tenant: tenant, Roles: []auth.Role{auth.RoleViewer}},
		{ID: "4", SHA256: auth.HashKey("key-of-bob"), Subject: "bob", Tenant: tenant, Roles: []auth.Role{auth.RoleUser}},
		{ID: "5", SHA256: auth.HashKey("key-of-olga"), Subject: "olga", Tenant: tenant, Roles: []auth.Role{auth.RoleOperator}},
		{ID: "6", SHA256: auth.HashKey("key-of-otto"), Subject: "otto", Tenant: "other", Roles: []auth.Role{auth.RoleOperator}},
	}})
	require.NoError(r.T, err)
	client := &http.Client{Transport: &http.Transport{}}
	r.T.Cleanup(client.CloseIdleConnections)
	return &Web{Rig: r, url: serve(a), client: client, check: check}
}

// Answer is a response that was read.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Ask sends a request with the key of the named user, known or not, and returns the answer. It
// decodes the answer into out unless out is nil.
func (w *Web) Ask(who, method, path, body string, out any) Answer {
	w.T.Helper()
	req, err := http.NewRequestWithContext(w.Ctx, method, w.url+path, strings.NewReader(body))
	require.NoError(w.T, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer key-of-"+who)
	resp, err := w.client.Do(req)
	require.NoError(w.T, err)
	defer func() { require.NoError(w.T, resp.Body.Close()) }()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(w.T, err)
	require.NoError(w.T, w.check(req, resp.StatusCode, resp.Header, raw))
	if out != nil {
		require.NoError(w.T, json.Unmarshal(raw, out), "%s", raw)
	}
	return Answer{resp.StatusCode, resp.Header, string(raw)}
}
