package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "0.5": 500 * time.Millisecond, "-3": 0, "soon": 0, "NaN": 0,
		"1e300": 24 * time.Hour, "+Inf": 24 * time.Hour,
		"Sat, 14 Mar 2026 15:10:26 GMT": time.Minute, "Sat, 14 Mar 2026 15:00:00 GMT": 0,
		"Saturday, 14-Mar-26 15:09:36 GMT": 10 * time.Second, "Sat Mar 14 15:09:27 2026": time.Second,
	} {
		require.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}, now), value)
	}
	h := http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"250"}}
	require.Equal(t, 250*time.Millisecond, retryAfter(h, now), "the finer one counts")
}

func TestClassify(t *testing.T) {
	c := mustNew(model.Access{Key: "secret-key"})
	for _, tc := range []struct {
		err   error
		code  fault.Code
		retry bool
	}{
		{&StatusError{Status: 400}, fault.ModelRefused, false},
		{&StatusError{Status: 302}, fault.ModelRefused, false},
		{&StatusError{Status: 204}, fault.ModelBadReply, false},
		{&StatusError{Status: 408}, fault.ModelFailed, true},
		{&StatusError{Status: 429}, fault.ModelRateLimited, true},
		{&StatusError{Status: 429, Kind: "insufficient_quota"}, fault.ModelOutOfQuota, false},
		{&StatusError{Status: 429, Detail: "You exceeded your current quota; flagged"}, fault.ModelRateLimited, true},
		{&StatusError{Status: 500, Detail: "context length"}, fault.ModelFailed, true},
		{&StatusError{Status: 529}, fault.ModelBusy, true},
		{fmt.Errorf("wrapped: %w", &StatusError{Status: 503}), fault.ModelFailed, true},
		{errorBody{Type: "overloaded_error"}.event(), fault.ModelBusy, true},
		{errorBody{Type: "server_error", Code: "429"}.event(), fault.ModelRateLimited, true},
		{errorBody{Code: "rate_limit_exceeded"}.event(), fault.ModelRateLimited, true},
		{errorBody{Type: "invalid_request_error"}.event(), fault.ModelRefused, false},
		{errorBody{Type: "authentication_error"}.event(), fault.ModelKeyRefused, false},
		{errorBody{Type: "permission_error"}.event(), fault.ModelKeyRefused, false},
		{errorBody{Type: "not_found_error"}.event(), fault.ModelNotFound, false},
		{errorBody{Type: "request_too_large"}.event(), fault.ModelInputTooLong, false},
		{errorBody{Type: "timeout_error"}.event(), fault.ModelFailed, true},
		{errorBody{Message: "?"}.event(), fault.ModelFailed, true},
		{errSilent, fault.ModelTimeout, false},
		{errTooLong, fault.ModelBadReply, false},
		{BadReply("odd"), fault.ModelBadReply, false},
		{io.ErrUnexpectedEOF, fault.ModelCutOff, true},
		{errors.New("connection refused"), fault.ModelFailed, true},
	} {
		f := c.classify(tc.err)
		require.Equal(t, tc.code, f.Fault.Code, "%v", tc.err)
		require.Equal(t, tc.retry, f.Retry, "%v", tc.err)
	}
}

func TestNoKeyGetsOut(t *testing.T) {
	c := mustNew(model.Access{Key: "topsecret42"})
	for _, s := range []string{
		"key topsecret42 is wrong", "sk-abcdefgh is wrong", "sk-ant-api03-abc_def-123 x", "sk-proj****************abcd x", strings.Repeat("topsecret42 ", 500),
	} {
		for _, err := range []error{&StatusError{Status: 401, Kind: "topsecret42", Detail: s}, BadReply("%s", s), errors.New(s)} {
			f := c.classify(err)
			got := f.Error() + fmt.Sprint(f.Said)
			require.NotContains(t, got, "topsecret42")
			require.NotContains(t, got, "sk-")
			require.Contains(t, got, "[key]")
			require.Less(t, len(got), 1600)
			require.NotContains(t, got, "\x1b")
		}
	}
	require.NotContains(t, plain(&url.Error{Op: "Post", URL: "http://me:pass@host", Err: io.EOF}).Error(), "pass")
}

func TestStatusError(t *testing.T) {
	for body, want := range map[string]StatusError{
		`{"error":{"message":"m","type":"t","code":"c"}}`:     {Status: 418, Kind: "c", Type: "t", Detail: "m"},
		`{"error":{"message":"m","type":"t","code":null}}`:    {Status: 418, Kind: "t", Type: "t", Detail: "m"},
		`{"error":{"message":"m","type":"t","code":7}}`:       {Status: 418, Kind: "t", Type: "t", Detail: "m"},
		`{"type":"error","error":{"type":"t","message":"m"}}`: {Status: 418, Kind: "t", Type: "t", Detail: "m"},
		`{"error":"plain"}`:  {Status: 418, Detail: "plain"},
		`{"detail":"other"}`: {Status: 418, Detail: "other"},
		`{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"Not permitted"}]}`: {Status: 418, Param: "body.x", Detail: "body.x: Not permitted"},
		`[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]`:               {Status: 418, Kind: "INVALID_ARGUMENT", Detail: "m"},
		`{"errors":[{"code":3040,"message":"m"}],"success":false}`:                         {Status: 418, Detail: "m"},
		`<html>`:                  {Status: 418, Detail: `<html>`},
		``:                        {Status: 418},
		`[]`:                      {Status: 418, Detail: `[]`},
		`{"error":{"message":7}}`: {Status: 418, Detail: "7"},
	} {
		require.Equal(t, want, *statusError(&http.Response{StatusCode: http.StatusTeapot, Header: http.Header{}}, []byte(body), time.Now()), body)
	}
}

// Any text that a model sends as arguments comes out as valid JSON, goes back as an object, and loses nothing on the way.
func TestArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "{}", "null", `{"a":1}`, `{"a":`, `"x"`, "[1]", "\xff", "{\"a\":\"\xff\"}"})).Draw(t, "arguments")
		got := parseArguments(s)
		require.True(t, json.Valid(got), "%q", got)
		var sent map[string]any
		require.NoError(t, json.Unmarshal(History(got), &sent), "%q", got)
	})
	require.JSONEq(t, `{"invalid_arguments":"{\"a\":"}`, string(History(parseArguments(`{"a":`))))
	require.JSONEq(t, `{"invalid_arguments":"[1]"}`, string(History(parseArguments(`[1]`))))
	require.JSONEq(t, `{"a":1}`, string(History(parseArguments(` {"a":1} `))))
	require.JSONEq(t, `{}`, string(History(nil)))
}

func TestCallIDsAreUnique(t *testing.T) {
	next := []string{"old", "new1", "new2"}
	c := NewCalls(model.Request{
		Messages: []model.Message{{ToolCalls: []event.ToolCall{{ID: "old"}}}},
		NewID:    func() string { id := next[0]; next = next[1:]; return id },
	})
	for _, id := range []string{"a", "", "a", "b"} {
		c.Add(id, "t", "", false)
	}
	var got []string
	for _, call := range c.All() {
		got = append(got, call.ID)
	}
	require.Equal(t, []string{"a", "new1", "new2", "b"}, got)
}

func mustNew(a model.Access) *Client {
	c, err := New(a, model.Env{})
	if err != nil {
		panic(err)
	}
	return c
}
