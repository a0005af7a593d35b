package modeltest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// everyCut cuts one stream at every change of its form: around line ends and colons, inside characters, and sometimes in
// between. It serves each piece twice, with a regular end and with a broken connection. The model returns the whole answer
// or a failure after which the caller may ask again.
func (h HTTP) everyCut(t *testing.T) {
	raw := h.recorded(t, scripted.Stream(
		scripted.Text("Grüß ", "Gott, ", "\U0001F41D"), scripted.Usage(3, 4),
		scripted.Calls(4, scripted.Call{ID: "a", Name: "t", Arguments: `{"k":"é"}`})))
	var piece scripted.Reply
	s := h.start(t, func(*scripted.Exchange) scripted.Reply { return piece }, model.Env{})
	serve := func(n int, broken bool) (model.Reply, string, error) {
		piece = streamed(raw[:n], broken)
		var seen strings.Builder
		r, err := s.m.Generate(t.Context(), Ask("hello"), model.Text(func(p string) error { seen.WriteString(p); return nil }))
		return r, seen.String(), err
	}
	whole, text, err := serve(len(raw), false)
	require.NoError(t, err)
	require.Equal(t, "Grüß Gott, \U0001F41D", text)
	answered := 0
	for _, n := range boundaries(raw) {
		for _, broken := range []bool{false, true} {
			r, seen, err := serve(n, broken)
			if err == nil {
				answered++
				require.Equal(t, whole.Text, r.Text, "%q", raw[:n])
				require.Equal(t, whole.ToolCalls, r.ToolCalls, "%q", raw[:n])
				continue
			}
			require.True(t, strings.HasPrefix(text, seen), "%q", raw[:n])
			f, ok := errors.AsType[*model.Failure](err)
			require.True(t, ok, "%v", err)
			require.True(t, f.Retry, "%q: %v", raw[:n], err)
			require.Equal(t, fault.ModelCutOff, f.Fault.Code, "%q: %v", raw[:n], err)
		}
	}
	require.Positive(t, answered, "what says that it is complete is")
	require.Less(t, answered, len(boundaries(raw)))
}

// recorded returns the bytes of a reply as the server streams them.
func (h HTTP) recorded(t *testing.T, r scripted.Reply) string {
	t.Helper()
	s := h.start(t, scripted.Always(r), model.Env{})
	url := map[string]string{
		scripted.OpenAI: s.srv.OpenAIBaseURL() + "/chat/completions", scripted.Anthropic: s.srv.AnthropicBaseURL() + "/v1/messages",
	}[h.Protocol]
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url,
		strings.NewReader(`{"model":"x","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	return string(raw)
}

// boundaries returns the places at which everyCut cuts a stream.
func boundaries(raw string) []int {
	var all []int
	for n := 1; n < len(raw); n++ {
		before, after := raw[n-1], raw[n]
		if before == '\n' || after == '\n' || before == ':' && after == ' ' || after >= 0x80 || n%37 == 0 {
			all = append(all, n)
		}
	}
	return all
}
