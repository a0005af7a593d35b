package provider_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/provider"
)

func TestCheckSaysWhatIsWrong(t *testing.T) {
	code := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/v1/models", r.URL.Path)
		require.Equal(t, "Bearer k", r.Header.Get("Authorization"))
		w.WriteHeader(code)
	}))
	c := config.Default()
	require.Nil(t, provider.Of(c), "the demo model needs none")
	c.Model, c.Providers.OpenAI.APIKey, c.Providers.OpenAI.BaseURL = "openai:x", "k", srv.URL+"/v1/"
	p := provider.Of(c)
	require.NoError(t, p.Check(t.Context()))
	code = http.StatusUnauthorized
	require.ErrorContains(t, p.Check(t.Context()), "openai refuses the key (401 Unauthorized)")
	require.Error(t, p.Works(t.Context()))
	code = http.StatusNotFound
	require.ErrorContains(t, p.Check(t.Context()), "not to the question for its models")
	require.NoError(t, p.Works(t.Context()), "not every server lists its models")
	srv.Close()
	require.ErrorContains(t, p.Works(t.Context()), "openai cannot be reached at "+srv.URL)
}
