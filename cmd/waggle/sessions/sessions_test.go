package sessions

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/client/clienttest"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

func TestTheAPIIsAskedAsThePrincipal(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Authorization"))
		if strings.Contains(r.URL.Path, "unknown") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"title":"SESSION_NOT_FOUND","detail":"There is no such session.\u001b[2J"}`))
			return
		}
		if strings.HasSuffix(r.URL.Path, "/gone") {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	defer srv.Close()
	for _, path := range []string{"/ws", "/ws/session", "/"} {
		a, err := New("ws"+strings.TrimPrefix(srv.URL, "http")+path, "k")
		require.NoError(t, err)
		asked = nil
		_, err = a.Get(t.Context(), "sessions")
		require.NoError(t, err)
		_, err = a.Get(t.Context(), "sessions", "a/../b")
		require.NoError(t, err)
		_, err = a.Get(t.Context(), "sessions", "s", "state")
		require.NoError(t, err)
		_, err = a.Post(t.Context(), nil, "sessions", "s", "cancel")
		require.NoError(t, err)
		require.Equal(t, []string{
			"GET /api/v1/sessions Bearer k", "GET /api/v1/sessions/a%2F..%2Fb Bearer k",
			"GET /api/v1/sessions/s/state Bearer k", "POST /api/v1/sessions/s/cancel Bearer k",
		}, asked)
		_, err = a.Get(t.Context(), "sessions", "unknown")
		require.EqualError(t, err, "There is no such session. [SESSION_NOT_FOUND]")
		_, err = a.Remove(t.Context(), "unknown")
		require.EqualError(t, err, "There is no such session. [SESSION_NOT_FOUND]")
		for session, want := range map[string]bool{"gone": true, "later": false} {
			asked = nil
			done, err := a.Remove(t.Context(), session)
			require.NoError(t, err)
			require.Equal(t, want, done)
			require.Equal(t, []string{"DELETE /api/v1/sessions/" + session + " Bearer k"}, asked)
		}
	}
	_, err := New("ftp://h/ws", "")
	require.Error(t, err)
}

func TestTables(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	require.NoError(t, WriteList(&b, json.RawMessage(`{"sessions":[
		{"session_id":"old","last_seq":7,"last_event":"session.closed","updated_at":"2025-12-01T00:00:00Z"},
		{"session_id":"new\u001b[31m","last_seq":120,"last_event":"run.completed","updated_at":"2026-01-02T11:58:30Z","question":"what is\u001b[2J up?"}]}`), now))
	require.Equal(t, "SESSION  EVENTS  NEWEST          AGE      QUESTION\nnew      120     run.completed   1 min    what is up?\nold      7       session.closed  32 days\n", b.String())
	b.Reset()
	require.NoError(t, WriteList(&b, json.RawMessage(`{"sessions":[]}`), now))
	require.Equal(t, "no sessions\n", b.String())
	b.Reset()
	require.NoError(t, WriteDetail(&b, json.RawMessage(`{"session_id":"s","status":"open","dialect":"myagent","created_at":"2026-01-02T00:00:00Z",
		"updated_at":"2026-01-02T11:59:58Z","last_seq":9,"runs":[{"status":"completed","content":"q\nq","answer":"a"}]}`), now))
	require.Contains(t, b.String(), "updated  2 s ago\n")
	require.Contains(t, b.String(), "1    completed  q q       a\n")
	require.Error(t, WriteDetail(&b, json.RawMessage(`[]`), now))
}

func TestASignedStateIsFoundAndRestored(t *testing.T) {
	for _, file := range []string{`{"signed":{"signature":"x"}}`, `{"session_state":{},"signed_state":{"signature":"x"}}`, `{"signature":"x"}`} {
		signed, err := Signed([]byte(file))
		require.NoError(t, err)
		require.JSONEq(t, `{"signature":"x"}`, string(signed))
	}
	for _, bad := range []string{"", "[]", `{}`, `{"signature":5}`} {
		_, err := Signed([]byte(bad))
		require.Error(t, err, bad)
	}
	url := clienttest.Serve(t,
		func(p *clienttest.Peer) {
			in := p.Read()
			require.Empty(p.T, in.SessionID)
			require.JSONEq(p.T, `{"signature":"x"}`, string(in.SignedState))
			p.Send(myagent.Frame{Event: myagent.AgentStateRestored, Seq: 1, Metadata: myagent.StateRestoredMeta{Warnings: []string{"cut"}}})
			p.Replayed()
			p.Until()
		},
		func(p *clienttest.Peer) {
			p.Read()
			p.Send(myagent.Frame{Event: myagent.ErrorRecoveryFailed, Content: "tampered", Metadata: map[string]any{"error_code": "STATE_TAMPERED"}})
			p.Until()
		})
	session, warnings, err := Import(t.Context(), url, "", "en_US", json.RawMessage(`{"signature":"x"}`))
	require.NoError(t, err)
	require.Equal(t, clienttest.Session, session)
	require.Equal(t, []string{"cut"}, warnings)
	_, _, err = Import(t.Context(), url, "", "en_US", json.RawMessage(`{"signature":"x"}`))
	require.EqualError(t, err, "tampered [STATE_TAMPERED]")
}

func TestImportAsksInALanguage(t *testing.T) {
	for _, language := range []string{"en_US", ""} {
		asked := make(chan url.Values, 1)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Query()
			http.Error(w, "no", http.StatusForbidden)
		}))
		_, _, err := Import(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http")+"/ws/session", "", language, json.RawMessage(`{}`))
		srv.Close()
		require.Error(t, err)
		query := <-asked
		require.Equal(t, language, query.Get("language"))
		require.Equal(t, language != "", query.Has("language"))
	}
}
