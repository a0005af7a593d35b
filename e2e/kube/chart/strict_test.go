package chart_test

import (
	"context"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
	"github.com/waggle-dev/waggle/e2e/kube/crd"
)

// decoder decodes into the types of Kubernetes and of the Prometheus operator, and
// refuses what they do not have.
func decoder() runtime.Decoder {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	utilruntime.Must(monitoring.AddToScheme(s))
	return serializer.NewCodecFactory(s, serializer.EnableStrict).UniversalDeserializer()
}

// custom are the kinds that are judged by their own definitions.
func custom(t testing.TB) map[string]*crd.Validator {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a download, the first time
	defer cancel()
	out := map[string]*crd.Validator{}
	for _, kind := range crd.Kinds() {
		v, err := crd.New(ctx, kind)
		require.NoError(t, err)
		out[kind] = v
	}
	return out
}

func TestEveryDocumentIsStrictlyValid(t *testing.T) {
	known, own, seen := decoder(), custom(t), map[string]int{}
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		names := map[string]bool{}
		for _, d := range docs {
			require.False(t, names[d.String()], "%s is there twice", d)
			names[d.String()] = true
			kind := d.Object.GetKind()
			seen[kind]++
			if v := own[kind]; v != nil {
				require.NoError(t, v.Check(d.Object.Object), d)
				continue
			}
			_, _, err := known.Decode([]byte(d.Text), nil, nil)
			require.NoError(t, err, d)
		}
	})
	for _, kind := range []string{
		"Deployment", "Job", "Service", "ServiceAccount", "ConfigMap", "HorizontalPodAutoscaler", "PodDisruptionBudget",
		"NetworkPolicy", "Ingress", "HTTPRoute", "ScaledObject", "ServiceMonitor",
	} {
		require.Positive(t, seen[kind], kind)
	}
}

// The checks themselves: each refuses a field that is misspelt.
func TestMisspeltFieldsAreRefused(t *testing.T) {
	known, own := decoder(), custom(t)
	for _, text := range []string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {template: {spec: {terminationGracePeriod: 5}}}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, dat: {a: b}}",
		"{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: x}, spec: {endpoint: []}}",
	} {
		object, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		_, _, err = known.Decode(object, nil, nil)
		require.True(t, runtime.IsStrictDecodingError(err), "%s: %v", text, err)
	}
	for kind, field := range map[string]string{"ScaledObject": "minReplicas", "HTTPRoute": "hostname"} {
		require.Error(t, own[kind].Check(map[string]any{"spec": map[string]any{field: 1}}))
		require.ErrorContains(t, own[kind].Check(parse(t, "{spec: {"+field+": 1}}")), field)
	}
}
