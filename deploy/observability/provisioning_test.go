package observability_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// strict reads a file of which every field has to be known: Grafana takes no notice of
// those that it does not know.
func strict(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	require.NoError(t, d.Decode(into), file)
}

// service is what is looked at of one in docker-compose.yml.
type service struct {
	Command []string `yaml:"command"`
	Volumes []string `yaml:"volumes"`
}

func services(t *testing.T) map[string]service {
	t.Helper()
	text, err := os.ReadFile("../../docker-compose.yml")
	require.NoError(t, err)
	var file struct {
		Services map[string]service `yaml:"services"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	return file.Services
}

// inside returns the file of the repository that a container of the service sees at path.
func (s service) inside(t *testing.T, path string) string {
	t.Helper()
	for _, v := range s.Volumes {
		from, to, _ := strings.Cut(v, ":")
		to, _, _ = strings.Cut(to, ":")
		if rest, ok := strings.CutPrefix(path, to); ok && strings.HasPrefix(from, "./") && (rest == "" || rest[0] == '/') {
			return filepath.Join("../..", from, rest)
		}
	}
	require.Fail(t, "no volume has "+path)
	return ""
}

// Fields as the version of Grafana in docker-compose.yml has them.
type datasources struct {
	APIVersion int `yaml:"apiVersion"`
	Sources    []struct {
		Name      string `yaml:"name"`
		UID       string `yaml:"uid"`
		Type      string `yaml:"type"`
		Access    string `yaml:"access"`
		URL       string `yaml:"url"`
		IsDefault bool   `yaml:"isDefault"`
		Editable  bool   `yaml:"editable"`
	} `yaml:"datasources"`
}

type providers struct {
	APIVersion int `yaml:"apiVersion"`
	Providers  []struct {
		Name           string            `yaml:"name"`
		Folder         string            `yaml:"folder"`
		Type           string            `yaml:"type"`
		AllowUIUpdates bool              `yaml:"allowUiUpdates"`
		Options        map[string]string `yaml:"options"`
	} `yaml:"providers"`
}

// Grafana's provisioning names the Prometheus of the fleet, and finds the dashboards in their
// folder.
func TestGrafanaIsProvisioned(t *testing.T) {
	fleet := services(t)
	var sources datasources
	strict(t, "grafana/datasources/prometheus.yaml", &sources)
	require.Equal(t, 1, sources.APIVersion)
	require.Len(t, sources.Sources, 1)
	source := sources.Sources[0]
	require.Equal(t, "prometheus", source.Type)
	require.Equal(t, "proxy", source.Access, "browsers cannot reach it")
	require.True(t, source.IsDefault)
	at, err := url.Parse(source.URL)
	require.NoError(t, err)
	require.Equal(t, "9090", at.Port())
	require.Contains(t, fleet, at.Hostname(), "no such service")

	var boards providers
	strict(t, "grafana/dashboards/provider.yaml", &boards)
	require.Equal(t, 1, boards.APIVersion)
	require.Len(t, boards.Providers, 1)
	provider := boards.Providers[0]
	require.Equal(t, "file", provider.Type)
	require.Len(t, provider.Options, 1)
	found, err := filepath.Glob(filepath.Join(fleet["grafana"].inside(t, provider.Options["path"]), "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, found, "no dashboard below %s", provider.Options["path"])
	for _, file := range found {
		dashboard(t, file, source.UID)
	}
}

type origin struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// dashboard reads a dashboard, every field of which has to be known.
func dashboard(t *testing.T, file, source string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var board struct {
		UID, Title, Timezone, Refresh string
		Tags                          []string
		SchemaVersion, Version        int
		Editable                      bool
		Time                          struct{ From, To string }
		Templating, Annotations       struct{ List []struct{} }
		Panels                        []struct {
			ID                       int
			Type, Title, Description string
			Collapsed                bool
			Panels                   []struct{}
			GridPos                  struct{ X, Y, W, H int }
			Datasource               *origin
			FieldConfig, Options     map[string]any
			Targets                  []struct {
				RefID, Expr, LegendFormat, Format string
				Instant                           bool
				Datasource                        origin
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&board), file)
	require.NotEmpty(t, board.UID)
	want := origin{Type: "prometheus", UID: source}
	for _, p := range board.Panels {
		if p.Type == "row" {
			continue
		}
		require.Contains(t, []string{"timeseries", "stat", "table", "bargauge", "gauge", "heatmap"}, p.Type, "%s: Grafana has no such panel without a plugin", p.Title)
		require.Equal(t, &want, p.Datasource, p.Title)
		refs := map[string]bool{}
		for _, q := range p.Targets {
			require.Equal(t, want, q.Datasource, p.Title)
			require.False(t, refs[q.RefID] || q.RefID == "", "%s: the query %q", p.Title, q.RefID)
			refs[q.RefID] = true
		}
	}
}

// The other two are started with files that are there.
func TestConfigurationsAreWhereTheyAreLookedFor(t *testing.T) {
	fleet := services(t)
	// The official image's own arguments name this file.
	require.FileExists(t, fleet["prometheus"].inside(t, "/etc/prometheus/prometheus.yml"))
	require.Equal(t, "--config", fleet["otel"].Command[0])
	require.FileExists(t, fleet["otel"].inside(t, fleet["otel"].Command[1]))
}
