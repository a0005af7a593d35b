// Package sessions looks after the sessions of a gateway from the terminal: over
// its HTTP API, and over a session socket for what is brought back.
package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

const (
	// maxAnswer bounds what is read of an answer: a state of the largest kind with room.
	maxAnswer = 64 << 20
	// patience is for a whole request: a list of many sessions takes seconds.
	patience = 30 * time.Second
)

// API is the HTTP API of a gateway.
type API struct {
	base  *url.URL
	token string
	http  *http.Client
}

// New returns the API of the gateway whose chat has the ws:// or wss:// URL.
func New(chat, token string) (*API, error) {
	u, err := url.Parse(chat)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not a ws:// or wss:// URL", chat)
	}
	scheme, ok := map[string]string{"ws": "http", "wss": "https", "http": "http", "https": "https"}[u.Scheme]
	if !ok {
		return nil, fmt.Errorf("%q is not a ws:// or wss:// URL", chat)
	}
	path := strings.TrimSuffix(strings.TrimSuffix(u.Path, "/session"), "/ws")
	return &API{
		base:  &url.URL{Scheme: scheme, Host: u.Host, Path: strings.TrimSuffix(path, "/")},
		token: token, http: &http.Client{Timeout: patience},
	}, nil
}

// Summary is one session in a list.
type Summary struct {
	SessionID string    `json:"session_id"`
	LastSeq   uint64    `json:"last_seq"`
	LastEvent string    `json:"last_event"`
	UpdatedAt time.Time `json:"updated_at"`
	Question  string    `json:"question"` // the first one, of the newest sessions
}

// Detail is one session with its runs.
type Detail struct {
	SessionID string    `json:"session_id"`
	Status    string    `json:"status"`
	Dialect   string    `json:"dialect"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	LastSeq   uint64    `json:"last_seq"`
	Runs      []Run     `json:"runs"`
}

// Run is one run of a session.
type Run struct {
	RunID   string `json:"run_id"`
	Status  string `json:"status"`
	Mode    string `json:"mode"`
	Content string `json:"content"`
	Answer  string `json:"answer"`
}

// Get returns the answer to a request for what the path below /api/v1 names. Its parts
// may be any text.
func (a *API) Get(ctx context.Context, parts ...string) (json.RawMessage, error) {
	return a.do(ctx, http.MethodGet, below(parts), nil)
}

// Post returns the answer to a request to do what the path below /api/v1 names.
func (a *API) Post(ctx context.Context, body []byte, parts ...string) (json.RawMessage, error) {
	return a.do(ctx, http.MethodPost, below(parts), body)
}

// Delete returns the answer to a request to end what the path below /api/v1 names.
func (a *API) Delete(ctx context.Context, parts ...string) (json.RawMessage, error) {
	return a.do(ctx, http.MethodDelete, below(parts), nil)
}

// Remove deletes a session and reports whether nothing is left of it already.
func (a *API) Remove(ctx context.Context, session string) (done bool, err error) {
	answer, err := a.Delete(ctx, "sessions", session)
	return err == nil && len(answer) == 0, err
}

func below(parts []string) string {
	path := "/api/v1"
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	return path
}

func (a *API) do(ctx context.Context, method, path string, body []byte) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, socket.Unreachable(a.base.Redacted(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, problem(resp, answer)
	}
	return answer, nil
}

// problem puts a problem document (RFC 9457) into words.
func problem(resp *http.Response, body []byte) error {
	var p struct{ Title, Detail string }
	if json.Unmarshal(body, &p) != nil || p.Detail == "" {
		return fmt.Errorf("the gateway answered %s", terminal.Line(resp.Status, 100))
	}
	hint := ""
	if resp.StatusCode == http.StatusUnauthorized {
		hint = " (--token or WAGGLE_TOKEN)"
	}
	return fmt.Errorf("%s [%s]%s", terminal.Line(p.Detail, 500), terminal.Line(p.Title, 60), hint)
}
