// Package chart renders the Helm chart of Waggle with Helm's own code, and holds what
// has to be true of whatever it renders.
package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Release is under which name the chart is rendered, and where.
const (
	Release   = "waggle"
	Namespace = "agents"
)

// Prepare copies the chart to dir, with the chart in nats as the one that it depends
// on, and returns its folder: as if "helm dependency build" had been run.
func Prepare(chart, nats, dir string) (string, error) {
	out := filepath.Join(dir, "waggle")
	if err := os.CopyFS(out, os.DirFS(chart)); err != nil {
		return "", fmt.Errorf("copy the chart: %w", err)
	}
	if err := os.CopyFS(filepath.Join(out, "charts", "nats"), os.DirFS(nats)); err != nil {
		return "", fmt.Errorf("copy the chart of NATS: %w", err)
	}
	return out, nil
}

// Document is one rendered object.
type Document struct {
	Template string // its file in the chart
	Text     string // as rendered
	Object   *unstructured.Unstructured
}

// String names the document in messages.
func (d Document) String() string { return d.Object.GetKind() + "/" + d.Object.GetName() }

// Render renders the chart in dir with the values, which its schema has to accept, in a
// cluster that has the secrets. Documents are sorted by file, kind and name.
func Render(dir string, values map[string]any, secrets Secrets) ([]Document, error) {
	c, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("load the chart: %w", err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, fmt.Errorf("dependencies of the chart: %w", err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{
		Name: Release, Namespace: Namespace, Revision: 1, IsInstall: true,
	}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("values of the chart: %w", err)
	}
	files, err := engine.RenderWithClientProvider(c, all, secrets)
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	return documents(files)
}

func documents(files map[string]string) ([]Document, error) {
	var out []Document
	for name, text := range files {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for _, part := range releaseutil.SplitManifests(text) {
			var content map[string]any
			if err := yaml.UnmarshalStrict([]byte(part), &content); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, part)
			}
			if len(content) == 0 {
				continue
			}
			out = append(out, Document{Template: name, Text: part, Object: &unstructured.Unstructured{Object: content}})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		return a.Template+"\x00"+a.String() < b.Template+"\x00"+b.String()
	})
	return out, nil
}
