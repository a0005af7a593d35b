package config

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/tools/mcp"
)

func TestOAuthOfAServer(t *testing.T) {
	file := write(t, `
tools:
  servers:
    - {name: plain, url: "https://x.example/mcp"}
    - name: safe
      url: https://x.example/mcp?key=canary
      oauth: {client_id: waggle, client_secret: canary, scopes: [a, b], token_url: "https://as.example/token?x=canary"}
    - name: file
      url: http://127.0.0.1:1/mcp
      oauth: {client_id: waggle, client_secret_file: /run/secrets/client}
    - {name: other, command: [x], paths: {read: [/srv]}}
`)
	l, err := Load(Input{File: file})
	require.NoError(t, err)
	require.NoError(t, l.Validate(everything))
	require.Nil(t, l.Tools.Servers[0].OAuth.Client())
	require.Equal(t, &mcp.OAuth{ClientID: "waggle", Secret: "canary", Scopes: []string{"a", "b"}, TokenURL: "https://as.example/token?x=canary"}, l.Tools.Servers[1].OAuth.Client())
	require.Equal(t, "/run/secrets/client", l.Tools.Servers[2].OAuth.Client().File)
	require.True(t, l.FileHoldsSecrets())

	var out bytes.Buffer
	require.NoError(t, l.Print(&out))
	require.Contains(t, out.String(), "client_id: waggle")
	require.NotContains(t, out.String(), "canary")
	l.Tools.Servers[3].Paths.Read = []string{"/run/secrets"}
	require.ErrorContains(t, l.Validate(everything), "tools.servers[3].paths.read: /run/secrets would expose /run/secrets/client")
}

func TestValidateNamesTheOptionOfOAuth(t *testing.T) {
	for text, want := range map[string]string{
		"{command: [x], oauth: {client_id: c, client_secret: s}}":                                                      "tools.servers[0].oauth: applies to servers with a url",
		"{url: 'https://x.example', oauth: {client_secret: s}}":                                                        "tools.servers[0].oauth.client_id:",
		"{url: 'https://x.example', oauth: {client_id: c}}":                                                            "tools.servers[0].oauth.client_secret:",
		"{url: 'https://x.example', oauth: {client_id: c, client_secret: canary, client_secret_file: f}}":              "tools.servers[0].oauth.client_secret:",
		"{url: 'https://x.example', oauth: {client_id: c, client_secret: canary, token_url: 'http://as.example/t'}}":   "tools.servers[0].oauth.token_url:",
		"{url: 'http://x.example', oauth: {client_id: c, client_secret: canary}}":                                      "tools.servers[0].url: must be https",
		"{url: 'https://x.example', headers: {authorization: x}, oauth: {client_id: c, client_secret: canary}}":        "tools.servers[0].oauth: the token is sent as Authorization",
		"{url: 'https://canary:canary@x.example', oauth: {client_id: c, client_secret: canary, token_url: canary://}}": "tools.servers[0].oauth: the token is sent as Authorization",
	} {
		text = "tools: {servers: [{name: a, " + text[1:] + "]}"
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		err = l.Validate(everything)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "canary")
	}
}
