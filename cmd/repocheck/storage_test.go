package repocheck

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestTheStreamsOfTheChartFitIntoAServer: a server that may store as much as those of the Helm chart takes all streams with the
// bounds of the chart, which it reserves. So it is with the smallest values that the tests of the chart have.
func TestTheStreamsOfTheChartFitIntoAServer(t *testing.T) {
	t.Parallel()
	const small = "e2e/kube/chart/testdata/values/minimal"
	for name, overlay := range map[string]struct{ chart, servers []string }{
		"default": {},
		"minimal": {[]string{small + ".yaml"}, []string{small + "-nats.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var chart struct {
				Streams struct {
					Partitions subject.Partitions `yaml:"partitions"`
					Events     int64              `yaml:"eventMaxBytes"`
					Objects    int64              `yaml:"objectMaxBytes"`
				} `yaml:"streams"`
			}
			var servers struct {
				Config struct {
					JetStream struct {
						FileStore struct {
							MaxSize string `yaml:"maxSize"`
						} `yaml:"fileStore"`
					} `yaml:"jetstream"`
				} `yaml:"config"`
			}
			for _, path := range append([]string{"deploy/helm/waggle/values.yaml"}, overlay.chart...) {
				readYAML(t, path, &chart)
			}
			for _, path := range append([]string{"deploy/helm/nats.yaml"}, overlay.servers...) {
				readYAML(t, path, &servers)
			}
			topology := bus.DefaultTopology()
			topology.EventMaxBytes, topology.ObjectMaxBytes = chart.Streams.Events, chart.Streams.Objects
			require.Positive(t, topology.EventMaxBytes)
			url := storing(t, servers.Config.JetStream.FileStore.MaxSize)
			require.NoError(t, bus.Bootstrap(t.Context(), bustest.DialPartitions(t, url, chart.Streams.Partitions), topology))
		})
	}
}

// storing returns the address of a server that may store so much.
func storing(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "port: -1\njetstream {store_dir: %q, max_file_store: %s}\n", dir, size), 0o600))
	o, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	require.Positive(t, o.JetStreamMaxStore)
	o.NoSigs = true
	s, err := server.NewServer(o)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(bustest.MaxWait))
	return s.ClientURL()
}
