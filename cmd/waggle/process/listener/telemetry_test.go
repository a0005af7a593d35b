package listener_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/process/listener"
	"github.com/waggle-dev/waggle/internal/telemetry"
)

// TestTelemetryIsForPrograms: metrics and profiles for operators, and nothing for web pages or rebound names.
func TestTelemetryIsForPrograms(t *testing.T) {
	reg := prometheus.NewRegistry()
	require.NoError(t, telemetry.Register(reg, "the test", prometheus.NewGauge(prometheus.GaugeOpts{Name: "waggle_test", Help: "Of this test."})))
	h := listener.NewTelemetry("127.0.0.1:0", reg)
	require.NoError(t, h.Start(t.Context()))
	defer h.Stop()
	defer http.DefaultClient.CloseIdleConnections()
	get := func(path string, header ...string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Addr().String()+path, nil)
		require.NoError(t, err)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		if host := req.Header.Get("Host"); host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
		return resp.StatusCode, string(b)
	}
	for path, want := range map[string]int{
		"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/symbol": 200,
		"/debug/pprof/cmdline": 404, "/": 404, "/ws": 404, "/api/v1/sessions": 404,
	} {
		code, _ := get(path)
		require.Equal(t, want, code, path)
	}
	_, text := get("/metrics")
	require.Contains(t, text, "waggle_test 0")
	for name, header := range map[string][]string{
		"a page of another port":  {"Origin", "http://localhost:3000"},
		"an image":                {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
		"a frame of another port": {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Dest", "iframe"},
		"a rebound name":          {"Host", "evil.example"},
	} {
		for _, path := range []string{"/metrics", "/debug/pprof/profile?seconds=1"} {
			code, text := get(path, header...)
			require.Equal(t, http.StatusForbidden, code, "%s: %s", name, path)
			require.NotContains(t, text, "waggle_")
		}
	}
}
