package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachSettingOfAProviderReachesItsModels: servers that need no key at their standard address, such as Ollama's, may have
// any one setting alone.
func TestEachSettingOfAProviderReachesItsModels(t *testing.T) {
	for name, p := range map[string]Provider{
		"api_key": {APIKey: "k"}, "base_url": {BaseURL: "http://127.0.0.1:1"}, "headers": {Headers: []Secret{"A: b"}},
		"query": {Query: "a=b"}, "key_header": {KeyHeader: "api-key"}, "proxy": {Proxy: "http://127.0.0.1:2"}, "body": {Body: `{"think":false}`},
	} {
		providers := Providers{Ollama: p}
		env := providers.Env()
		require.Len(t, env.Access, 1, name)
		require.Equal(t, p.Access(), env.Access["ollama"], name)
	}
	none := Providers{Ollama: Provider{Headers: []Secret{}}}
	require.Empty(t, none.Env().Access)
}
