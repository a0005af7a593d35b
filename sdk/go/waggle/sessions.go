package waggle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// Types of sessions, as the HTTP API shows them.
type (
	// SessionSummary is one session in a list.
	SessionSummary = api.SessionSummary
	// SessionDetail is one session with its runs.
	SessionDetail = api.SessionDetail
	// RunDetail is one run of a session.
	RunDetail = api.RunDetail
)

// Me returns who the server takes the program for, and what it may do.
func (c *Client) Me(ctx context.Context) (api.Me, error) {
	return call[api.Me](ctx, c, http.MethodGet, nil, "me")
}

// Sessions lists the sessions.
func (c *Client) Sessions(ctx context.Context) ([]SessionSummary, error) {
	var l api.SessionList
	raw, err := c.List(ctx, "sessions", "sessions")
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	return l.Sessions, err
}

// ShowSession returns a session and its runs.
//
// Errors: HISTORY_EXPIRED, SESSION_DELETED, SESSION_NOT_FOUND.
func (c *Client) ShowSession(ctx context.Context, session string) (SessionDetail, error) {
	return call[SessionDetail](ctx, c, http.MethodGet, nil, "sessions", session)
}

// CancelSession stops the active run of a session, which stays usable.
//
// Errors: SESSION_DELETED, SESSION_NOT_FOUND.
func (c *Client) CancelSession(ctx context.Context, session string) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, nil, "sessions", session, "cancel")
	return err
}

// DeleteSession removes a session with all its events permanently, and reports whether that is done
// already: services that are away do it when they are back.
//
// Errors: SESSION_DELETED, SESSION_NOT_FOUND.
func (c *Client) DeleteSession(ctx context.Context, session string) (done bool, err error) {
	answer, err := c.persist(ctx, request{method: http.MethodDelete, path: []string{"sessions", session}})
	return err == nil && len(answer) == 0, err
}

// ExportSession returns the signed state of a session, for ImportSession.
//
// Errors: HISTORY_EXPIRED, SESSION_DELETED, SESSION_NOT_FOUND.
func (c *Client) ExportSession(ctx context.Context, session string) (json.RawMessage, error) {
	return c.Get(ctx, nil, "sessions", session, "state")
}

// ImportSession restores an exported session, here or on another installation with the same key.
// It returns the id of the session and the server's remarks on it.
//
// Errors: SESSION_DELETED, STATE_EXPIRED, STATE_TAMPERED.
func (c *Client) ImportSession(ctx context.Context, state []byte) (session string, warnings []string, err error) {
	signed, err := Signed(state)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	session, warnings, err = myagent.Restore(ctx, c.myagent(SessionOptions{}), signed)
	return session, warnings, typed(err)
}

// Signed finds the signed state in what ExportSession returned, in the metadata of an
// agent.state_exported frame, or in the signed state itself.
func Signed(file []byte) (json.RawMessage, error) {
	var d struct {
		Signed      json.RawMessage `json:"signed"`
		SignedState json.RawMessage `json:"signed_state"`
		Signature   string          `json:"signature"`
	}
	if err := json.Unmarshal(file, &d); err != nil {
		return nil, fmt.Errorf("the file is not an exported state: %w", err)
	}
	switch {
	case d.Signature != "":
		return file, nil
	case d.Signed != nil:
		return d.Signed, nil
	case d.SignedState != nil:
		return d.SignedState, nil
	}
	return nil, errors.New("the file is not an exported state: it has no signed state")
}
