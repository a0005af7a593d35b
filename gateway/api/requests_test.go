package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// TestRequestsThatNoServiceSees are answered by the gateway alone, as the document says. A refused one names the code, and the field
// or the place.
func TestRequestsThatNoServiceSees(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	api.New(api.Config{Edge: &edge.Edge{Logger: zerolog.Nop()}, Auth: anywhere{auth.Anonymous()}}).Mount(mux)
	contract, err := apitest.Current()
	require.NoError(t, err)
	language := func(bytes int) string {
		return `{"language":"` + strings.Repeat("x", bytes-len(`{"language":""}`)) + `"}`
	}
	const json, most = "application/json", 16 << 10
	for name, c := range map[string]struct {
		method, path, media, body string
		status                    int
		code                      fault.Code
		says                      string
	}{
		"me":                      {"GET", "/me", "", "", 200, "", `"subject":"anonymous"`},
		"the head of me":          {"HEAD", "/me", "", "", 200, "", ""},
		"a method of none":        {"PUT", "/me", "", "", 405, "", ""},
		"an unknown parameter":    {"GET", "/me?new=1", "", "", 200, "", ""},
		"a limit of 0":            {"GET", "/sessions?limit=0", "", "", 422, fault.InvalidField, `"field":"limit"`},
		"an unknown status":       {"GET", "/sessions?status=ajar", "", "", 422, fault.InvalidField, "status must be one of open, closed."},
		"two that are wrong":      {"GET", "/sessions?since=x&status=ajar", "", "", 422, fault.InvalidField, `"field":"status"`},
		"a place of nothing":      {"GET", "/questions?before=x", "", "", 422, fault.InvalidField, `"field":"before"`},
		"a scope of nothing":      {"GET", "/questions?scope=x", "", "", 422, fault.InvalidField, "scope must be one of plan, tool, client_tool, budget, agent."},
		"a long filter":           {"GET", "/audit?entity=" + strings.Repeat("x", 300), "", "", 422, fault.InvalidField, "entity must be at most 256 bytes."},
		"a wait of an hour":       {"POST", "/tools/p/t/call?wait=3600", json, "{}", 422, fault.InvalidField, "wait must be a number from 1 to 50."},
		"a letter by name":        {"GET", "/dead-letters/x", "", "", 404, fault.NotFound, ""},
		"a trial by name":         {"POST", "/model/trials/x", "", "", 404, fault.NotFound, ""},
		"an index of nothing":     {"POST", "/reindex", json, `{"kind":"call"}`, 422, fault.InvalidField, `"field":"kind"`},
		"a log of nothing":        {"GET", "/logs/inbox/x/head", "", "", 404, fault.RunNotFound, ""},
		"a question of nothing":   {"POST", "/questions/x/answer", json, "{}", 404, fault.NotFound, ""},
		"a session":               {"POST", "/sessions", json, `{"confirm_plan":true}`, 201, "", `"session_id"`},
		"a session as it is":      {"POST", "/sessions", "", "", 201, "", `"session_id"`},
		"a member of later":       {"POST", "/sessions", json, `{"new":true}`, 201, "", ""},
		"a large body":            {"POST", "/sessions", json, language(most), 201, "", ""},
		"a larger body":           {"POST", "/sessions", json, language(most + 1), 413, fault.MessageTooBig, ""},
		"a body of no type":       {"POST", "/sessions", "", "{}", 415, fault.MediaType, `"field":"Content-Type"`},
		"a text":                  {"POST", "/sessions", "text/plain", "{}", 415, fault.MediaType, ""},
		"a member twice":          {"POST", "/sessions", json, `{"language":"a","language":"b"}`, 400, fault.BadJSON, "a name occurs twice in one object (byte 16)"},
		"half a body":             {"POST", "/sessions", json, `{"language":`, 400, fault.BadJSON, "it ends too early"},
		"a text that is none":     {"POST", "/sessions", json, "{\"language\":\"\xff\"}", 400, fault.BadUTF8, "at byte 13"},
		"another type":            {"POST", "/sessions", json, `{"confirm_plan":"yes"}`, 422, fault.InvalidField, `"field":"confirm_plan"`},
		"an unknown way":          {"POST", "/sessions", json, `{"on_busy":"never"}`, 422, fault.InvalidField, "on_busy must be one of reject, enqueue, interrupt."},
		"an unknown way to index": {"POST", "/reindex", json, `{"kind":"task","all":true}`, 422, fault.InvalidField, `"field":"all"`},
		"a task of the past":      {"POST", "/tasks", json, `{"queue_ms":-1,"timeout_ms":-1}`, 422, fault.InvalidField, `"field":"queue_ms"`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, api.Prefix+c.path, strings.NewReader(c.body))
		if c.media != "" {
			r.Header.Set("Content-Type", c.media)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		body := w.Body.String()
		require.Equal(t, c.status, w.Code, "%s: %s", name, body)
		require.Contains(t, body, c.says, name)
		if c.code != "" {
			require.Contains(t, body, `"title":"`+string(c.code)+`"`, name)
		}
		if c.method != "PUT" && c.method != "HEAD" {
			require.NoError(t, contract.Check(r, w.Code, w.Header(), w.Body.Bytes()), name)
		}
	}
}
