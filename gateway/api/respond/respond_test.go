package respond_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anywhere does not look at addresses.
type anywhere struct{ auth auth.Authenticator }

func (a anywhere) Authenticate(ctx context.Context, _, token string) (auth.Principal, error) {
	return a.auth.Authenticate(ctx, token)
}

// serve serves a handler for holders of keys that are named like their roles.
func serve(t *testing.T, h respond.Handler) (ask func(who, method string) (int, string)) {
	t.Helper()
	var keys []auth.APIKey
	for _, r := range []auth.Role{auth.RoleUser, auth.RoleOperator, auth.RoleViewer, auth.RoleAgent, auth.RoleService} {
		keys = append(keys, auth.APIKey{ID: string(r), SHA256: auth.HashKey(string(r)), Tenant: "red", Roles: []auth.Role{r}})
	}
	a, err := auth.New(context.Background(), auth.Config{APIKeys: keys})
	require.NoError(t, err)
	srv := httptest.NewServer(respond.Server{Auth: anywhere{a}, Edge: &edge.Edge{Logger: zerolog.Nop()}}.Serve(h))
	t.Cleanup(srv.Close)
	client := srv.Client()
	return func(who, method string) (int, string) {
		req, err := http.NewRequestWithContext(context.Background(), method, srv.URL, nil)
		require.NoError(t, err)
		if who != "" {
			req.Header.Set("X-API-Key", who)
		}
		res, err := client.Do(req)
		require.NoError(t, err)
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(b)
	}
}

// TestRoles: a principal that may watch may read, one that may act may also write, and the handler is not called for
// others.
func TestRoles(t *testing.T) {
	called := 0
	ask := serve(t, func(_ *http.Request, c *edge.Client) (any, error) {
		called++
		return map[string]string{"who": c.Principal().Subject}, nil
	})
	allowed := 0
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		reads := method == "GET" || method == "HEAD"
		for who, want := range map[string]bool{
			"user": true, "operator": true, "viewer": reads, "agent": false, "service": false,
		} {
			status, body := ask(who, method)
			if want {
				allowed++
				require.Equal(t, http.StatusOK, status, "%s %s: %s", who, method, body)
				continue
			}
			require.Equal(t, http.StatusForbidden, status, "%s %s", who, method)
			if method != "HEAD" {
				require.Contains(t, body, `"title":"FORBIDDEN"`)
			}
		}
		for _, who := range []string{"", "nobody"} {
			status, _ := ask(who, method)
			require.Equal(t, http.StatusUnauthorized, status)
		}
	}
	require.Equal(t, allowed, called)
}

// TestProblems: the client sees a fault, but no other error.
func TestProblems(t *testing.T) {
	var err error
	ask := serve(t, func(*http.Request, *edge.Client) (any, error) { return nil, err })
	err = fault.New(fault.InvalidField).At("limit")
	status, body := ask("user", "GET")
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, body, `"field":"limit"`)
	err = errors.New("secret of the server")
	status, body = ask("user", "GET")
	require.Equal(t, http.StatusInternalServerError, status)
	require.NotContains(t, body, "secret")
}
