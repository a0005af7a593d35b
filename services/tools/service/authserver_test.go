package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// authServer is an authorization server with the MCP server that it protects, on one listener. A test changes what differs
// among real ones.
type authServer struct {
	script
	t   *testing.T
	url string

	mu      sync.Mutex
	path    string            // of the MCP server; /mcp
	docs    map[string]string // documents by their paths; %s is the address
	missing int               // the status of other documents; 0 = 404
	client  string
	secret  string
	methods string         // how the client may show its secret: basic, post
	lives   int            // seconds of a token; 0 = it does not say
	refuse  string         // the error code of every token request
	kind    string         // of tokens; empty = Bearer
	scope   string         // of the challenge
	bare    bool           // no resource_metadata in the challenge
	deaf    bool           // no token is accepted
	valid   map[string]int // tokens with the number of requests that had them
	asked   []string       // token requests: grant, scope and resource
	gets    []string       // requests for documents
	denied  int
	given   int
}

// canarySecret is the secret of the client, with characters that are written otherwise in addresses.
const canarySecret = "canary secret+/%ä"

func newAuthServer(t *testing.T) *authServer {
	t.Helper()
	a := &authServer{
		script: plainScript(), t: t, path: "/mcp", client: "waggle", secret: canarySecret, methods: "basic", lives: 3600, valid: map[string]int{},
	}
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	a.url = srv.URL
	a.docs = map[string]string{
		"/.well-known/oauth-protected-resource/mcp":  `{"resource":"%s/mcp","authorization_servers":["%s/as"],"scopes_supported":["read","write"]}`,
		"/.well-known/oauth-authorization-server/as": `{"issuer":"%s/as","token_endpoint":"%s/as/token","token_endpoint_auth_methods_supported":["client_secret_basic"]}`,
	}
	return a
}

func (a *authServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case req.URL.Path == a.path:
		a.protected(w, req)
	case strings.HasSuffix(req.URL.Path, "/token"):
		a.token(w, req)
	default:
		a.gets = append(a.gets, req.URL.Path)
		doc, ok := a.docs[req.URL.Path]
		switch {
		case !ok && a.missing != 0:
			w.WriteHeader(a.missing)
		case !ok:
			http.NotFound(w, req)
		case strings.HasPrefix(doc, "http"):
			http.Redirect(w, req, doc, http.StatusFound)
		default:
			_, _ = fmt.Fprint(w, strings.ReplaceAll(doc, "%s", a.url))
		}
	}
}

// protected is the MCP server.
func (a *authServer) protected(w http.ResponseWriter, req *http.Request) {
	token, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if _, ok := a.valid[token]; !ok || token == "" || a.deaf {
		a.denied++
		challenge := "Bearer"
		if !a.bare {
			challenge += fmt.Sprintf(` resource_metadata="%s/.well-known/oauth-protected-resource%s",`, a.url, a.path)
		}
		if token != "" {
			challenge += fmt.Sprintf(` error="invalid_token", error_description="the token %s is not known",`, token)
		}
		if a.scope != "" {
			challenge += fmt.Sprintf(` scope="%s",`, a.scope)
		}
		w.Header().Set("WWW-Authenticate", strings.TrimSuffix(challenge, ","))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	a.valid[token]++
	a.script.ServeHTTP(w, req)
}

// token is the endpoint of tokens.
func (a *authServer) token(w http.ResponseWriter, req *http.Request) {
	_ = req.ParseForm()
	a.asked = append(a.asked, fmt.Sprintf("%s %s scope=%s resource=%s", req.URL.Path, req.PostForm.Get("grant_type"), req.PostForm.Get("scope"), strings.ReplaceAll(req.PostForm.Get("resource"), a.url, "")))
	user, password, basic := req.BasicAuth()
	method := "basic"
	if !basic {
		method, user, password = "post", req.PostForm.Get("client_id"), req.PostForm.Get("client_secret")
	}
	answer := map[string]any{}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case a.refuse != "":
		answer["error"], answer["error_description"] = a.refuse, "you sent "+password
		w.WriteHeader(http.StatusBadRequest)
	case !strings.Contains(a.methods, method), unescaped(user, basic) != a.client, unescaped(password, basic) != a.secret:
		answer["error"] = "invalid_client"
		w.WriteHeader(http.StatusUnauthorized)
	default:
		a.given++
		token := fmt.Sprintf("canary-token-%d", a.given)
		a.valid[token] = 0
		answer["access_token"], answer["token_type"] = token, "Bearer"
		if a.kind != "" {
			answer["token_type"] = a.kind
		}
		if a.lives > 0 {
			answer["expires_in"] = a.lives
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// revoke makes all tokens worthless.
func (a *authServer) revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.valid = map[string]int{}
}

// counts returns the numbers of tokens that were asked for and of refused requests.
func (a *authServer) counts() (asked, denied int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked), a.denied
}
