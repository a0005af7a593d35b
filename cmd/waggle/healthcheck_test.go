package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProbe(t *testing.T) {
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte("path " + r.URL.Path + " \x1b[2J"))
	}))
	defer srv.Close()
	addr := strings.TrimPrefix(srv.URL, "http://")
	require.NoError(t, probe(t.Context(), addr, "/readyz"))
	_, port, _ := strings.Cut(addr, ":")
	require.NoError(t, probe(t.Context(), "0.0.0.0:"+port, "/readyz"), "who listens everywhere listens here")
	require.NoError(t, probe(t.Context(), ":"+port, "/readyz"))
	status = http.StatusServiceUnavailable
	err := probe(t.Context(), addr, "/readyz")
	require.ErrorContains(t, err, "503")
	require.ErrorContains(t, err, "path /readyz")
	require.NotContains(t, err.Error(), "\x1b")
	require.Error(t, probe(t.Context(), "nowhere", "/readyz"))
}

// A start that takes its time is waited for; an address that cannot be one is not.
func TestProbeUntilReady(t *testing.T) {
	t.Parallel()
	tries := atomic.Int64{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	addr := strings.TrimPrefix(srv.URL, "http://")
	require.ErrorContains(t, probeUntil(t.Context(), time.Now(), addr), "503", "without a wait it is one try")
	require.NoError(t, probeUntil(t.Context(), time.Now().Add(time.Hour), addr))
	require.EqualValues(t, 3, tries.Load())
	require.ErrorContains(t, probeUntil(t.Context(), time.Now().Add(time.Hour), "nowhere"), "addr")
}
