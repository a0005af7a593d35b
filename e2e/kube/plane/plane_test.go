package plane_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
	"github.com/waggle-dev/waggle/e2e/kube/crd"
	"github.com/waggle-dev/waggle/e2e/kube/plane"
)

const (
	// patience is for one step on a machine that does other things too.
	patience = 5 * time.Minute
	nodes    = 3
	root     = "../../.."
)

var (
	deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")
	jobs        = batchv1.SchemeGroupVersion.WithKind("Job")
	hpas        = autoscaling.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
	budgets     = policy.SchemeGroupVersion.WithKind("PodDisruptionBudget")
	pods        = corev1.SchemeGroupVersion.WithKind("Pod")
	crds        = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// cluster is a control plane with nodes, and the chart rendered.
type cluster struct {
	ctx    context.Context
	client *plane.Client
	chart  string
}

// start builds what is missing, and starts it. Building takes about 20 minutes of one
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
	c := &cluster{ctx: ctx}
	c.client, err = plane.NewClient(p.Client())
	require.NoError(t, err)
	c.chart, err = chart.Prepare(filepath.Join(root, "deploy/helm/waggle"), "../chart/testdata/nats", t.TempDir())
	require.NoError(t, err)
	c.nodes(t)
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
	_, err := plane.Until(c.ctx, c.client, corev1.SchemeGroupVersion.WithKind("ServiceAccount"), name, patience,
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

// definitions makes the kinds of KEDA and of the Gateway API known.
func (c *cluster) definitions(t testing.TB) {
	for _, kind := range crd.Kinds() {
		text, err := crd.Read(c.ctx, kind)
		require.NoError(t, err)
		var def map[string]any
		require.NoError(t, yaml.Unmarshal(text, &def))
		require.NoError(t, c.client.Apply(c.ctx, "", &unstructured.Unstructured{Object: def}))
	}
	_, err := plane.Until(c.ctx, c.client, crds, "", patience, func(all []unstructured.Unstructured) bool { return established(all) == len(crd.Kinds()) })
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
	docs, err := chart.Render(c.chart, values, nil)
	require.NoError(t, err)
	return docs
}

// apply applies what can be applied, and counts it by kind. The Prometheus operator's
// kinds are checked by their types only: its definitions cannot be had as a module.
func (c *cluster) apply(t testing.TB, namespace string, docs []chart.Document) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, d := range docs {
		if strings.HasPrefix(d.Object.GetAPIVersion(), "monitoring.coreos.com/") {
			continue
		}
		require.NoError(t, c.client.Apply(c.ctx, namespace, d.Object), d)
		count[d.Object.GetKind()]++
	}
	return count
}

// rollout waits until every Deployment runs what it should, as "kubectl rollout status".
func (c *cluster) rollout(t testing.TB, namespace string) []appsv1.Deployment {
	t.Helper()
	all, err := plane.Until(c.ctx, c.client, deployments, namespace, patience, func(all []appsv1.Deployment) bool {
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

func TestTheChartOnARealControlPlane(t *testing.T) {
	c := start(t)
	c.definitions(t)
	c.namespace(t, chart.Namespace)
	docs := c.render(t, "default")
	t.Run("a misspelt field is refused", func(t *testing.T) { c.refuses(t, docs) })
	t.Run("pods that are not restricted are refused", func(t *testing.T) { c.restricts(t, docs) })
	t.Run("applied with strict validation", func(t *testing.T) {
		began := time.Now()
		t.Logf("applied %v", c.apply(t, chart.Namespace, docs))
		c.complete(t, began)
	})
	t.Run("applied again, nothing restarts", func(t *testing.T) { c.repeats(t, docs) })
	t.Run("autoscalers", c.scales)
	t.Run("budgets", c.budgets)
	t.Run("a change rolls out without a gap", c.updates)
	for _, set := range []string{"external", "keda", "minimal"} {
		t.Run("values "+set, func(t *testing.T) {
			namespace := chart.Namespace + "-" + set
			c.namespace(t, namespace)
			c.workspace(t, namespace)
			t.Logf("applied %v", c.apply(t, namespace, c.render(t, set)))
			require.Len(t, c.rollout(t, namespace), 7)
		})
	}
}

// first returns the first Deployment of a role.
func first(t testing.TB, docs []chart.Document, name string) *unstructured.Unstructured {
	t.Helper()
	for _, d := range docs {
		if d.Object.GetKind() == "Deployment" && d.Object.GetName() == name {
			return d.Object.DeepCopy()
		}
	}
	require.Fail(t, "there is no Deployment", name)
	return nil
}

func (c *cluster) refuses(t *testing.T, docs []chart.Document) {
	d := first(t, docs, "waggle-gateway")
	require.NoError(t, unstructured.SetNestedField(d.Object, int64(5), "spec", "template", "spec", "terminationGracePeriod"))
	err := c.client.Apply(c.ctx, chart.Namespace, d)
	require.ErrorContains(t, err, "terminationGracePeriod")
	t.Log(err)
}

func (c *cluster) restricts(t *testing.T, docs []chart.Document) {
	template, _, err := unstructured.NestedMap(first(t, docs, "waggle-gateway").Object, "spec", "template", "spec")
	require.NoError(t, err)
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "root"}, "spec": template,
	}}
	require.NoError(t, unstructured.SetNestedField(pod.Object, "default", "spec", "serviceAccountName"))
	require.NoError(t, unstructured.SetNestedField(pod.Object, false, "spec", "securityContext", "runAsNonRoot"))
	err = c.client.Create(c.ctx, chart.Namespace, pod)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `violates PodSecurity "restricted:latest"`)
	t.Log(err)
}

// complete waits until everything runs and says where.
func (c *cluster) complete(t *testing.T, began time.Time) {
	all := c.rollout(t, chart.Namespace)
	require.Len(t, all, 7)
	t.Logf("rollout complete after %s", time.Since(began).Round(100*time.Millisecond))
	_, err := plane.Until(c.ctx, c.client, jobs, chart.Namespace, patience, func(all []batchv1.Job) bool {
		return len(all) == 1 && all[0].Status.Succeeded == 1
	})
	require.NoError(t, err, "the Job that makes the streams")
}

func (c *cluster) repeats(t *testing.T, docs []chart.Document) {
	before := generations(c.rollout(t, chart.Namespace))
	c.apply(t, chart.Namespace, docs)
	require.Equal(t, before, generations(c.rollout(t, chart.Namespace)))
}

func generations(all []appsv1.Deployment) map[string]int64 {
	out := map[string]int64{}
	for _, d := range all {
		out[d.Name] = d.Generation
	}
	return out
}

// scales: the controller found what to scale and raised it to the least that is asked
// for, although nobody serves metrics here.
func (c *cluster) scales(t *testing.T) {
	all, err := plane.Until(c.ctx, c.client, hpas, chart.Namespace, patience, func(all []autoscaling.HorizontalPodAutoscaler) bool {
		for _, h := range all {
			if h.Status.CurrentReplicas < *h.Spec.MinReplicas || !able(h) {
				return false
			}
		}
		return len(all) == 7
	})
	require.NoError(t, err, "%+v", all)
	for _, d := range c.rollout(t, chart.Namespace) {
		require.EqualValues(t, 2, *d.Spec.Replicas, d.Name)
	}
	spread := map[string]map[string]bool{}
	running, err := plane.List[corev1.Pod](c.ctx, c.client, pods, chart.Namespace, "app.kubernetes.io/component!=bootstrap")
	require.NoError(t, err)
	for _, p := range running {
		role := p.Labels["app.kubernetes.io/component"]
		if spread[role] == nil {
			spread[role] = map[string]bool{}
		}
		spread[role][p.Spec.NodeName] = true
	}
	for role, on := range spread {
		require.Len(t, on, 2, "pods of %s are on one node", role)
	}
	t.Logf("%d autoscalers able to scale; %d pods, those of a role on nodes of their own", len(all), len(running))
}

func able(h autoscaling.HorizontalPodAutoscaler) bool {
	for _, condition := range h.Status.Conditions {
		if condition.Type == autoscaling.AbleToScale && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// budgets: each protects its two pods, so that one at a time may be evicted.
func (c *cluster) budgets(t *testing.T) {
	all, err := plane.Until(c.ctx, c.client, budgets, chart.Namespace, patience, func(all []policy.PodDisruptionBudget) bool {
		for _, b := range all {
			if b.Status.ExpectedPods != 2 || b.Status.DisruptionsAllowed != 1 {
				return false
			}
		}
		return len(all) == 7
	})
	require.NoError(t, err, "%+v", all)
	gateways, err := plane.List[corev1.Pod](c.ctx, c.client, pods, chart.Namespace, "app.kubernetes.io/component=gateway")
	require.NoError(t, err)
	require.Len(t, gateways, 2)
	require.NoError(t, c.client.Evict(c.ctx, chart.Namespace, gateways[0].Name))
	second := c.client.Evict(c.ctx, chart.Namespace, gateways[1].Name)
	t.Logf("%d budgets; the first eviction was granted, the second one answered: %v", len(all), second)
	require.True(t, second == nil || apierrors.IsTooManyRequests(second), "%v", second)
	c.rollout(t, chart.Namespace)
}

// updates: new settings replace all pods of a role, and there are never fewer than before.
func (c *cluster) updates(t *testing.T) {
	before := generations(c.rollout(t, chart.Namespace))
	c.apply(t, chart.Namespace, c.renderValues(t, map[string]any{"roles": map[string]any{"gateway": map[string]any{"podAnnotations": map[string]any{"change": "1"}}}}))
	least := int32(2)
	_, err := plane.Until(c.ctx, c.client, deployments, chart.Namespace, patience, func(all []appsv1.Deployment) bool {
		for _, d := range all {
			if d.Name == "waggle-gateway" {
				least = min(least, d.Status.AvailableReplicas)
				return d.Status.ObservedGeneration > before[d.Name] && d.Status.UpdatedReplicas == 2 && d.Status.Replicas == 2 && d.Status.AvailableReplicas == 2
			}
		}
		return false
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, least, "gateways available while they were replaced")
	after := generations(c.rollout(t, chart.Namespace))
	delete(before, "waggle-gateway")
	delete(after, "waggle-gateway")
	require.Equal(t, before, after, "the other roles are left alone")
}
