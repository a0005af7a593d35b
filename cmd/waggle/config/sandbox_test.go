package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/sandbox"
)

func TestSandboxOfAServer(t *testing.T) {
	l, err := Load(Input{File: write(t, `
tools:
  servers:
    - {name: plain, command: [x]}
    - name: full
      command: [x]
      sandbox: require
      network: true
      network_ports: [5432]
      paths: {read: [/opt/x], write: [/srv/y]}
      limits: {processes: 1, open_files: 2, memory: 3, file_size: 4, cpu: 5s}
`)})
	require.NoError(t, err)
	require.NoError(t, l.Validate(everything))
	require.Equal(t, sandbox.Settings{Mode: sandbox.Prefer, Loose: []string{"/srv/y"}}, l.Tools.SandboxOf(&l.Tools.Servers[0]), "the default confines")
	require.Equal(t, sandbox.Settings{
		Mode: sandbox.Require, Network: true, Ports: []int{5432}, Read: []string{"/opt/x"}, Write: []string{"/srv/y"},
		Limits: sandbox.Limits{Processes: 1, OpenFiles: 2, Memory: 3, FileSize: 4, CPU: 5 * time.Second},
	}, l.Tools.SandboxOf(&l.Tools.Servers[1]))
}

func TestValidateNamesTheOptionOfTheSandbox(t *testing.T) {
	for text, want := range map[string]string{
		"tools: {sandbox: maybe}":                                                                                                                "tools.sandbox:",
		"tools: {servers: [{name: a, command: [x], sandbox: maybe}]}":                                                                            "tools.servers[0]: sandbox:",
		"tools: {servers: [{name: a, command: [x], network_ports: [1]}]}":                                                                        "tools.servers[0]: network_ports:",
		"tools: {servers: [{name: a, command: [x], network: true, network_ports: [4222]}]}":                                                      "tools.servers[0].network_ports: 4222 is the port of nats.",
		"tools: {servers: [{name: a, command: [x], network: true, network_ports: [9464]}]}":                                                      "tools.servers[0].network_ports: 9464 is the port of telemetry.addr",
		"{addr: '127.0.0.1:443', tools: {servers: [{name: a, command: [x], network: true}]}}":                                                    "tools.servers[0].network: opens port 443 of addr",
		"{nats: {addr: '127.0.0.1:80'}, tools: {servers: [{name: a, command: [x], network: true}]}}":                                             "tools.servers[0].network: opens port 80 of nats.addr",
		"{nats: {url: 'wss://bus.example.org'}, tools: {servers: [{name: a, command: [x], network: true}]}}":                                     "tools.servers[0].network: opens port 443 of nats.url",
		"{nats: {url: 'nats://bus', addr: '127.0.0.1:5222'}, tools: {servers: [{name: a, command: [x], network: true, network_ports: [4222]}]}}": "tools.servers[0].network_ports: 4222 is the port of nats.url",
		"{addr: '127.0.0.1:9007', tools: {servers: [{name: a, command: [x], network: true, network_ports: [9007]}]}}":                            "tools.servers[0].network_ports: 9007 is the port of addr",
		"tools: {servers: [{name: a, command: [x], limits: {memory: -1}}]}":                                                                      "tools.servers[0]: limits:",
		"{data: /srv/w/data, tools: {servers: [{name: a, command: [x], dir: /srv/w}]}}":                                                          "tools.servers[0].dir: /srv/w would expose /srv/w/data",
		"{data: /srv/w/data, tools: {servers: [{name: a, command: [x], dir: /srv/w/data/x}]}}":                                                   "tools.servers[0].dir:",
		"tools: {servers: [{name: a, command: [x], dir: /srv/a}, {name: b, command: [x], paths: {read: [/srv/a/b]}}]}":                           "tools.servers[1].paths.read: /srv/a/b is inside /srv/a, where a could replace it",
		"{nats: {nkey: /etc/w/nk}, tools: {servers: [{name: a, command: [x], paths: {read: [/etc]}}]}}":                                          "tools.servers[0].paths.read:",
		"{session: {state_key_file: /k/state.key}, tools: {servers: [{name: a, command: [x], paths: {write: [/k]}}]}}":                           "tools.servers[0].paths.write:",
	} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		require.ErrorContains(t, l.Validate(everything), want, text)
	}
}

// A link does not hide that a folder holds secrets, and the folder of the configuration is one of those.
func TestNoServerSeesTheConfiguration(t *testing.T) {
	file := write(t, "")
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Dir(file), link))
	require.NoError(t, os.WriteFile(file, []byte("tools: {servers: [{name: a, command: [x], dir: "+link+"}]}"), 0o600))
	l, err := Load(Input{File: file})
	require.NoError(t, err)
	require.ErrorContains(t, l.Validate(everything), "tools.servers[0].dir: "+link+" would expose "+file)

	l.Tools.Servers[0].Sandbox = string(sandbox.Off)
	require.NoError(t, l.Validate(everything))
}
