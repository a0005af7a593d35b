package chart_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// A Deployment has a number of replicas unless an autoscaler sets it.
func TestEveryDeploymentIsScaledOnce(t *testing.T) {
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		scaled := map[string]string{}
		for _, d := range docs {
			if kind := d.Object.GetKind(); kind == "HorizontalPodAutoscaler" || kind == "ScaledObject" {
				name, _, err := unstructured.NestedString(d.Object.Object, "spec", "scaleTargetRef", "name")
				require.NoError(t, err)
				require.Empty(t, scaled[name], "%s is scaled twice", name)
				scaled[name] = kind
			}
		}
		for _, d := range all[appsv1.Deployment](t, docs, "Deployment") {
			require.Equal(t, scaled[d.Name] == "", d.Spec.Replicas != nil, "%s: %s", d.Name, scaled[d.Name])
			delete(scaled, d.Name)
			require.Zero(t, d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue(), d.Name)
		}
		require.Empty(t, scaled, "what does not exist is scaled")
	})
}

func TestGatewaysScaleByConnections(t *testing.T) {
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		for _, h := range all[autoscaling.HorizontalPodAutoscaler](t, docs, "HorizontalPodAutoscaler") {
			var pods, cpu bool
			for _, m := range h.Spec.Metrics {
				cpu = cpu || m.Resource != nil && m.Resource.Name == corev1.ResourceCPU
				pods = pods || m.Pods != nil && m.Pods.Metric.Name == "waggle_gateway_connections"
			}
			require.True(t, cpu, h.Name)
			require.Equal(t, strings.HasSuffix(h.Name, "-gateway"), pods, h.Name)
			require.GreaterOrEqual(t, *h.Spec.MinReplicas, int32(2), h.Name)
			require.GreaterOrEqual(t, *h.Spec.Behavior.ScaleDown.StabilizationWindowSeconds, int32(300), h.Name)
		}
	})
}

// KEDA asks NATS for the consumers of the role's commands: all of them, and no others.
func TestServicesScaleByTheLagOfTheirConsumers(t *testing.T) {
	lagOfConsumers(t, render(t, "keda"), subject.DefaultPartitions)
}

// An installation of another number of partitions has the permissions and the consumers of that number.
func TestAnInstallationHasMorePartitions(t *testing.T) {
	for _, n := range subject.PartitionChoices() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			more := values(t, "keda")
			more["streams"] = map[string]any{"partitions": int(n)}
			more["nats"] = map[string]any{"accounts": permission.Accounts(n)}
			docs, err := chart.Render(folder, chart.Release, more, nil)
			require.NoError(t, err)
			lagOfConsumers(t, docs, n)
			for _, w := range workloads(t, docs) {
				require.Equal(t, fmt.Sprint(n), w.env("WAGGLE_NATS_PARTITIONS"), w.name)
			}
			lists := 0
			for _, c := range all[corev1.ConfigMap](t, docs, "ConfigMap") {
				if text, found := c.Data["accounts.conf"]; found {
					require.Equal(t, strings.TrimSpace(permission.Accounts(n)), strings.TrimSpace(text))
					lists++
				}
			}
			require.Equal(t, 1, lists)
		})
	}
}

func lagOfConsumers(t *testing.T, docs []chart.Document, n subject.Partitions) {
	t.Helper()
	asked := map[string][]string{}
	for _, d := range docs {
		if d.Object.GetKind() != "ScaledObject" {
			continue
		}
		spec, _ := d.Object.Object["spec"].(map[string]any)
		triggers, _ := spec["triggers"].([]any)
		var names []string
		for _, tr := range triggers {
			trigger, _ := tr.(map[string]any)
			meta, _ := trigger["metadata"].(map[string]any)
			require.Equal(t, "nats-jetstream", trigger["type"])
			require.Equal(t, "waggle-nats-headless.agents.svc:8222", meta["natsServerMonitoringEndpoint"])
			require.Equal(t, "WAGGLE", meta["account"])
			require.Equal(t, subject.StreamCommands, meta["stream"])
			consumer, _ := meta["consumer"].(string)
			names = append(names, consumer)
			require.Equal(t, strings.ReplaceAll(consumer, "-", "_"), trigger["name"])
		}
		if formula, found, _ := unstructured.NestedString(spec, "advanced", "scalingModifiers", "formula"); found {
			require.Equal(t, strings.ReplaceAll(strings.Join(names, " + "), "-", "_"), formula)
		} else {
			require.Len(t, names, 1)
		}
		asked[strings.TrimPrefix(d.Object.GetName(), "waggle-")] = names
	}
	require.ElementsMatch(t, []string{"session", "pipeline", "worker", "task", "team"}, slices.Collect(maps.Keys(asked)))
	for role, names := range asked {
		require.ElementsMatch(t, taken(t, role, n), names, role)
	}
}

// taken are the consumers of commands that a role may pull from.
func taken(t testing.TB, role string, n subject.Partitions) []string {
	list, ok := permission.Of(permission.Role(role), n)
	require.True(t, ok, role)
	var out []string
	for _, s := range list.Publish {
		if name, found := strings.CutPrefix(s, "$JS.API.CONSUMER.MSG.NEXT."+subject.StreamCommands+"."); found {
			out = append(out, name)
		}
	}
	require.NotEmpty(t, out, role)
	return out
}

// Every pod is found by exactly one disruption budget, one Service and its Deployment.
func TestSelectorsFindTheirPods(t *testing.T) {
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		pods := workloads(t, docs)
		finds := func(what string, sel labels.Selector, role string) {
			for _, w := range pods {
				require.Equal(t, w.role == role, sel.Matches(labels.Set(w.template.Labels)), "%s and %s", what, w.name)
			}
		}
		for _, d := range all[appsv1.Deployment](t, docs, "Deployment") {
			sel, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			require.NoError(t, err)
			finds(d.Name, sel, d.Labels["app.kubernetes.io/component"])
			for _, spread := range d.Spec.Template.Spec.TopologySpreadConstraints {
				sel, err := metav1.LabelSelectorAsSelector(spread.LabelSelector)
				require.NoError(t, err)
				finds(d.Name+" spread", sel, d.Labels["app.kubernetes.io/component"])
			}
			require.Len(t, d.Spec.Template.Spec.TopologySpreadConstraints, 2, d.Name)
		}
		budgets := all[policy.PodDisruptionBudget](t, docs, "PodDisruptionBudget")
		require.Len(t, budgets, len(roles))
		for _, b := range budgets {
			sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			require.NoError(t, err)
			finds(b.Name, sel, b.Labels["app.kubernetes.io/component"])
			require.Equal(t, 1, b.Spec.MaxUnavailable.IntValue())
		}
		svcs := all[corev1.Service](t, docs, "Service")
		require.Len(t, svcs, len(roles)+1, "metrics of gateways have a Service of their own")
		for _, s := range svcs {
			finds(s.Name, labels.SelectorFromSet(s.Spec.Selector), s.Labels["app.kubernetes.io/component"])
		}
	})
}
