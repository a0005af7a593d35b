package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

func TestProbe(t *testing.T) {
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte("as it is"))
	}))
	require.NoError(t, run([]string{"healthcheck", srv.URL}))
	status = http.StatusServiceUnavailable
	require.ErrorContains(t, run([]string{"healthcheck", srv.URL}), "503 Service Unavailable: as it is")
	srv.Close()
	require.Error(t, run([]string{"healthcheck", srv.URL}))
	require.Error(t, run([]string{"healthcheck", "::"}))
}

func TestTheServerTakesItsUsualFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.conf")
	require.NoError(t, os.WriteFile(file, []byte("port: 4222\n"), 0o600))
	require.NoError(t, run([]string{"-c", file, "-t"}))
	require.NoError(t, os.WriteFile(file, []byte("port: nowhere\n"), 0o600))
	require.Error(t, run([]string{"-c", file, "-t"}))
}

// The module proxy has to serve the version that the tests run against.
func TestTheVersionIsThePinnedOne(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("..", "go.mod"))
	require.NoError(t, err)
	require.True(t, strings.Contains(string(mod), "github.com/nats-io/nats-server/v2 v"+server.VERSION+"\n"), server.VERSION)
}
