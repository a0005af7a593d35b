package plane_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
	"github.com/waggle-dev/waggle/e2e/kube/crd"
	"github.com/waggle-dev/waggle/e2e/kube/plane"
)

const (
	// maxWait is for one step on a machine that does other things too.
	maxWait = 5 * time.Minute
	nodes   = 3
	root    = "../../.."
	// waggleChart is the chart, natsChart stands in for the official one of NATS, and
	// natsValues are what it gets.
	waggleChart = root + "/deploy/helm/waggle"
	natsChart   = "../chart/testdata/nats"
	natsValues  = root + "/deploy/helm/nats.yaml"
	// volumes are as many as the servers of all sets claim.
	volumes = 10
)

var (
	deployments  = appsv1.SchemeGroupVersion.WithKind("Deployment")
	statefulSets = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	jobs         = batchv1.SchemeGroupVersion.WithKind("Job")
	hpas         = autoscaling.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
	budgets      = policy.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	claims       = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	pods         = corev1.SchemeGroupVersion.WithKind("Pod")
	crds         = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// cluster is a control plane with nodes, and the chart rendered.
type cluster struct {
	ctx    context.Context
	client *plane.Client
	bin    map[string]string // programs of the plane and beside it
	config string            // the file that tells Helm where the API is
}

// start builds what is missing, and starts it. Building takes about 25 minutes of one
// core, once.
func start(t *testing.T) *cluster {
	ctx := t.Context()
	bin, err := plane.Build(ctx, "../build", filepath.Join(root, ".cache/kube"), os.Stderr)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "plane") // t.TempDir would take the logs of a failure away
	require.NoError(t, err)
	began := time.Now()
	p, err := plane.Start(ctx, dir, "../build", bin)
	if p != nil {
		t.Cleanup(func() {
			p.Stop()
			if !t.Failed() {
				_ = os.RemoveAll(dir)
			}
		})
	}
	require.NoError(t, err)
	t.Logf("a control plane after %s", time.Since(began).Round(100*time.Millisecond))
	c := &cluster{ctx: ctx, bin: bin, config: p.Kubeconfig()}
	c.client, err = plane.NewClient(p.Client())
	require.NoError(t, err)
	c.nodes(t)
	c.volumes(t)
	c.definitions(t)
	return c
}

func object(t testing.TB, text string, args ...any) *unstructured.Unstructured {
	t.Helper()
	var out map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(fmt.Sprintf(text, args...)), &out), text)
	return &unstructured.Unstructured{Object: out}
}

func (c *cluster) nodes(t testing.TB) {
	for i := range nodes {
		n := object(t, `
apiVersion: v1
kind: Node
metadata:
  name: node-%[1]d
  labels: {kubernetes.io/hostname: node-%[1]d, topology.kubernetes.io/zone: zone-%[1]d}
status:
  allocatable: {cpu: "32", memory: 64Gi, pods: "110"}
  capacity: {cpu: "32", memory: 64Gi, pods: "110"}
`, i)
		require.NoError(t, c.client.Create(c.ctx, "", n))
	}
}

// volumes makes what the claims of NATS are bound to.
func (c *cluster) volumes(t testing.TB) {
	for i := range volumes {
		require.NoError(t, c.client.Apply(c.ctx, "", object(t, `
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-%[1]d}
spec:
  capacity: {storage: 40Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  hostPath: {path: /disk-%[1]d}
`, i)))
	}
}

// namespace makes one in which only restricted pods may run.
func (c *cluster) namespace(t testing.TB, name string) {
	require.NoError(t, c.client.Apply(c.ctx, "", object(t, `
apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted}
`, name)))
	// Pods need the account that a controller makes.
	_, err := plane.Until(c.ctx, c.client, corev1.SchemeGroupVersion.WithKind("ServiceAccount"), name, maxWait,
		func(all []corev1.ServiceAccount) bool { return len(all) > 0 })
	require.NoError(t, err)
}

// workspace makes the claim that a set of values names: without it pods are not scheduled.
func (c *cluster) workspace(t testing.TB, namespace string) {
	require.NoError(t, c.client.Apply(c.ctx, "", object(t, `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  claimRef: {namespace: %[1]s, name: workspace}
  hostPath: {path: /workspace}
`, namespace)))
	require.NoError(t, c.client.Apply(c.ctx, namespace, object(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: workspace}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: %s
  resources: {requests: {storage: 1Gi}}
`, namespace)))
}

// definitions makes the kinds of KEDA, of the Gateway API and of the Prometheus operator
// known.
func (c *cluster) definitions(t testing.TB) {
	texts, err := crd.Generate(c.ctx, c.bin[plane.Generator], t.TempDir())
	require.NoError(t, err)
	for _, kind := range crd.Kinds() {
		text, err := crd.Read(c.ctx, kind)
		require.NoError(t, err)
		texts = append(texts, text)
	}
	for _, text := range texts {
		var def map[string]any
		require.NoError(t, yaml.Unmarshal(text, &def))
		require.NoError(t, c.client.Apply(c.ctx, "", &unstructured.Unstructured{Object: def}))
	}
	_, err = plane.Until(c.ctx, c.client, crds, "", maxWait, func(all []unstructured.Unstructured) bool { return established(all) == len(texts) })
	require.NoError(t, err)
	c.client.Learn()
}

func established(all []unstructured.Unstructured) int {
	n := 0
	for _, o := range all {
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, v := range conditions {
			m, _ := v.(map[string]any)
			if m["type"] == "Established" && m["status"] == "True" {
				n++
			}
		}
	}
	return n
}

func (c *cluster) render(t testing.TB, set string) []chart.Document {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../chart/testdata/values", set+".yaml"))
	require.NoError(t, err)
	values := map[string]any{}
	require.NoError(t, yaml.UnmarshalStrict(text, &values))
	return c.renderValues(t, values)
}

func (c *cluster) renderValues(t testing.TB, values map[string]any) []chart.Document {
	t.Helper()
	docs, err := chart.Render(waggleChart, chart.Release, values, nil)
	require.NoError(t, err)
	return docs
}

// renderServers returns the servers that go with a set of values, none if its servers are
// elsewhere.
func (c *cluster) renderServers(t testing.TB, set string) []chart.Document {
	t.Helper()
	files := serverFiles(set)
	if files == nil {
		return nil
	}
	values, err := chart.With(files...)
	require.NoError(t, err)
	docs, err := chart.Render(natsChart, chart.Servers, values, nil)
	require.NoError(t, err)
	return docs
}

// serverFiles returns the files of values of the NATS chart that go with a set.
func serverFiles(set string) []string {
	switch set {
	case "external":
		return nil
	case "minimal":
		return []string{natsValues, "../chart/testdata/values/minimal-nats.yaml"}
	default:
		return []string{natsValues}
	}
}

// apply applies everything and counts it by kind.
func (c *cluster) apply(t testing.TB, namespace string, docs []chart.Document) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, d := range docs {
		require.NoError(t, c.client.Apply(c.ctx, namespace, d.Object), d)
		count[d.Object.GetKind()]++
	}
	return count
}

// rollout waits until every Deployment runs what it should, as "kubectl rollout status".
func (c *cluster) rollout(t testing.TB, namespace string) []appsv1.Deployment {
	t.Helper()
	all, err := plane.Until(c.ctx, c.client, deployments, namespace, maxWait, func(all []appsv1.Deployment) bool {
		for _, d := range all {
			s := d.Status
			if s.ObservedGeneration < d.Generation || s.UpdatedReplicas < *d.Spec.Replicas ||
				s.Replicas > s.UpdatedReplicas || s.AvailableReplicas < s.UpdatedReplicas {
				return false
			}
		}
		return len(all) > 0
	})
	require.NoError(t, err, "%+v", all)
	return all
}

// servers waits until all servers of NATS run, and returns how many that are.
func (c *cluster) servers(t testing.TB, namespace string) int32 {
	t.Helper()
	all, err := plane.Until(c.ctx, c.client, statefulSets, namespace, maxWait, func(all []appsv1.StatefulSet) bool {
		return len(all) == 1 && all[0].Status.AvailableReplicas == *all[0].Spec.Replicas
	})
	require.NoError(t, err, "%+v", all)
	return all[0].Status.AvailableReplicas
}
