package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
