package gateway_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
)

const startToken = "the-start-token"

// foreignPage is a page of another port of this machine.
const foreignPage = "http://localhost:3000"

func withStartToken(c *gateway.Config, _ *gateway.Deps) { c.StartToken = startToken }

// TestPagesOfOtherPorts: without authentication a page of another port neither reads nor writes,
// in any way that browsers offer.
func TestPagesOfOtherPorts(t *testing.T) {
	r := start(t, withStartToken)
	l := r.session("default", "secret")
	events, stream := "/api/v1/sessions/"+l.Entity.String()+"/events", streamOf(l)
	for _, c := range []struct {
		name, method, path string
		header             []string
	}{
		{"fetch", "GET", events, []string{"Origin", foreignPage, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}},
		{"fetch of another site", "GET", events, []string{"Origin", "https://evil.net", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}},
		{"EventSource", "GET", stream, []string{"Origin", foreignPage, "Accept", "text/event-stream", "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}},
		{"live events", "GET", "/api/v1/live", []string{"Origin", foreignPage, "Accept", "text/event-stream"}},
		{"POST of plain text, which has no preflight", "POST", "/api/v1/teams", []string{"Origin", foreignPage, "Content-Type", "text/plain"}},
		{"POST of a form", "POST", "/api/v1/sessions/" + l.Entity.String() + "/cancel", []string{"Origin", foreignPage, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{"POST after a redirect", "POST", "/api/v1/teams", []string{"Origin", "null"}},
		{"DELETE", "DELETE", "/api/v1/sessions/" + l.Entity.String(), []string{"Origin", foreignPage}},
		{"preflight", "OPTIONS", "/api/v1/teams", []string{"Origin", foreignPage, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type"}},
		{"image", "GET", events, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}},
		{"script of another site", "GET", events, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}},
		{"script of the schemas", "GET", "/api/v1/schemas", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}},
		{"frame", "GET", events, []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		{"frame of the schemas", "GET", "/api/v1/schemas", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		{"link", "GET", events, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{"a wrong token", "GET", events, []string{"Origin", foreignPage, "Authorization", "Bearer wrong"}},
		{"an empty token", "GET", events, []string{"Origin", foreignPage, "Authorization", "Bearer "}},
		{"a token in the query", "GET", events + "?token=" + startToken, []string{"Origin", foreignPage}},
		{"two origins", "GET", events, []string{"Origin", "http://" + r.addr, "Origin", foreignPage, "Authorization", "Bearer " + startToken}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, header := r.request(c.method, c.path, c.header...)
			require.Equal(t, http.StatusForbidden, status, body)
			require.Contains(t, body, "ORIGIN_REFUSED")
			require.NotContains(t, body, "secret")
			require.Empty(t, header.Get("Access-Control-Allow-Origin"), "the page cannot even read why")
		})
	}
	for name, header := range map[string][]string{
		"socket": {"Origin", foreignPage}, "socket without Origin": {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "websocket"},
		"socket with a wrong token": append(browser("wrong"), "Origin", foreignPage),
	} {
		_, status, body := r.handshake("session="+l.Entity.String(), header...)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", name, body)
	}
	require.Empty(t, r.inbox(l.Entity.String()), "no command has come of it")
}

// TestWhoNeedsNoStartToken: programs, the gateway's own pages, listed origins, and people who open
// the documentation.
func TestWhoNeedsNoStartToken(t *testing.T) {
	r := start(t, withStartToken, func(c *gateway.Config, _ *gateway.Deps) { c.AllowedOrigins = []string{"http://localhost:5173"} })
	l := r.session("default", "one")
	events := "/api/v1/sessions/" + l.Entity.String() + "/events"
	for name, header := range map[string][]string{
		"program":               nil,
		"typed address":         {"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
		"own page":              {"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"},
		"own page with Origin":  {"Origin", "http://" + r.addr, "Sec-Fetch-Site", "same-origin"},
		"listed origin":         {"Origin", "http://localhost:5173", "Sec-Fetch-Site", "same-site"},
		"page with the token":   {"Origin", foreignPage, "Authorization", "Bearer " + startToken, "Sec-Fetch-Site", "same-site"},
		"page with it as a key": {"Origin", foreignPage, "X-API-Key", startToken},
	} {
		status, body, answer := r.get(events, header...)
		require.Equal(t, http.StatusOK, status, "%s: %s", name, body)
		if len(header) > 0 && header[0] == "Origin" {
			require.Equal(t, header[1], answer.Get("Access-Control-Allow-Origin"), name)
		}
	}
	status, _, header := r.request("OPTIONS", events, "Origin", foreignPage, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")
	require.Equal(t, []any{http.StatusNoContent, foreignPage}, []any{status, header.Get("Access-Control-Allow-Origin")})
	for _, path := range []string{"/api/v1/openapi.json", "/api/v1/schemas", "/api/v1/schemas/orbit"} {
		status, _, _ := r.get(path, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
		require.Equal(t, http.StatusOK, status, "a link to %s", path)
	}
	r.dial("", append(browser(startToken), "Origin", foreignPage)...).ready()
	r.dial("", "Origin", "http://"+r.addr).ready()
	r.dial("").ready()
}

// TestWithoutAStartToken the empty token admits no page.
func TestWithoutAStartToken(t *testing.T) {
	r := start(t)
	status, body, _ := r.get("/api/v1/sessions", "Origin", foreignPage, "Authorization", "Bearer ")
	require.Equal(t, http.StatusForbidden, status, body)
	status, _, _ = r.request("OPTIONS", "/api/v1/sessions", "Origin", foreignPage, "Access-Control-Request-Headers", "authorization")
	require.Equal(t, http.StatusForbidden, status)
}
