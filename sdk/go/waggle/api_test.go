package waggle_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent/myagenttest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(tests{m}, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

func TestTheAPIIsAskedAsThePrincipal(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Authorization"))
		if strings.Contains(r.URL.Path, "unknown") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"title":"SESSION_NOT_FOUND","detail":"There is no such session."}`))
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
		a, err := waggle.Open(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http")+path, waggle.Options{Token: "k"})
		require.NoError(t, err)
		asked = nil
		_, err = a.Sessions(t.Context())
		require.NoError(t, err)
		_, err = a.ShowSession(t.Context(), "a/../b")
		require.NoError(t, err)
		_, err = a.ExportSession(t.Context(), "s")
		require.NoError(t, err)
		require.NoError(t, a.CancelSession(t.Context(), "s"))
		require.Equal(t, []string{
			"GET /api/v1/sessions Bearer k", "GET /api/v1/sessions/a%2F..%2Fb Bearer k",
			"GET /api/v1/sessions/s/state Bearer k", "POST /api/v1/sessions/s/cancel Bearer k",
		}, asked)
		_, err = a.ShowSession(t.Context(), "unknown")
		var problem *waggle.Error
		require.ErrorAs(t, err, &problem)
		require.JSONEq(t, `{"title":"SESSION_NOT_FOUND","detail":"There is no such session."}`, string(problem.Detail))
		problem.Detail = nil
		require.Equal(t, &waggle.Error{Code: "SESSION_NOT_FOUND", Message: "There is no such session.", Status: 404}, problem)
		require.False(t, problem.Retryable())
		require.True(t, waggle.IsCode(err, fault.SessionNotFound))
		_, err = a.DeleteSession(t.Context(), "unknown")
		require.EqualError(t, err, "There is no such session. [SESSION_NOT_FOUND]")
		for session, want := range map[string]bool{"gone": true, "later": false} {
			asked = nil
			done, err := a.DeleteSession(t.Context(), session)
			require.NoError(t, err)
			require.Equal(t, want, done)
			require.Equal(t, []string{"DELETE /api/v1/sessions/" + session + " Bearer k"}, asked)
		}
	}
	_, err := waggle.Open(t.Context(), "ftp://h/ws", waggle.Options{})
	require.Error(t, err)
}

func TestASignedStateIsFoundAndRestored(t *testing.T) {
	for _, file := range []string{`{"signed":{"signature":"x"}}`, `{"session_state":{},"signed_state":{"signature":"x"}}`, `{"signature":"x"}`} {
		signed, err := waggle.Signed([]byte(file))
		require.NoError(t, err)
		require.JSONEq(t, `{"signature":"x"}`, string(signed))
	}
	for _, bad := range []string{"", "[]", `{}`, `{"signature":5}`} {
		_, err := waggle.Signed([]byte(bad))
		require.Error(t, err, bad)
	}
	url := myagenttest.Serve(t,
		func(p *myagenttest.Peer) {
			in := p.Read()
			require.Empty(p.T, in.SessionID)
			require.JSONEq(p.T, `{"signature":"x"}`, string(in.SignedState))
			p.Send(myagent.Frame{Event: myagent.AgentStateRestored, Seq: 1, Metadata: myagent.StateRestoredMeta{Warnings: []string{"cut"}}})
			p.Replayed()
			p.Until()
		},
		func(p *myagenttest.Peer) {
			p.Read()
			p.Send(myagent.Frame{Event: myagent.ErrorRecoveryFailed, Content: "tampered", Metadata: map[string]any{"error_code": "STATE_TAMPERED"}})
			p.Until()
		})
	w, err := waggle.Open(t.Context(), url, waggle.Options{Language: "en_US"})
	require.NoError(t, err)
	session, warnings, err := w.ImportSession(t.Context(), []byte(`{"signature":"x"}`))
	require.NoError(t, err)
	require.Equal(t, myagenttest.Session, session)
	require.Equal(t, []string{"cut"}, warnings)
	_, _, err = w.ImportSession(t.Context(), []byte(`{"signature":"x"}`))
	require.EqualError(t, err, "tampered [STATE_TAMPERED]")
}

func TestImportAsksInALanguage(t *testing.T) {
	for _, language := range []string{"en_US", ""} {
		asked := make(chan url.Values, 1)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Query()
			http.Error(w, "no", http.StatusForbidden)
		}))
		w, err := waggle.Open(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http")+"/ws/session", waggle.Options{Language: language})
		require.NoError(t, err)
		_, _, err = w.ImportSession(t.Context(), []byte(`{"signature":"x"}`))
		srv.Close()
		require.Error(t, err)
		query := <-asked
		require.Equal(t, language, query.Get("language"))
		require.Equal(t, language != "", query.Has("language"))
	}
}
