package answer_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// documentIn returns the problem document of an answer.
func documentIn(t *testing.T, r *http.Response) map[string]any {
	t.Helper()
	require.Equal(t, answer.MediaProblem, r.Header.Get("Content-Type"))
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(body, &out))
	return out
}

func TestAFaultIsAProblemDocument(t *testing.T) {
	w := httptest.NewRecorder()
	require.NoError(t, answer.Fault(w, fault.New(fault.Unauthenticated)))
	r := w.Result()
	require.Equal(t, http.StatusUnauthorized, r.StatusCode)
	require.Equal(t, "Bearer", r.Header.Get("WWW-Authenticate"))
	require.Empty(t, r.Header.Get("Retry-After"), "the same request fails again")
	d := documentIn(t, r)
	require.Equal(t, string(fault.Unauthenticated), d["title"])
	require.EqualValues(t, http.StatusUnauthorized, d["status"])
	require.NotContains(t, d, "field")

	w = httptest.NewRecorder()
	require.NoError(t, answer.Refusal(w, fault.New(fault.InvalidField).At("last_event_id"), http.StatusUpgradeRequired))
	r = w.Result()
	require.Equal(t, http.StatusUpgradeRequired, r.StatusCode)
	require.Equal(t, "last_event_id", documentIn(t, r)["field"])
}

// TestARawAnswerIsComplete: a client that has sent no request reads a whole answer.
func TestARawAnswerIsComplete(t *testing.T) {
	rest := bufio.NewReader(bytes.NewReader(answer.Raw(fault.New(fault.Overloaded))))
	r, err := http.ReadResponse(rest, nil)
	require.NoError(t, err)
	defer func() { _ = r.Body.Close() }()
	require.Equal(t, fault.Lookup(fault.Overloaded).Status, r.StatusCode)
	require.True(t, r.Close)
	require.Equal(t, answer.RetryAfter, r.Header.Get("Retry-After"))
	require.Equal(t, string(fault.Overloaded), documentIn(t, r)["title"])
	_, err = rest.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}
