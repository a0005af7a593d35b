package model_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/anthropic"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/openai"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

func open(spec string, env model.Env) (model.Model, error) {
	return model.Open(spec, env, demo.Provider(), openai.Provider(openai.Standard), anthropic.Provider())
}

func TestOpen(t *testing.T) {
	env := model.Env{}.With("openai", model.Access{Key: "sk-openai-key"}).With("anthropic", model.Access{Key: "sk-anthropic-key"})
	for _, spec := range []string{"demo", "openai:gpt-x", "openai:org/model:latest", "anthropic:claude-x"} {
		m, err := open(spec, env)
		require.NoError(t, err, spec)
		require.Equal(t, spec, m.Name())
		require.NoError(t, m.Close())
	}
	for _, spec := range []string{"", "demo:x", "demo:", "openai", "openai:", "openai: ", "gpt-x", "other:x", "Demo"} {
		_, err := open(spec, env)
		require.ErrorIs(t, err, model.ErrSpec, spec)
		require.ErrorContains(t, err, "want demo, openai:NAME, anthropic:NAME")
	}
	_, err := open("openai:x", model.Env{})
	require.ErrorContains(t, err, "OPENAI_API_KEY is not set")
	_, err = open("anthropic:x", model.Env{})
	require.ErrorContains(t, err, "ANTHROPIC_API_KEY is not set")
}

func TestEnvHidesKeys(t *testing.T) {
	env := model.Env{}.With("openai", model.Access{Key: "sk-openai-key", Headers: []string{"X-Key: sk-header"}, BaseURL: "http://me:sk-pass@host"})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		s := fmt.Sprintf(verb, env)
		require.NotContains(t, s, "sk-", verb)
	}
}

func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user pressed stop")
	cancel(why)
	err := model.Ended(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
	require.NotErrorIs(t, err, fault.New(fault.ModelTimeout))
}

// Each call is one client span with the attributes of the conventions for models and without contents of the conversation.
func TestTracing(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	srv, err := scripted.Start("127.0.0.1:0", scripted.Sequence(
		scripted.Stream(scripted.Text("Hi"), scripted.Usage(7, 9)), scripted.Fail(403, "permission_error", "no"),
		scripted.Stream(scripted.Text("Hi"), scripted.Usage(7, 9)), scripted.Fail(403, "permission_error", "no")))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	env := model.Env{}.With("openai", model.Access{Key: "k", BaseURL: srv.OpenAIBaseURL()}).With("anthropic", model.Access{Key: "k", BaseURL: srv.AnthropicBaseURL()})
	for i, provider := range []string{"openai", "anthropic"} {
		m, err := open(provider+":x", env)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		req := modeltest.Ask("what I said")
		req.MaxTokens = 50
		_, err = modeltest.Generate(t.Context(), t, m, req)
		require.NoError(t, err)
		_, err = modeltest.Generate(t.Context(), t, m, req)
		require.ErrorIs(t, err, fault.New(fault.ModelKeyRefused))
		ended := spans.Ended()
		require.Len(t, ended, 2*(i+1), "one span a call, whatever the vendor's client would add")
		checkSpan(t, ended[2*i], provider, map[string]string{
			"gen_ai.response.model": "x", "gen_ai.response.finish_reasons": `["end"]`,
			"gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "9",
		})
		checkSpan(t, ended[2*i+1], provider, map[string]string{"error.type": "MODEL_KEY_REFUSED"})
		require.Equal(t, codes.Error, ended[2*i+1].Status().Code)
	}
}

func checkSpan(t *testing.T, s trace.ReadOnlySpan, provider string, more map[string]string) {
	t.Helper()
	require.Equal(t, "chat x", s.Name())
	require.Equal(t, api.SpanKindClient, s.SpanKind())
	want := map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": "x", "gen_ai.request.max_tokens": "50",
	}
	for k, v := range more {
		want[k] = v
	}
	got := map[string]string{}
	for _, a := range s.Attributes() {
		got[string(a.Key)] = a.Value.String()
	}
	require.Equal(t, want, got)
}
