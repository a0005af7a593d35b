package openai_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/prompt"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

func planned() model.Request {
	req := modeltest.Ask("hello")
	req.Schema = prompt.PlanSchema()
	return req
}

// TestAServerThatRefusesTheForm: the model asks again without the form, and then omits it at once.
func TestAServerThatRefusesTheForm(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
		hello := scripted.Stream(scripted.Text("Hello"))
		m, srv := modeltest.Serve(t, open, model.Env{}, scripted.Sequence(scripted.Fail(status, "invalid_request_error", "response_format?"), hello, hello))
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

// TestARefusalForAnotherReason does not show that the server cannot enforce a form.
func TestARefusalForAnotherReason(t *testing.T) {
	bad := scripted.Fail(http.StatusBadRequest, "invalid_request_error", "too long")
	m, srv := modeltest.Serve(t, open, model.Env{}, scripted.Sequence(bad, bad, scripted.Stream(scripted.Text("Hello"))))
	_, err := modeltest.Generate(t.Context(), t, m, planned())
	require.ErrorIs(t, err, fault.New(fault.ModelRefused))
	_, err = modeltest.Generate(t.Context(), t, m, planned())
	require.NoError(t, err)
	all := srv.Exchanges()
	require.Len(t, all, 3)
	require.NotNil(t, all[2].Prompt.Schema)
}

// TestARequestWithoutTheFormThatFails tells nothing about the form: the caller may ask again, and the next request includes
// the form.
func TestARequestWithoutTheFormThatFails(t *testing.T) {
	m, srv := modeltest.Serve(t, open, model.Env{}, scripted.Sequence(scripted.Fail(http.StatusBadRequest, "invalid_request_error", "response_format?"),
		scripted.Fail(http.StatusServiceUnavailable, "api_error", "later"), scripted.Stream(scripted.Text("Hello"))))
	_, err := modeltest.Generate(t.Context(), t, m, planned())
	failed, ok := errors.AsType[*model.Failure](err)
	require.True(t, ok)
	require.True(t, failed.Retry)
	_, err = modeltest.Generate(t.Context(), t, m, planned())
	require.NoError(t, err)
	all := srv.Exchanges()
	require.Len(t, all, 3)
	require.Nil(t, all[1].Prompt.Schema)
	require.NotNil(t, all[2].Prompt.Schema)
}

// TestARefusalByChance: a refusal that does not name the form counts only if it happens again; an answer to a request with the
// form in between clears it.
func TestARefusalByChance(t *testing.T) {
	bad, hello := scripted.Fail(http.StatusBadRequest, "invalid_request_error", "no"), scripted.Stream(scripted.Text("Hello"))
	m, srv := modeltest.Serve(t, open, model.Env{}, scripted.Sequence(bad, hello, hello, bad, hello, bad, hello, hello))
	for range 5 {
		_, err := modeltest.Generate(t.Context(), t, m, planned())
		require.NoError(t, err)
	}
	var forms []bool
	for _, x := range srv.Exchanges() {
		forms = append(forms, x.Prompt.Schema != nil)
	}
	require.Equal(t, []bool{true, false, true, true, false, true, false, false}, forms)
}
