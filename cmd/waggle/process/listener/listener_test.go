package listener_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/process/listener"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
)

func TestComponents(t *testing.T) {
	t.Run("health", func(t *testing.T) {
		lifecycletest.Exercise(t, func() lifecycle.Component {
			return listener.NewHealth("127.0.0.1:0", func() error { return nil })
		})
	})
	t.Run("telemetry", func(t *testing.T) {
		lifecycletest.Exercise(t, func() lifecycle.Component { return listener.NewTelemetry("127.0.0.1:0", prometheus.NewRegistry()) })
	})
}

func TestHealthSaysWhetherTheProcessCanWork(t *testing.T) {
	var bus error
	h := listener.NewHealth("127.0.0.1:0", func() error { return bus })
	require.NoError(t, h.Start(t.Context()))
	defer h.Stop()
	get := func(path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Addr().String()+path, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b)
	}
	code, _ := get("/livez")
	require.Equal(t, 200, code)
	code, _ = get("/readyz")
	require.Equal(t, 200, code)
	code, _ = get("/metrics")
	require.Equal(t, 404, code)
	bus = errors.New("not connected to NATS")
	code, text := get("/readyz")
	require.Equal(t, 503, code)
	require.Contains(t, text, "not connected to NATS")
	bus = nil
	require.NoError(t, h.Drain(t.Context()))
	code, _ = get("/readyz")
	require.Equal(t, 503, code, "a draining process is alive and not ready")
	code, _ = get("/livez")
	require.Equal(t, 200, code)
	http.DefaultClient.CloseIdleConnections()
}
