package service_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

func occurrences(text, part string) int { return strings.Count(text, part) }

// troubled starts a service with a server that cannot be used. It returns what operators read of it: the description and
// the log.
func troubled(t *testing.T, cfg mcpservers.Config) (tools.Server, string) {
	t.Helper()
	var log lockedBuffer
	svc, err := service.New(service.Config{Servers: []mcpservers.Config{cfg}}, service.Deps{Logger: zerolog.New(&log).Level(zerolog.WarnLevel)})
	require.NoError(t, err)
	t.Cleanup(svc.Stop)
	require.NoError(t, svc.Start(t.Context()))
	var is tools.Server
	require.Eventually(t, func() bool {
		all, err := svc.Servers(t.Context(), id.DefaultTenant, "")
		require.NoError(t, err)
		is = all[0]
		return is.Trouble != ""
	}, maxWait, tick)
	require.Equal(t, "inactive", is.Status)
	svc.Stop()
	return is, log.String()
}

// shell is a program that does what the text says and ends.
func shell(text string, env map[string]string) mcpservers.Config {
	return mcpservers.Config{Name: "s", Command: []string{"/bin/sh", "-c", text}, Env: env}
}

// The reason of a program that does not start is in the description and in the log, without secrets.
func TestWhyAProgramDoesNotStart(t *testing.T) {
	env := map[string]string{"API_KEY": "correct horse", "PIN": "0000"}
	many := `i=0; while [ $i -lt 300 ]; do echo "line $i" >&2; i=$((i+1)); done; exit 1`
	for name, c := range map[string]struct {
		cfg  mcpservers.Config
		want []string
	}{
		"it says why": {
			shell(`echo "fatal: set API_KEY to a key of your account" >&2; exit 2`, nil),
			[]string{"the program ended: exit status 2. Its last words:\nfatal: set API_KEY to a key of your account"},
		},
		"on its output": {shell(`echo "usage: server --port"; exit 1`, nil), []string{"exit status 1", "usage: server --port"}},
		"it says nothing": {
			shell(`exit 3`, nil), []string{"the program ended: exit status 3", "set network: true"},
		},
		"it tells secrets": {
			shell(`printf '\033[31mbad key %s, pin %s\033[0m\r\n' "$API_KEY" "$PIN" >&2; echo "token=abcdefgh" >&2; exit 1`, env),
			[]string{"bad key [redacted], pin [redacted]\ntoken=[redacted]"},
		},
		"it says much": {shell(many, nil), []string{"line 299"}},
		"it is killed": {shell(`echo "out of memory" >&2; kill -9 $$`, nil), []string{"killed", "out of memory"}},
		"it is no program": {
			mcpservers.Config{Name: "s", Command: []string{"/bin/no-such-program"}}, []string{"start /bin/no-such-program", "no such file"},
		},
		"it refuses": {
			program("s", "script", "SCRIPT", script{Refuse: "licence sk-live-123456789 has expired"}.String()),
			[]string{"licence [redacted] has expired"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.cfg.Sandbox.Mode == "" && name == "it is killed" {
				c.cfg.Sandbox.Mode = sandbox.Off // the shell of a namespace cannot signal itself
			}
			is, log := troubled(t, c.cfg)
			for _, want := range c.want {
				require.Contains(t, is.Trouble, want)
				for line := range strings.Lines(want) { // the log has them as a text of JSON
					line, _, _ = strings.Cut(line, ". Its last words:")
					require.Contains(t, log, strings.TrimSpace(line))
				}
			}
			for _, secret := range []string{"correct horse", "0000", "abcdefgh", "123456789", "\x1b", "\\u001b"} {
				require.NotContains(t, is.Trouble, secret)
				require.NotContains(t, log, secret)
			}
			require.Less(t, len(is.Trouble), 2500)
			require.Contains(t, log, "tool server disconnected; will reconnect")
		})
	}
}

// The reason of an HTTP server that refuses says what to do.
func TestWhyAnHTTPServerRefuses(t *testing.T) {
	answer := func(status int, challenge ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for _, c := range challenge {
				w.Header().Add("WWW-Authenticate", c)
			}
			w.WriteHeader(status)
		}
	}
	key := map[string]string{"Authorization": "Bearer canary1234"}
	for name, c := range map[string]struct {
		h       http.HandlerFunc
		headers map[string]string
		want    string
	}{
		"OAuth": {
			answer(401, `Bearer resource_metadata="http://127.0.0.1/.well-known/oauth-protected-resource", scope="files:read"`), nil,
			`it answers 401 Unauthorized: it requires credentials by OAuth with scope "files:read"; set`,
		},
		"no challenge":    {answer(401), nil, "it answers 401 Unauthorized: it requires credentials; set"},
		"another scheme":  {answer(401, `Basic realm="x"`), nil, "it requires credentials; set"},
		"two schemes":     {answer(401, `Basic realm="x"`, `Bearer error="invalid_token"`), nil, "it requires credentials by OAuth; set"},
		"a bad challenge": {answer(401, `Bearer scope="a`), nil, "it requires credentials; set"},
		"a wrong key": {
			answer(401, `Bearer error="invalid_token", error_description="The access token expired."`), key,
			"it rejects the Authorization that is sent by OAuth: The access token expired; correct it in headers",
		},
		"no right": {answer(403, `Bearer error="insufficient_scope", scope="a b"`), key, `it answers 403 Forbidden: the credentials have no right to it by OAuth with scope "a b"`},
		"overload": {answer(503), nil, "it answers 503 Service Unavailable"},
		"elsewhere": {func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "http://x.example/", http.StatusTemporaryRedirect)
		}, nil, "redirect to x.example refused"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(c.h)
			t.Cleanup(srv.Close)
			is, log := troubled(t, mcpservers.Config{Name: "s", URL: srv.URL + "/mcp?key=canary5678", Headers: c.headers})
			require.Contains(t, is.Trouble, c.want)
			require.NotContains(t, is.Trouble+log, "canary")
		})
	}
	is, _ := troubled(t, mcpservers.Config{Name: "s", URL: "http://" + freeport.Addr(t) + "/mcp"})
	require.Contains(t, is.Trouble, "connection refused")
}
