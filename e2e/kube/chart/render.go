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

// The names of the releases that are rendered, and where: Waggle's, and that of the servers
// that its values name.
const (
	Release   = "waggle"
	Servers   = "waggle-nats"
	Namespace = "agents"
)

// With returns the values in a file, with those in the files after it laid over them, as
// Helm's command does with several --values.
func With(files ...string) (map[string]any, error) {
	out := map[string]any{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Clean(f))
		if err != nil {
			return nil, fmt.Errorf("read values: %w", err)
		}
		over := map[string]any{}
		if err := yaml.UnmarshalStrict(text, &over); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out = chartutil.MergeTables(over, out)
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

// Render renders the chart in dir as a release with the values, which its schema has to
// accept, in a cluster that has the secrets. Documents are sorted by file, kind and name.
func Render(dir, release string, values map[string]any, secrets Secrets) ([]Document, error) {
	c, err := loader.LoadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("load the chart: %w", err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, fmt.Errorf("dependencies of the chart: %w", err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{
		Name: release, Namespace: Namespace, Revision: 1, IsInstall: true,
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
