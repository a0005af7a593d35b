package chart_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
)

var update = flag.Bool("update", false, "write the golden files")

// root is the repository, seen from this package.
const root = "../../.."

// roles are those of "waggle serve".
var roles = []string{"gateway", "session", "pipeline", "worker", "task", "team", "tools"}

// sets are the values that the checks render with: files of testdata/values.
var sets = []string{"default", "external", "keda", "minimal"}

const (
	// folder is the chart, as a fresh clone has it.
	folder = root + "/deploy/helm/waggle"
	// natsFolder stands in for the official chart of NATS.
	natsFolder = "testdata/nats"
	// natsValues are those that it gets.
	natsValues = root + "/deploy/helm/nats.yaml"
)

func values(t testing.TB, set string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/values", set+".yaml"))
	require.NoError(t, err)
	return parse(t, string(text))
}

// cluster returns the Secrets that a set finds: one of the sets is rendered where they
// already are.
func cluster(set string) chart.Secrets {
	if set != "external" {
		return nil
	}
	found := chart.Secrets{}
	for _, name := range []string{"waggle-tls", "openai", "waggle-state"} {
		found[name] = map[string]string{"key": name}
	}
	for _, role := range append(slices.Clone(roles), "bootstrap") {
		found["waggle-nats-"+role] = map[string]string{"nkey": role}
	}
	return found
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &out), text)
	return out
}

// rendered are the documents of each set: rendering takes longer than most checks, none of
// which changes them.
var rendered = map[string][]chart.Document{}

func render(t testing.TB, set string) []chart.Document {
	t.Helper()
	if docs, ok := rendered[set]; ok {
		return docs
	}
	docs, err := chart.Render(folder, chart.Release, values(t, set), cluster(set))
	require.NoError(t, err)
	require.NotEmpty(t, docs)
	rendered[set] = docs
	return docs
}

// eachSet runs a check on what every set of values gives.
func eachSet(t *testing.T, check func(t *testing.T, docs []chart.Document)) {
	for _, set := range sets {
		t.Run(set, func(t *testing.T) { check(t, render(t, set)) })
	}
}

// withServers are the sets whose servers are a release beside Waggle's.
var withServers = []string{"default", "keda", "minimal"}

// serverValues returns the values of the NATS chart that go with a set.
func serverValues(t testing.TB, set string) map[string]any {
	t.Helper()
	files := []string{natsValues}
	if set == "minimal" {
		files = append(files, "testdata/values/minimal-nats.yaml")
	}
	out, err := chart.With(files...)
	require.NoError(t, err)
	return out
}

// servers returns what the NATS chart makes of the values that go with a set.
func servers(t testing.TB, set string) []chart.Document {
	t.Helper()
	docs, err := chart.Render(natsFolder, chart.Servers, serverValues(t, set), nil)
	require.NoError(t, err)
	return docs
}

// all returns the rendered objects of a type.
func all[T any](t testing.TB, docs []chart.Document, kind string) []T {
	t.Helper()
	var out []T
	for _, d := range docs {
		if d.Object.GetKind() != kind {
			continue
		}
		var v T
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(d.Object.Object, &v, true), d)
		out = append(out, v)
	}
	return out
}

// workload is whatever makes pods.
type workload struct {
	name     string
	role     string
	template corev1.PodTemplateSpec
}

func (w workload) container() corev1.Container { return w.template.Spec.Containers[0] }

func (w workload) env(name string) string {
	for _, e := range w.container().Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func workloads(t testing.TB, docs []chart.Document) []workload {
	t.Helper()
	var out []workload
	add := func(name string, p corev1.PodTemplateSpec) {
		require.Len(t, p.Spec.Containers, 1, name)
		out = append(out, workload{name: name, role: p.Labels["app.kubernetes.io/component"], template: p})
	}
	for _, d := range all[appsv1.Deployment](t, docs, "Deployment") {
		add(d.Name, d.Spec.Template)
	}
	for _, j := range all[batchv1.Job](t, docs, "Job") {
		add(j.Name, j.Spec.Template)
	}
	var found []string
	for _, w := range out {
		found = append(found, w.role)
	}
	require.ElementsMatch(t, append(slices.Clone(roles), "bootstrap"), found)
	return out
}

// services are the workloads that continue: all but the Job.
func services(t testing.TB, docs []chart.Document) []workload {
	return slices.DeleteFunc(workloads(t, docs), func(w workload) bool { return w.role == "bootstrap" })
}
