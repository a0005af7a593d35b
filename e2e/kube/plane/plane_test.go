package plane_test

import (
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

	"github.com/waggle-dev/waggle/e2e/kube/chart"
	"github.com/waggle-dev/waggle/e2e/kube/plane"
)

func TestTheChartOnARealControlPlane(t *testing.T) {
	c := start(t)
	c.namespace(t, chart.Namespace)
	docs := append(c.renderServers(t, "default"), c.render(t, "default")...)
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
			t.Logf("applied %v", c.apply(t, namespace, append(c.renderServers(t, set), c.render(t, set)...)))
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

// only returns the first object of a kind.
func only(t testing.TB, docs []chart.Document, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, d := range docs {
		if d.Object.GetKind() == kind {
			return d.Object.DeepCopy()
		}
	}
	require.Fail(t, "there is none", kind)
	return nil
}

func (c *cluster) refuses(t *testing.T, docs []chart.Document) {
	for kind, field := range map[string]string{"ServiceMonitor": "endpoint", "PrometheusRule": "group", "ScaledObject": "minReplicas", "HTTPRoute": "hostname"} {
		o := only(t, c.render(t, "keda"), kind)
		require.NoError(t, unstructured.SetNestedField(o.Object, "x", "spec", field))
		require.ErrorContains(t, c.client.Apply(c.ctx, chart.Namespace, o), field, kind)
	}
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
	_, err := plane.Until(c.ctx, c.client, jobs, chart.Namespace, maxWait, func(all []batchv1.Job) bool {
		return len(all) == 1 && all[0].Status.Succeeded == 1
	})
	require.NoError(t, err, "the Job that makes the streams")
	t.Logf("%d servers of NATS with their volumes", c.servers(t, chart.Namespace))
}

func (c *cluster) repeats(t *testing.T, docs []chart.Document) {
	before := revisions(c.rollout(t, chart.Namespace))
	c.apply(t, chart.Namespace, docs)
	require.Equal(t, before, revisions(c.rollout(t, chart.Namespace)))
}

// revisions tell which pods a Deployment has: they change when those are replaced, and
// only then. Its generation changes with the number of pods, too.
func revisions(all []appsv1.Deployment) map[string]string {
	out := map[string]string{}
	for _, d := range all {
		out[d.Name] = revision(d)
	}
	return out
}

func revision(d appsv1.Deployment) string { return d.Annotations["deployment.kubernetes.io/revision"] }

// scales: the controller found what to scale and raised it to the least that is asked
// for, although no server has metrics here.
func (c *cluster) scales(t *testing.T) {
	all, err := plane.Until(c.ctx, c.client, hpas, chart.Namespace, maxWait, func(all []autoscaling.HorizontalPodAutoscaler) bool {
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
	spread, count := map[string]map[string]bool{}, map[string]int{}
	running, err := plane.List[corev1.Pod](c.ctx, c.client, pods, chart.Namespace, "app.kubernetes.io/component!=bootstrap")
	require.NoError(t, err)
	for _, p := range running {
		role := p.Labels["app.kubernetes.io/component"]
		if spread[role] == nil {
			spread[role] = map[string]bool{}
		}
		spread[role][p.Spec.NodeName] = true
		count[role]++
	}
	for role, on := range spread {
		require.Len(t, on, count[role], "pods of %s are on one node", role)
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
	all, err := plane.Until(c.ctx, c.client, budgets, chart.Namespace, maxWait, func(all []policy.PodDisruptionBudget) bool {
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

// updates: new settings replace all pods of a role, and their number never falls.
func (c *cluster) updates(t *testing.T) {
	before := revisions(c.rollout(t, chart.Namespace))
	c.apply(t, chart.Namespace, c.renderValues(t, map[string]any{"roles": map[string]any{"gateway": map[string]any{"podAnnotations": map[string]any{"change": "1"}}}}))
	least := int32(2)
	_, err := plane.Until(c.ctx, c.client, deployments, chart.Namespace, maxWait, func(all []appsv1.Deployment) bool {
		for _, d := range all {
			if d.Name == "waggle-gateway" {
				least = min(least, d.Status.AvailableReplicas)
				return revision(d) != before[d.Name] && d.Status.UpdatedReplicas == 2 && d.Status.Replicas == 2 && d.Status.AvailableReplicas == 2
			}
		}
		return false
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, least, "gateways available while they were replaced")
	after := revisions(c.rollout(t, chart.Namespace))
	delete(before, "waggle-gateway")
	delete(after, "waggle-gateway")
	require.Equal(t, before, after, "the other roles are left alone")
}
