package main

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
)

func show(t *testing.T, use config.For, r process.Running, flags map[string]string) string {
	t.Helper()
	l, err := config.Load(config.Input{Flags: flags})
	require.NoError(t, err)
	require.NoError(t, l.Validate(use))
	var b strings.Builder
	banner(&b, l, use, r)
	return b.String()
}

func TestBannerSaysWhereEverythingIs(t *testing.T) {
	up := config.For{Roles: config.Roles, Embedded: true}
	running := process.Running{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9000}, NATSURL: "nats://127.0.0.1:4222", Model: "demo"}
	text := show(t, up, running, nil)
	for _, want := range []string{
		"ws://127.0.0.1:9000/ws", "nats://127.0.0.1:4222", "./data", "./workspace", "demo (offline", "nats --server nats://127.0.0.1:4222 --nkey data/nats-keys/monitor.nk sub 'live.>'", "tail",
	} {
		require.Contains(t, text, want)
	}
	require.True(t, strings.HasSuffix(strings.TrimRight(text, "\n"), "Open in a browser: http://127.0.0.1:9000/"), "the last line")
	require.NotContains(t, text, "start token", "with authentication")
	running.StartToken = "CANARY"
	require.Contains(t, show(t, up, running, nil), "start token CANARY")
	require.NotContains(t, text, "allowed_origins")
	require.Contains(t, show(t, up, running, map[string]string{"legacy": "true"}), "gateway.allowed_origins")
	require.NotContains(t, text, "--url", "the usual addresses need no flags")

	running.Addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9100}
	text = show(t, up, running, map[string]string{"addr": "127.0.0.1:9100", "nats.addr": "127.0.0.1:4333"})
	require.Contains(t, text, "chat --url ws://127.0.0.1:9100/ws")
	require.Contains(t, text, "tail --nats nats://127.0.0.1:4222")
}

func TestBannerHintsAtAModelButChoosesNone(t *testing.T) {
	agent := config.For{Roles: []string{config.RoleWorker}}
	key := map[string]string{"providers.openai.api_key": "CANARY"}
	text := show(t, agent, process.Running{Model: "demo"}, key)
	require.Contains(t, text, "--model openai:NAME")
	require.NotContains(t, text, "CANARY")
	require.NotContains(t, text, "ws://", "nothing listens")
	text = show(t, agent, process.Running{Model: "demo"}, map[string]string{"providers.anthropic.api_key": "k"})
	require.Contains(t, text, "--model anthropic:NAME")
	key["model"] = "demo"
	require.NotContains(t, show(t, agent, process.Running{Model: "demo"}, key), "--model", "demo was asked for")
	key["model"] = "openai:x"
	require.NotContains(t, show(t, agent, process.Running{Model: "openai:x"}, key), "offline")
}

func TestBannerShowsNoCredentials(t *testing.T) {
	text := show(t, config.For{Roles: []string{config.RoleSession}}, process.Running{}, map[string]string{"nats.url": "nats://me:CANARY@127.0.0.1:4222"})
	require.NotContains(t, text, "CANARY")
	require.Contains(t, text, "127.0.0.1:4222")
}
