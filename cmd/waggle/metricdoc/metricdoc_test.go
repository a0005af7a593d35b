package metricdoc_test

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/metricdoc"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/internal/telemetry"
)

var update = flag.Bool("update", false, "write docs/generated/metrics.md")

const (
	page    = "../../../docs/generated/metrics.md"
	maxWait = 90 * time.Second
)

// The page says what a process with all roles shows after it has answered a question.
func TestThePageOfMetricsIsTheRegistrys(t *testing.T) {
	reg := telemetry.NewRegistry()
	addr := serve(t, reg)
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	require.NoError(t, chat.Ask(ctx, chat.Options{URL: "ws://" + addr + "/ws"}, "What is 6 * 7?", nil, screen(), false, io.Discard))

	used := []string{
		"waggle_gateway_connections", "waggle_gateway_frames_out_total", "waggle_log_append_seconds", "waggle_log_delivery_seconds",
		"waggle_log_events_total", "waggle_log_lag_events", "waggle_command_age_seconds", "waggle_command_handled_total",
		"waggle_worker_attempts_total", "waggle_worker_model_request_seconds", "waggle_queue_pending_commands", "waggle_stream_leader",
		"waggle_dead_letters", "waggle_bus_connected", "waggle_build_info", "waggle_service_replicas",
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		seen := families(t, reg)
		for _, name := range used {
			assert.True(c, seen[name], "%s is not measured", name)
		}
	}, maxWait, 50*time.Millisecond, "parts count when the answer is there already, and a survey comes now and then")
	telemetry.Lint(t, reg)

	all, err := metricdoc.Of(reg)
	require.NoError(t, err)
	for _, m := range all {
		require.NotContains(t, m.Labels, "tenant", m.Name)
		require.NotContains(t, m.Labels, "session", m.Name)
	}
	is := metricdoc.Page(all)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(is), 0o600))
	}
	want, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, string(want), is, `metrics have changed: in cmd, go test ./waggle/metricdoc -update`)
}

// serve runs all roles with a NATS server of their own and returns the gateway's address.
func serve(t *testing.T, reg *prometheus.Registry) string {
	l, err := config.Load(config.Input{Flags: map[string]string{
		"addr": "127.0.0.1:0", "nats.addr": "127.0.0.1:0", "data": t.TempDir(), "workspace": filepath.Join(t.TempDir(), "ws"),
	}})
	require.NoError(t, err)
	use := config.For{Roles: config.Roles, Embedded: true}
	require.NoError(t, l.Validate(use))
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan process.Running, 1), make(chan error, 1)
	go func() {
		ended <- process.Run(ctx, process.Options{
			Config: l.Config, Use: use, Version: "test", Logger: zerolog.Nop(), Registry: reg,
			Ready: func(r process.Running) { ready <- r },
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	select {
	case r := <-ready:
		return r.Addr.String()
	case err := <-ended:
		ended <- nil
		require.NoError(t, err)
	case <-time.After(maxWait):
		require.Fail(t, "the process is not ready")
	}
	return ""
}

func families(t *testing.T, reg *prometheus.Registry) map[string]bool {
	all, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]bool{}
	for _, f := range all {
		out[f.GetName()] = true
	}
	return out
}

func screen() *terminal.Screen { return terminal.NewScreen(io.Discard, io.Discard) }
