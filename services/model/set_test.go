package model_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/anthropic"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/openai"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestWhoServesWhat: a specification names a provider, or a model of any provider.
func TestWhoServesWhat(t *testing.T) {
	for _, p := range []model.Provider{demo.Provider(), openai.Provider(openai.Standard), anthropic.Provider()} {
		provider, ok := model.Provided(p.Prefix)
		require.True(t, ok)
		require.Equal(t, p.Prefix, provider)
	}
	for spec, want := range map[string]bool{
		"": true, "gpt-y": true, "llama3:8b": true, "openai": true, "openai:gpt-y": true, "demo": true,
		"anthropic": false, "anthropic:claude-x": false,
	} {
		require.Equal(t, want, model.Serves("openai:gpt-x", []string{"demo", "openai"}, spec), spec)
	}
	require.True(t, model.Serves("demo", []string{"anthropic", "demo"}, "anthropic:claude-x"))
	require.False(t, model.Serves("demo", []string{"anthropic", "demo"}, "anthropic"), "it does not say which")
	require.False(t, model.Serves("openai:x", nil, "demo"))
}

// TestASetAsksTheProviderThatIsNamed: and the standard one for everything else.
func TestASetAsksTheProviderThatIsNamed(t *testing.T) {
	llm, err := scripted.Start("127.0.0.1:0", scripted.Sequence(
		scripted.Stream(scripted.Text("one"), scripted.Usage(1, 1)), scripted.Stream(scripted.Text("two"), scripted.Usage(1, 1)),
	))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, llm.Close()) })
	other, err := model.Any(openai.Provider(openai.Standard), model.Env{}.With("openai", model.Access{BaseURL: llm.OpenAIBaseURL()}))
	require.NoError(t, err)
	_, err = model.Any(anthropic.Provider(), model.Env{})
	require.ErrorContains(t, err, "ANTHROPIC_API_KEY is not set")
	set := model.NewSet(demo.New())
	set.Add(other)
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	require.Equal(t, "demo", set.Name())
	require.Equal(t, []string{"demo", "openai"}, model.Providers(set))

	ask := func(name string) (model.Reply, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return set.Generate(ctx, model.Request{
			Model: name, Messages: []model.Message{{Role: model.RoleUser, Content: "What is 2 + 2?"}}, NewID: func() string { return "c" }, Now: time.Now(),
		}, model.Text(func(string) error { return nil }))
	}
	for name, asked := range map[string]string{"openai:gpt-y": "gpt-y", "openai:org/m:latest": "org/m:latest"} {
		r, err := ask(name)
		require.NoError(t, err)
		require.Contains(t, []string{"one", "two"}, r.Text)
		x, err := llm.Exchange(t.Context(), len(llm.Exchanges()))
		require.NoError(t, err)
		require.Equal(t, asked, x.Model)
		require.Equal(t, name, model.Asked(set, name))
	}
	for _, name := range []string{"", "demo"} {
		r, err := ask(name)
		require.NoError(t, err)
		require.Contains(t, r.Text, "4")
		require.Equal(t, "demo", model.Asked(set, name))
	}
	_, err = ask("anthropic:claude-x")
	require.ErrorIs(t, err, fault.New(fault.ModelNotFound))
	require.ErrorContains(t, err, "anthropic:claude-x")
	require.Len(t, llm.Exchanges(), 2)
}
