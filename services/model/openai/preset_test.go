package openai_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/openai"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// Each preset opens with its key alone, or without one, and says which setting is missing.
func TestPresets(t *testing.T) {
	for _, p := range openai.Presets() {
		_, known := model.Provided(p.Prefix + ":x")
		require.True(t, known, p.Prefix)
		_, err := openai.New(p, "x", model.Env{})
		switch {
		case p.Keyless:
			require.NoError(t, err)
		case p.BaseURL == "":
			require.ErrorContains(t, err, p.Env+"_BASE_URL is not set")
		default:
			require.ErrorContains(t, err, p.Env+"_API_KEY is not set")
		}
		at := ""
		if p.BaseURL == "" {
			at = "https://name.openai.azure.com"
		}
		m, err := openai.New(p, "x", model.Env{}.With(p.Prefix, model.Access{Key: "k", BaseURL: at}))
		require.NoError(t, err)
		require.Equal(t, p.Prefix+":x", m.Name())
		require.NoError(t, m.Close())
	}
}

// The settings of a provider reach its server.
func TestSettingsOfAProvider(t *testing.T) {
	type got struct {
		Path, Query string
		Header      http.Header
		Body        map[string]json.RawMessage
	}
	seen := make(chan got, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := got{Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header}
		_ = json.NewDecoder(r.Body).Decode(&g.Body)
		seen <- g
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(text("Hi") + "\n" + done + "\n"))
	}))
	defer srv.Close()
	for _, c := range []struct {
		preset openai.Preset
		access model.Access
		check  func(t *testing.T, g got)
	}{
		{openai.Azure, model.Access{Key: "k", BaseURL: srv.URL}, func(t *testing.T, g got) {
			require.Equal(t, "/openai/v1/chat/completions", g.Path)
			require.Equal(t, "k", g.Header.Get("Api-Key"))
			require.Empty(t, g.Header.Get("Authorization"))
			require.Contains(t, g.Body, "max_completion_tokens")
		}},
		{openai.Azure, model.Access{Key: "k", BaseURL: srv.URL + "/openai/deployments/d", Query: "api-version=2024-10-21"}, func(t *testing.T, g got) {
			require.Equal(t, "/openai/deployments/d/chat/completions", g.Path)
			require.Equal(t, "api-version=2024-10-21", g.Query)
		}},
		{openai.Standard, model.Access{Key: "k", BaseURL: srv.URL + "/v1?tenant=a", KeyHeader: "X-Gateway-Key", Headers: []string{"X-Org: o", "X-Team:t"}, Body: `{"reasoning_effort":"low"}`}, func(t *testing.T, g got) {
			require.Equal(t, "tenant=a", g.Query)
			require.Equal(t, "k", g.Header.Get("X-Gateway-Key"))
			require.Equal(t, "o", g.Header.Get("X-Org"))
			require.Equal(t, "t", g.Header.Get("X-Team"))
			require.JSONEq(t, `"low"`, string(g.Body["reasoning_effort"]))
			require.Contains(t, g.Body, "max_tokens")
		}},
		{openai.Standard, model.Access{BaseURL: "http://model.invalid/v1", Proxy: srv.URL}, func(t *testing.T, g got) {
			require.Equal(t, "/v1/chat/completions", g.Path, "through the proxy")
		}},
	} {
		m, err := openai.New(c.preset, "x", model.Env{}.With(c.preset.Prefix, c.access))
		require.NoError(t, err)
		req := modeltest.Ask("hello")
		req.MaxTokens = 9
		_, err = modeltest.Generate(t.Context(), t, m, req)
		require.NoError(t, err)
		c.check(t, <-seen)
		require.NoError(t, m.Close())
	}
	for _, bad := range []model.Access{
		{Key: "k", Body: "[]"}, {Key: "k", Body: `{"messages":[]}`}, {Key: "k", Headers: []string{"no colon"}}, {Key: "k", Proxy: "ftp://x"}, {Key: "k", Query: "%zz"}, {Key: "k", BaseURL: "host"},
	} {
		_, err := openai.New(openai.Standard, "x", model.Env{}.With("openai", bad))
		require.ErrorContains(t, err, "providers.openai: ")
	}
}

// Mistral gets ids of nine letters and digits, an assistant's message between a tool and a user, and other servers ids of at
// most 40 characters, the same for a call and its result.
func TestIDsOfCalls(t *testing.T) {
	for prefix, form := range map[string]string{"mistral": `^[a-zA-Z0-9]{9}$`, "openai": `^[a-zA-Z0-9_-]{1,40}$`} {
		srv, err := scripted.Start("127.0.0.1:0", scripted.Always(scripted.Stream(scripted.Text("Hi"))))
		require.NoError(t, err)
		preset := map[string]openai.Preset{"mistral": openai.Mistral, "openai": openai.Standard}[prefix]
		m, err := openai.New(preset, "x", model.Env{}.With(prefix, model.Access{BaseURL: srv.OpenAIBaseURL()}))
		require.NoError(t, err)
		req := modeltest.Ask("read")
		req = modeltest.Answer(req, model.Reply{ToolCalls: []event.ToolCall{
			{ID: "call_0192f0c1-7e5b-7c3f-8a44-3f1e0f6a9d21", Name: "f", Arguments: []byte("{}")}, {ID: "functions.f:0", Name: "f", Arguments: []byte("{}")},
		}}, done1)
		req.Messages = append(req.Messages, model.Message{Role: model.RoleUser, Content: "go on"})
		_, err = modeltest.Generate(t.Context(), t, m, req)
		require.NoError(t, err)
		p := srv.Exchanges()[0].Prompt
		ids := map[string]bool{}
		for _, msg := range p.Messages {
			for _, c := range msg.ToolCalls {
				require.Regexp(t, regexp.MustCompile(form), c.ID)
				ids[c.ID] = true
			}
			if msg.Role == model.RoleTool {
				require.True(t, ids[msg.ToolCallID])
			}
		}
		require.Len(t, ids, 2)
		require.Equal(t, prefix == "mistral", p.Messages[len(p.Messages)-2].Role == model.RoleAssistant)
		require.NoError(t, m.Close())
		require.NoError(t, srv.Close())
	}
}
