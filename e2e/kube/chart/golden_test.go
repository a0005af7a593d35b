package chart_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
)

func TestLint(t *testing.T) {
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			for _, m := range lint.All(folder, values(t, set), chart.Namespace, true).Messages {
				require.Less(t, m.Severity, support.WarningSev, m.Error())
			}
		})
	}
}

// TestAFreshCloneIsEnough: the chart depends on none that would have to be fetched first, so
// that "helm template" and "helm lint" take it as it lies in the repository.
func TestAFreshCloneIsEnough(t *testing.T) {
	c, err := loader.LoadDir(folder)
	require.NoError(t, err)
	require.Empty(t, c.Metadata.Dependencies)
}

// The output of the chart changes only on purpose: go test ./chart -update.
func TestGolden(t *testing.T) {
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			file := filepath.Join("testdata/golden", set+".yaml")
			got := shown(render(t, set))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(filepath.Clean(file))
			require.NoError(t, err)
			require.Equal(t, string(want), got, "if it is meant: make helm-golden")
		})
	}
}

// embedded are the parts of ConfigMaps that are files of their own, with tests of their own.
var embedded = regexp.MustCompile(`(?m)^(  [\w.-]+\.(?:conf|json|ya?ml): \|)\n(?:(?:    .*)?\n)+`)

func shown(docs []chart.Document) string {
	var b strings.Builder
	for _, d := range docs {
		text := strings.TrimSpace(d.Text) + "\n"
		if kind := d.Object.GetKind(); kind == "ConfigMap" && !strings.HasSuffix(d.Object.GetName(), "-config") {
			text = embedded.ReplaceAllString(text, "$1\n    (a file of the chart)\n")
		} else if kind == "PrometheusRule" {
			text = text[:strings.Index(text, "\nspec:")] + "\nspec: (a file of the chart)\n"
		}
		b.WriteString("---\n# " + d.Template + "\n" + text)
	}
	return b.String()
}

// The chart cannot reach files outside of its folder: it has copies.
func TestFilesAreCopies(t *testing.T) {
	same := func(source, copied string) {
		t.Helper()
		want, err := os.ReadFile(filepath.Clean(source))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Clean(copied))
		require.NoError(t, err, "make helm-files")
		require.True(t, bytes.Equal(want, got), "%s differs from %s: make helm-files", copied, source)
	}
	files := filepath.Join(root, "deploy/helm/waggle/files")
	same(filepath.Join(root, "deploy/nats/accounts.conf"), filepath.Join(files, "accounts.conf"))
	for folder, pattern := range map[string]string{
		"dashboards": "deploy/observability/grafana/dashboards/*.json",
		"alerts":     "deploy/observability/prometheus/rules/*.yml",
	} {
		sources, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		copies, err := filepath.Glob(filepath.Join(files, folder, "*.*"))
		require.NoError(t, err)
		require.Len(t, copies, len(sources), "%s: make helm-files", folder)
		for _, s := range sources {
			same(s, filepath.Join(files, folder, filepath.Base(s)))
		}
	}
}
