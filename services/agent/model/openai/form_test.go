package openai_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/agent/model"
	"github.com/waggle-dev/waggle/services/agent/model/modeltest"
	"github.com/waggle-dev/waggle/services/agent/model/openai"
	"github.com/waggle-dev/waggle/services/agent/model/scripted"
	"github.com/waggle-dev/waggle/services/agent/prompt"
)

// against returns a model of a scripted server.
func against(t *testing.T, script scripted.Script) (model.Model, *scripted.Server) {
	t.Helper()
	srv, err := scripted.Start("127.0.0.1:0", script)
	require.NoError(t, err)
	m, err := openai.New("x", model.Env{OpenAIBaseURL: srv.OpenAIBaseURL(), RetryPause: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.Close())
		require.NoError(t, srv.Close())
	})
	return m, srv
}

func planned() model.Request {
	req := modeltest.Ask("hello")
	req.Schema = prompt.PlanSchema()
	return req
}

// TestAServerThatRefusesTheForm is asked again without it, and from then on at once.
func TestAServerThatRefusesTheForm(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
		hello := scripted.Stream(scripted.Text("Hello"))
		m, srv := against(t, scripted.Sequence(scripted.Fail(status, "invalid_request_error", "response_format?"), hello, hello))
		for range 2 {
			r, err := modeltest.Generate(t.Context(), t, m, planned())
			require.NoError(t, err)
			require.Equal(t, "Hello", r.Text)
		}
		all := srv.Exchanges()
		require.Len(t, all, 3)
		require.NotNil(t, all[0].Prompt.Schema)
		require.Nil(t, all[1].Prompt.Schema)
		require.Nil(t, all[2].Prompt.Schema)
	}
}

// TestARefusalForAnotherReason is no sign that the server cannot enforce a form.
func TestARefusalForAnotherReason(t *testing.T) {
	bad := scripted.Fail(http.StatusBadRequest, "invalid_request_error", "too long")
	m, srv := against(t, scripted.Sequence(bad, bad, scripted.Stream(scripted.Text("Hello"))))
	_, err := modeltest.Generate(t.Context(), t, m, planned())
	require.ErrorIs(t, err, fault.New(fault.ModelRefused))
	_, err = modeltest.Generate(t.Context(), t, m, planned())
	require.NoError(t, err)
	all := srv.Exchanges()
	require.Len(t, all, 3)
	require.NotNil(t, all[2].Prompt.Schema)
}

// TestATryWithoutTheFormThatFails is repeated without it, like any other try.
func TestATryWithoutTheFormThatFails(t *testing.T) {
	m, srv := against(t, scripted.Sequence(scripted.Fail(http.StatusBadRequest, "invalid_request_error", "response_format?"),
		scripted.Fail(http.StatusServiceUnavailable, "api_error", "later"), scripted.Stream(scripted.Text("Hello"))))
	_, err := modeltest.Generate(t.Context(), t, m, planned())
	require.NoError(t, err)
	all := srv.Exchanges()
	require.Len(t, all, 3)
	require.Nil(t, all[1].Prompt.Schema)
	require.Nil(t, all[2].Prompt.Schema)
}
