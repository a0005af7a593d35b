package scripted_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/services/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ask = `{"model":"x","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`

func start(t *testing.T, s scripted.Script) (*scripted.Server, *http.Client) {
	t.Helper()
	srv, err := scripted.Start("127.0.0.1:0", s)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		require.NoError(t, srv.Close())
	})
	return srv, client
}

// answer holds the received part of a response.
type answer struct {
	status int
	header http.Header
	body   io.Reader
}

func post(ctx context.Context, t *testing.T, c *http.Client, url, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	res, err := c.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return answer{res.StatusCode, res.Header, res.Body}
}

// The bytes on the wire, as both vendors document them.
func TestWire(t *testing.T) {
	srv, c := start(t, scripted.Always(scripted.Stream(scripted.Text("Hi"),
		scripted.Calls(0, scripted.Call{ID: "a", Name: "f", Arguments: `{"n":1}`}), scripted.Usage(1, 2))))
	for url, want := range map[string]string{
		srv.OpenAIBaseURL() + "/chat/completions": `data: {"choices":[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}],"created":1,"id":"scripted_N","model":"x","object":"chat.completion.chunk"}

data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":null,"index":0}],"created":1,"id":"scripted_N","model":"x","object":"chat.completion.chunk"}

data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"","name":"f"},"id":"a","index":0,"type":"function"}]},"finish_reason":null,"index":0}],"created":1,"id":"scripted_N","model":"x","object":"chat.completion.chunk"}

data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"n\":1}"},"index":0}]},"finish_reason":null,"index":0}],"created":1,"id":"scripted_N","model":"x","object":"chat.completion.chunk"}

data: {"choices":[{"delta":{},"finish_reason":"tool_calls","index":0}],"created":1,"id":"scripted_N","model":"x","object":"chat.completion.chunk"}

data: {"choices":[],"created":1,"id":"scripted_N","model":"x","object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":1,"total_tokens":3}}

data: [DONE]

`,
		srv.AnthropicBaseURL() + "/v1/messages": `event: message_start
data: {"message":{"content":[],"id":"scripted_N","model":"x","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":{"input_tokens":0,"output_tokens":0}},"type":"message_start"}

event: content_block_start
data: {"content_block":{"text":"","type":"text"},"index":0,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"text":"Hi","type":"text_delta"},"index":0,"type":"content_block_delta"}

event: content_block_stop
data: {"index":0,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"id":"a","input":{},"name":"f","type":"tool_use"},"index":1,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"partial_json":"{\"n\":1}","type":"input_json_delta"},"index":1,"type":"content_block_delta"}

event: content_block_stop
data: {"index":1,"type":"content_block_stop"}

event: message_delta
data: {"delta":{"stop_reason":"tool_use","stop_sequence":null},"type":"message_delta","usage":{"input_tokens":1,"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`,
	} {
		res := post(t.Context(), t, c, url, ask)
		require.Equal(t, http.StatusOK, res.status)
		require.Equal(t, "text/event-stream", res.header.Get("Content-Type"))
		b, err := io.ReadAll(res.body)
		require.NoError(t, err)
		got := strings.NewReplacer("scripted_1", "scripted_N", "scripted_2", "scripted_N").Replace(string(b))
		require.Equal(t, want, got)
	}
	require.Len(t, srv.Exchanges(), 2)
	require.Equal(t, "hello", srv.Exchanges()[1].Prompt.Messages[0].Content)
}

func TestGateAndGone(t *testing.T) {
	gate := make(chan struct{})
	srv, c := start(t, scripted.Always(scripted.Stream(scripted.Text("a"), scripted.Gate(gate), scripted.Text("b"))))
	ctx, cancel := context.WithCancel(t.Context())
	first := post(ctx, t, c, srv.OpenAIBaseURL()+"/chat/completions", ask)
	second := post(t.Context(), t, c, srv.OpenAIBaseURL()+"/chat/completions", ask)
	x, err := srv.Exchange(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, first.status)
	cancel()
	<-x.Gone()
	<-x.Done()
	close(gate)
	b, err := io.ReadAll(second.body)
	require.NoError(t, err)
	require.Contains(t, string(b), `"content":"b"`)
	y, err := srv.Exchange(t.Context(), 2)
	require.NoError(t, err)
	<-y.Done()
	select {
	case <-y.Gone():
		require.Fail(t, "an answered request is not gone")
	default:
	}
}

func TestExchangeWaits(t *testing.T) {
	srv, c := start(t, scripted.Smart())
	got := make(chan *scripted.Exchange, 1)
	go func() {
		x, err := srv.Exchange(t.Context(), 1)
		if err == nil {
			got <- x
		}
		close(got)
	}()
	post(t.Context(), t, c, srv.OpenAIBaseURL()+"/chat/completions", ask)
	require.Equal(t, "x", (<-got).Model)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := srv.Exchange(ctx, 2)
	require.ErrorIs(t, err, context.Canceled)
}

// Close ends active answers, and does not count them as closed by their clients.
func TestCloseEndsAnswers(t *testing.T) {
	srv, c := start(t, scripted.Always(scripted.Stream(scripted.Hang())))
	post(t.Context(), t, c, srv.OpenAIBaseURL()+"/chat/completions", ask)
	require.NoError(t, srv.Close())
	x := srv.Exchanges()[0]
	<-x.Done()
	select {
	case <-x.Gone():
		require.Fail(t, "the client was there to the end")
	default:
	}
}

func TestRefusesWhatItCannotRead(t *testing.T) {
	srv, c := start(t, scripted.Smart())
	for _, body := range []string{
		"", "{", `{"stream":false}`, `{"stream":true,"messages":[{"content":7}]}`,
		`{"stream":true,"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"{"}}]}]}`,
	} {
		require.Equal(t, http.StatusBadRequest, post(t.Context(), t, c, srv.OpenAIBaseURL()+"/chat/completions", body).status, body)
	}
	require.Equal(t, http.StatusBadRequest, post(t.Context(), t, c, srv.AnthropicBaseURL()+"/v1/messages", `{"stream":true}`).status)
	require.Equal(t, http.StatusNotFound, post(t.Context(), t, c, srv.OpenAIBaseURL()+"/embeddings", ask).status)
	require.Empty(t, srv.Exchanges())
}
