package modeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// key is the credential of every model under test. It must never appear.
const key = "sk-test-0123456789abcdef"

// HTTP is an HTTP model provider under test.
type HTTP struct {
	Protocol string // the scripted server's name for it
	Open     func(env model.Env) (model.Model, error)
}

// subject is a model and its server.
type subject struct {
	m   model.Model
	srv *scripted.Server
}

func (h HTTP) start(t *testing.T, script scripted.Script, env model.Env) subject {
	t.Helper()
	env = env.With("openai", model.Access{Key: key}).With("anthropic", model.Access{Key: key})
	m, srv := Serve(t, h.Open, env, script)
	return subject{m, srv}
}

// Serve returns a server that plays the script, and a model that open creates from its addresses and env. Both end with the
// test.
func Serve(t *testing.T, open func(model.Env) (model.Model, error), env model.Env, script scripted.Script) (model.Model, *scripted.Server) {
	t.Helper()
	srv, err := scripted.Start("127.0.0.1:0", script)
	require.NoError(t, err)
	for provider, at := range map[string]string{"openai": srv.OpenAIBaseURL(), "anthropic": srv.AnthropicBaseURL()} {
		a := env.Access[provider]
		a.BaseURL = at
		env = env.With(provider, a)
	}
	m, err := open(env)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.Close())
		require.NoError(t, srv.Close())
	})
	return m, srv
}

// Stream answers every request with a stream of these bytes. Its content type has a parameter, as some servers send it.
func Stream(body string) scripted.Script { return scripted.Always(streamed(body, false)) }

func streamed(body string, broken bool) scripted.Reply {
	return scripted.Reply{Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, Body: body, Broken: broken}
}

// failure is a reply without an answer, with the expected failure.
type failure struct {
	name  string
	reply scripted.Reply
	env   model.Env
	code  fault.Code
	text  string        // the text that the reader received
	retry bool          // the caller may ask again
	after time.Duration // the earliest repetition
}

var hello = scripted.Stream(scripted.Text("Hel", "lo"))

func refused(status int, code fault.Code) failure {
	return failure{
		name: "status " + strconv.Itoa(status), code: code,
		reply: scripted.Fail(status, "some_error", "No, "+key),
	}
}

func transient(name string, code fault.Code, r scripted.Reply) failure {
	return failure{name: name, reply: r, code: code, retry: true}
}

func inText(name string, code fault.Code, retry bool, steps ...scripted.Step) failure {
	return failure{
		name: name + " in the text", code: code, text: "Hel", retry: retry,
		reply: scripted.Stream(append([]scripted.Step{scripted.Text("Hel")}, steps...)...),
	}
}

func page(status int) scripted.Reply {
	return scripted.Reply{
		Status: status, Header: http.Header{"Content-Type": {"text/html"}},
		Body: "<html>" + string(bytes.Repeat([]byte("trouble "), 20_000)) + "</html>",
	}
}

var failures = []failure{
	refused(400, fault.ModelRefused), refused(401, fault.ModelKeyRefused), refused(402, fault.ModelOutOfQuota), refused(403, fault.ModelKeyRefused),
	refused(404, fault.ModelNotFound), refused(413, fault.ModelInputTooLong), refused(422, fault.ModelRefused),
	{
		name: "redirect", code: fault.ModelRefused,
		reply: scripted.Reply{Status: 307, Header: http.Header{"Location": {"/v1/elsewhere"}}, Body: "moved"},
	},
	{name: "empty account", code: fault.ModelOutOfQuota, reply: scripted.Fail(429, "insufficient_quota", "pay first")},
	transient("status 429", fault.ModelRateLimited, scripted.TooMany("")),
	{
		name: "status 429 with Retry-After", reply: scripted.TooMany("7"), code: fault.ModelRateLimited,
		retry: true, after: 7 * time.Second,
	},
	transient("status 529", fault.ModelBusy, scripted.Fail(529, "overloaded_error", "later")),
	transient("status 500", fault.ModelFailed, scripted.Fail(500, "api_error", "oops")),
	transient("status 503 with a page", fault.ModelFailed, page(503)),
	transient("status 408", fault.ModelFailed, scripted.Fail(408, "timeout_error", "too slow")),
	transient("cut", fault.ModelCutOff, scripted.Stream(scripted.Cut())),
	transient("early end", fault.ModelCutOff, scripted.Stream(scripted.End())),
	transient("cut in a call", fault.ModelCutOff, scripted.Stream(scripted.Calls(2, scripted.Call{ID: "a", Name: "t", Arguments: "{}"}), scripted.Cut())),
	transient("error event", fault.ModelBusy, scripted.Stream(scripted.Trouble("overloaded_error", "later"))),
	inText("cut", fault.ModelCutOff, true, scripted.Cut()),
	inText("early end", fault.ModelCutOff, true, scripted.End()),
	inText("bad JSON", fault.ModelBadReply, false, scripted.BadJSON()),
	inText("error event", fault.ModelFailed, true, scripted.Trouble("api_error", "Incorrect API key provided: "+key)),
	inText("rate limit event", fault.ModelRateLimited, true, scripted.Trouble("rate_limit_error", "slow down")),
	{name: "bad JSON", code: fault.ModelBadReply, reply: scripted.Stream(scripted.BadJSON())},
	{
		name: "no stream", code: fault.ModelBadReply,
		reply: scripted.Reply{Header: http.Header{"Content-Type": {"application/json"}}, Body: `{"choices":[]}`},
	},
	{
		name: "silence", code: fault.ModelTimeout, env: model.Env{FirstTimeout: 50 * time.Millisecond, IdleTimeout: 50 * time.Millisecond},
		reply: scripted.Stream(scripted.Hang()),
	},
	{
		name: "silence in the text", code: fault.ModelTimeout, text: "Hel", env: model.Env{IdleTimeout: time.Second}, // a shorter limit would end a busy machine's first word
		reply: scripted.Stream(scripted.Text("Hel"), scripted.Hang()),
	},
}

// fails checks a failure: one request, the text so far, and the advice for the caller. The same model answers the next
// request.
func (h HTTP) fails(t *testing.T, f failure) {
	var over atomic.Bool
	s := h.start(t, func(*scripted.Exchange) scripted.Reply {
		if over.Load() {
			return hello
		}
		return f.reply
	}, f.env)
	ctx, cancel := context.WithTimeout(t.Context(), 2*bound)
	defer cancel()
	var seen string
	r, err := s.m.Generate(ctx, Ask("hello"), model.Text(func(p string) error { seen += p; return nil }))
	require.Equal(t, f.text, seen)
	over.Store(true)
	require.Len(t, s.srv.Exchanges(), 1, "the caller repeats requests, not the model")
	failed, ok := errors.AsType[*model.Failure](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, f.code, failed.Fault.Code, "%v", err)
	require.Equal(t, f.retry, failed.Retry)
	require.Equal(t, f.after, failed.After)
	require.ErrorIs(t, err, fault.New(f.code))
	require.NotContains(t, err.Error(), key)
	require.Less(t, len(err.Error()), 2_000)
	require.NotContains(t, fmt.Sprint(failed.Said), key)
	require.NotEmpty(t, failed.Said.Message)
	require.Equal(t, fault.Lookup(f.code).Message, fault.From(err, "").Public(), "nothing of the provider's reaches clients")
	require.Empty(t, r)
	require.Equal(t, "Hello", s.answers(t))
}

// answers returns the text of the next answer. A model with a short timeout is asked until a busy machine is fast enough for it.
func (s subject) answers(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	for {
		r, err := Generate(ctx, t, s.m, Ask("hello"))
		if !errors.Is(err, fault.New(fault.ModelTimeout)) || ctx.Err() != nil {
			require.NoError(t, err)
			return r.Text
		}
	}
}

// held starts a model whose provider falls silent after its first word.
func (h HTTP) held(t *testing.T) subject {
	t.Helper()
	return h.start(t, scripted.Always(scripted.Stream(scripted.Text("Hel"), scripted.Hang())), model.Env{})
}

// gone waits until the server has seen the client close its n-th request.
func (s subject) gone(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	x, err := s.srv.Exchange(ctx, n)
	require.NoError(t, err)
	select {
	case <-x.Gone():
	case <-ctx.Done():
		require.Fail(t, "the request is still open")
	}
}

func (h HTTP) cancel(t *testing.T) {
	s := h.held(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	text := make(chan string, 1)
	failed := make(chan error, 1)
	go func() {
		_, err := s.m.Generate(ctx, Ask("hello"), model.Text(func(p string) error { text <- p; return nil }))
		failed <- err
	}()
	require.Equal(t, "Hel", <-text)
	cancel(context.Canceled) // while the call waits for the provider
	select {
	case err := <-failed:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(bound):
		require.Fail(t, "the call goes on")
	}
	s.gone(t, 1)
	require.Len(t, s.srv.Exchanges(), 1)
}

func (h HTTP) deadline(t *testing.T) {
	s := h.held(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := s.m.Generate(ctx, Ask("hello"), model.Text(func(string) error { return nil }))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, fault.New(fault.ModelTimeout))
	for n := range s.srv.Exchanges() { // without a request if the machine was too busy to connect in time
		s.gone(t, n+1)
	}
}

func (h HTTP) reader(t *testing.T) {
	s := h.held(t)
	_, err := s.m.Generate(t.Context(), Ask("hello"), model.Text(func(string) error { return context.DeadlineExceeded }))
	require.Equal(t, context.DeadlineExceeded, err)
	s.gone(t, 1)
}

func (h HTTP) noServer(t *testing.T) {
	s := h.start(t, scripted.Smart(), model.Env{})
	require.NoError(t, s.srv.Close())
	_, err := s.m.Generate(t.Context(), Ask("hello"), model.Text(func(string) error { return nil }))
	require.ErrorIs(t, err, fault.New(fault.ModelFailed))
	require.Contains(t, err.Error(), "refused", "the log says why")
}

func (h HTTP) empty(t *testing.T) {
	for _, said := range [][]string{nil, {"\n\n"}, {" ", "\t"}} {
		s := h.start(t, scripted.Always(scripted.Stream(scripted.Text(said...))), model.Env{})
		_, err := s.m.Generate(t.Context(), Ask("hello"), model.Listener{})
		failed, ok := errors.AsType[*model.Failure](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, fault.ModelNoAnswer, failed.Fault.Code)
		require.True(t, failed.Retry && failed.Once, "a second request is worth a try, a third is not")
	}
}

func (h HTTP) slow(t *testing.T) {
	words := scripted.Words("one token at a time")
	s := h.start(t, scripted.Always(scripted.Stream(scripted.Every(20*time.Millisecond, words...))), model.Env{})
	var got []string
	_, err := s.m.Generate(t.Context(), Ask("hello"), model.Text(func(p string) error { got = append(got, p); return nil }))
	require.NoError(t, err)
	require.Equal(t, words, got, "each token is passed on by itself")
}

func (h HTTP) invalidArguments(t *testing.T) {
	s := h.start(t, scripted.Always(scripted.Stream(scripted.Calls(3,
		scripted.Call{ID: "a", Name: "workspace_read_file", Arguments: `{"path": "notes.md`}))), model.Env{})
	req := Ask("hello")
	r := generate(t, s.m, req)
	require.Equal(t, `"{\"path\": \"notes.md"`, string(r.ToolCalls[0].Arguments))
	require.Contains(t, r.ToolCalls[0].Invalid, "not valid JSON")
	generate(t, s.m, Answer(req, r, func(event.ToolCall) (string, bool) { return "no object", true }))
	sent := s.srv.Exchanges()[1].Prompt.Messages[1].ToolCalls
	require.JSONEq(t, `{"invalid_arguments":"{\"path\": \"notes.md"}`, string(sent[0].Arguments))
}

func (h HTTP) noArguments(t *testing.T) {
	s := h.start(t, scripted.Always(scripted.Stream(scripted.Calls(0, scripted.Call{ID: "a", Name: "t"}))), model.Env{})
	r := generate(t, s.m, Ask("hello"))
	require.JSONEq(t, `{}`, string(r.ToolCalls[0].Arguments))
}

func (h HTTP) ids(t *testing.T) {
	s := h.start(t, scripted.Always(scripted.Stream(scripted.Calls(0,
		scripted.Call{Name: "t", Arguments: "{}"}, scripted.Call{ID: "same", Name: "t", Arguments: `{"n":1}`},
		scripted.Call{ID: "same", Name: "t", Arguments: `{"n":2}`}))), model.Env{})
	req := Ask("hello")
	r := generate(t, s.m, req)
	require.Equal(t, []string{"new-1", "same", "new-2"}, []string{r.ToolCalls[0].ID, r.ToolCalls[1].ID, r.ToolCalls[2].ID})
	r = generate(t, s.m, Answer(req, r, func(event.ToolCall) (string, bool) { return "ok", false }))
	require.Equal(t, "new-4", r.ToolCalls[1].ID, "taken by an earlier answer")
}

func (h HTTP) noUsage(t *testing.T) {
	s := h.start(t, scripted.Always(hello), model.Env{})
	r := generate(t, s.m, Ask("hello"))
	require.Equal(t, h.Protocol == scripted.Anthropic, r.Usage.Known, "one protocol always counts, the other says nothing")
}

func (h HTTP) length(t *testing.T) {
	reason := map[string]string{scripted.OpenAI: "length", scripted.Anthropic: "max_tokens"}[h.Protocol]
	s := h.start(t, scripted.Always(scripted.Stream(scripted.Text("Hel"), scripted.Finish(reason))), model.Env{})
	req := Ask("hello")
	req.MaxTokens = 77
	require.Equal(t, model.StopLength, generate(t, s.m, req).StopReason)
	x := s.srv.Exchanges()[0]
	require.Equal(t, 77, x.Prompt.MaxTokens)
	require.Equal(t, req.System, x.Prompt.System)
	require.Len(t, x.Prompt.Tools, len(req.Tools))
	require.JSONEq(t, string(req.Tools[1].InputSchema), string(x.Prompt.Tools[1].InputSchema))
}

func (h HTTP) textAndCalls(t *testing.T) {
	s := h.start(t, scripted.Always(scripted.Stream(scripted.Text("Let me ", "see."),
		scripted.Calls(1, scripted.Call{ID: "a", Name: "t", Arguments: `{"k":"é"}`}, scripted.Call{ID: "b", Name: "u", Arguments: `{}`}),
		scripted.Usage(3, 4))), model.Env{})
	r := generate(t, s.m, Ask("hello"))
	require.Equal(t, "Let me see.", r.Text)
	require.Equal(t, []event.ToolCall{
		{ID: "a", Name: "t", Arguments: []byte(`{"k":"é"}`)}, {ID: "b", Name: "u", Arguments: []byte(`{}`)},
	}, r.ToolCalls)
	require.Equal(t, model.Usage{InputTokens: 3, OutputTokens: 4, Known: true}, r.Usage)
}

// dates checks that the model understands a date: a past one causes no wait.
func (h HTTP) dates(t *testing.T) {
	past := scripted.TooMany(time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
	ahead := scripted.TooMany(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	s := h.start(t, scripted.Sequence(past, ahead), model.Env{})
	for _, want := range []bool{false, true} {
		_, err := s.m.Generate(t.Context(), Ask("hello"), model.Text(func(string) error { return nil }))
		failed, ok := errors.AsType[*model.Failure](err)
		require.True(t, ok, "%v", err)
		require.True(t, failed.Retry)
		require.Equal(t, want, failed.After > 30*time.Minute)
	}
}

func (h HTTP) addresses(t *testing.T) {
	for _, bad := range []string{"localhost:8000", "ftp://x/v1", "/v1", "http://", "%zz"} {
		_, err := h.Open(model.Env{}.With("openai", model.Access{Key: key, BaseURL: bad}).With("anthropic", model.Access{Key: key, BaseURL: bad}))
		require.Error(t, err, bad)
	}
	_, err := h.Open(model.Env{})
	require.ErrorContains(t, err, "_API_KEY is not set")
}
