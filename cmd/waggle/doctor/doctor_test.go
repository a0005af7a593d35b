package doctor

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func patient(t *testing.T, file string, flags map[string]string) Patient {
	t.Helper()
	in := config.Input{Flags: map[string]string{"workspace": t.TempDir(), "addr": "127.0.0.1:9000"}}
	if file != "" {
		in.File = filepath.Join(t.TempDir(), "waggle.yaml")
		require.NoError(t, os.WriteFile(in.File, []byte(file), 0o600))
	}
	for k, v := range flags {
		in.Flags[k] = v
	}
	l, err := config.Load(in)
	require.NoError(t, err)
	return Patient{Config: l, Probe: func(context.Context, string, string) error { return nil }}
}

func levels(f []Finding) map[string]Level {
	out := map[string]Level{}
	for _, x := range f {
		out[x.What] = x.Level
	}
	return out
}

func TestConfiguration(t *testing.T) {
	p := patient(t, "", nil)
	require.Equal(t, OK, configuration(t.Context(), p)[0].Level)
	p = patient(t, "profile: fast\n", nil)
	f := configuration(t.Context(), p)[0]
	require.Equal(t, Fail, f.Level)
	require.Contains(t, f.Is, "profile:")

	p = patient(t, "providers: {openai: {api_key: CANARY}}\n", nil)
	require.Equal(t, OK, configuration(t.Context(), p)[0].Level)
	require.NoError(t, os.Chmod(p.Config.File, 0o644))
	f = configuration(t.Context(), p)[0]
	require.Equal(t, Warn, f.Level)
	require.Contains(t, f.Do, "chmod 600")
	require.NotContains(t, f.Is+f.Do, "CANARY")
}

// In a container, a secret has the mode of the mount.
func TestSecretsOfContainersAreNotExposed(t *testing.T) {
	require.True(t, exposed("/etc/waggle.yaml", 0o644))
	require.False(t, exposed("/etc/waggle.yaml", 0o640))
	require.False(t, exposed("/run/secrets/worker.yaml", 0o644))
	require.False(t, exposed("/run/clients/gateway.yaml", 0o644))
}

func TestEnvironment(t *testing.T) {
	p := patient(t, "", nil)
	p.Environ = []string{"WAGGLE_ADDR=x", "WAGGLE_NATS=x", "WAGGLE_TOKEN=x", "PATH=x"}
	require.Empty(t, environment(t.Context(), p))
	p.Environ = append(p.Environ, "WAGGLE_ADR=x")
	require.Contains(t, environment(t.Context(), p)[0].Is, "WAGGLE_ADR")
}

func TestWorkspace(t *testing.T) {
	require.Equal(t, OK, workspace(t.Context(), patient(t, "", nil))[0].Level)
	small := patient(t, "quota: {tenant: {workspace_bytes: 4096}}\n", nil)
	require.NoError(t, os.WriteFile(filepath.Join(small.Config.Workspace, "a.txt"), []byte("x"), 0o600))
	require.Equal(t, Warn, workspace(t.Context(), small)[0].Level)
	require.Equal(t, Warn, workspace(t.Context(), patient(t, "", map[string]string{"workspace": "/does/not/exist"}))[0].Level)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, Fail, workspace(t.Context(), patient(t, "", map[string]string{"workspace": file}))[0].Level)
	require.Empty(t, workspace(t.Context(), patient(t, "", map[string]string{"tools.builtin": "false"})))
}

func TestModel(t *testing.T) {
	status := http.StatusOK
	var asked *http.Request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		w.WriteHeader(status)
	}))
	defer srv.Close()
	require.Equal(t, OK, model(t.Context(), patient(t, "", nil))[0].Level)
	require.Equal(t, Warn, model(t.Context(), patient(t, "", map[string]string{"providers.openai.api_key": "k"}))[0].Level)

	openai := map[string]string{"model": "openai:x", "providers.openai.api_key": "CANARY", "providers.openai.base_url": srv.URL + "/v1"}
	require.Equal(t, OK, model(t.Context(), patient(t, "", openai))[0].Level)
	require.Equal(t, "/v1/models", asked.URL.Path)
	require.Equal(t, "Bearer CANARY", asked.Header.Get("Authorization"))
	anthropic := map[string]string{"model": "anthropic:x", "providers.anthropic.api_key": "CANARY", "providers.anthropic.base_url": srv.URL}
	require.Equal(t, OK, model(t.Context(), patient(t, "", anthropic))[0].Level)
	require.Equal(t, "CANARY", asked.Header.Get("X-Api-Key"))

	for s, want := range map[int]Level{401: Fail, 403: Fail, 404: Warn, 500: Warn} {
		status = s
		f := model(t.Context(), patient(t, "", openai))[0]
		require.Equal(t, want, f.Level, s)
		require.NotContains(t, f.Is+f.Do, "CANARY")
	}
	openai["providers.openai.base_url"] = "http://127.0.0.1:1/v1"
	f := model(t.Context(), patient(t, "", openai))[0]
	require.Equal(t, Fail, f.Level)
	require.Contains(t, f.Do, "OPENAI_BASE_URL")
}

func TestGateway(t *testing.T) {
	p := patient(t, "", nil)
	require.Equal(t, OK, gateway(t.Context(), p)[0].Level)
	p.Probe = func(_ context.Context, _, path string) error {
		if path == "/readyz" {
			return errors.New("draining")
		}
		return nil
	}
	require.Contains(t, gateway(t.Context(), p)[0].Is, "not ready: draining")
	p.Probe = func(context.Context, string, string) error { return errors.New("refused") }
	require.Contains(t, gateway(t.Context(), p)[0].Is, "no gateway answers at")
}

func TestTheBusIsSeenThroughRealNATS(t *testing.T) {
	url, _ := bustest.Server(t)
	p := patient(t, "", map[string]string{"nats.url": url})
	got := levels(onBus(t.Context(), p))
	require.Equal(t, OK, got["NATS"])
	require.Equal(t, Warn, got["roles"])

	conn, err := bus.Connect(t.Context(), bus.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.NoError(t, bus.Bootstrap(t.Context(), conn, bus.DefaultTopology()))
	d, err := directory.Open(t.Context(), conn)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	for _, r := range config.Roles {
		lease, err := d.Join(t.Context(), directory.Member{What: directory.WhatService, Name: id.MustName(r), Instance: id.MustName("i")})
		require.NoError(t, err)
		t.Cleanup(func() { _ = lease.Leave(context.Background()) })
	}
	got = levels(onBus(t.Context(), p))
	require.Equal(t, map[string]Level{
		"NATS": OK, "streams": OK, "replicas": OK, "queues": OK, "dead letters": OK, "clock": OK, "roles": OK, "quotas": OK, "permissions": OK,
	}, got)
	_, err = conn.JS().Publish(t.Context(), "dead.worker.default.k.do_job", []byte("{}"))
	require.NoError(t, err)
	require.Equal(t, Warn, levels(onBus(t.Context(), p))["dead letters"])

	p.Config.NATS.EventMaxBytes = 1 << 20
	for _, f := range onBus(t.Context(), p) {
		if f.What == "streams" {
			require.Equal(t, Fail, f.Level)
			require.Contains(t, f.Is, "EVT_00")
		}
	}
}

func TestWriteIsHarmless(t *testing.T) {
	var b bytes.Buffer
	Write(&b, Finding{Level: Fail, What: "streams", Is: "one\x1b[2J\ntwo", Do: "do"}, false)
	require.Equal(t, "FAIL streams        one\n                    two\n                    → do\n", b.String())
}
