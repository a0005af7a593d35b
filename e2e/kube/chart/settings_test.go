package chart_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
)

// secretFiles stand for the Secrets that an installation brings along.
var secretFiles = map[string]string{
	"gateway.yaml": "auth: {api_keys: [{id: a, sha256: " + strings.Repeat("0", 64) + ", tenant: acme}]}\n",
	"tools.yaml":   "tools: {servers: [{name: a, url: 'https://tools.example.com/mcp'}]}\n",
}

// The program itself accepts the settings of every pod: its arguments, its environment
// and the files that are mounted.
func TestTheProgramAcceptsEverySetting(t *testing.T) {
	binary := program(t)
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		maps := map[string]corev1.ConfigMap{}
		for _, c := range all[corev1.ConfigMap](t, docs, "ConfigMap") {
			maps[c.Name] = c
		}
		for _, w := range services(t, docs) {
			out, err := runAs(t, binary, w, maps)
			require.NoError(t, err, "%s: %s", w.name, out)
			drain, err := time.ParseDuration(w.env("WAGGLE_SHUTDOWN"))
			require.NoError(t, err)
			require.Contains(t, out, "shutdown: "+drain.String()+"\n", w.name)
		}
	})
}

// A setting that the program does not know is found by this check.
func TestTheProgramRefusesAWrongSetting(t *testing.T) {
	docs, err := chart.Render(folder, chart.Release, parse(t, "{config: {gateway: {read_limt: 5}}}"), nil)
	require.NoError(t, err)
	maps := map[string]corev1.ConfigMap{}
	for _, c := range all[corev1.ConfigMap](t, docs, "ConfigMap") {
		maps[c.Name] = c
	}
	out, err := runAs(t, program(t), services(t, docs)[0], maps)
	require.Error(t, err)
	require.Contains(t, out, `unknown key "read_limt"`)
}

// program returns the waggle binary: that of "make build", unless the environment names
// another.
func program(t testing.TB) string {
	t.Helper()
	file := os.Getenv("WAGGLE_E2E_BINARY")
	if file == "" {
		file = filepath.Join(root, "bin/waggle")
	}
	file, err := filepath.Abs(file)
	require.NoError(t, err)
	require.FileExists(t, file, "make build")
	return file
}

// runAs starts the program as the pod would, with its files laid out below a folder,
// and lets it print its settings.
func runAs(t testing.TB, binary string, w workload, maps map[string]corev1.ConfigMap) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for _, v := range w.template.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				for _, item := range s.ConfigMap.Items {
					text, ok := maps[s.ConfigMap.Name].Data[item.Key]
					require.True(t, ok, "%s has no %s", s.ConfigMap.Name, item.Key)
					require.NoError(t, os.WriteFile(filepath.Join(dir, item.Path), []byte(text), 0o600))
				}
				continue
			}
			item := s.Secret.Items[0]
			require.NoError(t, os.WriteFile(filepath.Join(dir, item.Path), []byte(secretFiles[item.Key]), 0o600))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(w.container().Args, "--print-config")...)
	for _, e := range w.container().Env {
		value := e.Value
		switch {
		case e.Name == "WAGGLE_CONFIG":
			value = dir
		case e.ValueFrom != nil:
			value = "from-a-secret"
		}
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func quantity(t testing.TB, text string) int64 {
	t.Helper()
	q, err := resource.ParseQuantity(text)
	require.NoError(t, err, text)
	return q.Value()
}
