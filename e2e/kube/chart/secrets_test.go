package chart_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
)

const secretsChecksum = "checksum/secrets"

// checksums returns the annotation of every workload, by role.
func checksums(t testing.TB, text string, found chart.Secrets) map[string]string {
	t.Helper()
	docs, err := chart.Render(folder, chart.Release, parse(t, text), found)
	require.NoError(t, err)
	out := map[string]string{}
	for _, w := range workloads(t, docs) {
		out[w.role] = w.template.Annotations[secretsChecksum]
	}
	return out
}

// An upgrade replaces the pods whose Secrets have changed since the last one, and no others.
func TestPodsAreReplacedWhenTheirSecretsChange(t *testing.T) {
	const text = `
natsTLS: {secret: tls}
modelKeys: {openai: {secret: openai}, anthropic: {secret: anthropic}}
stateKey: {secret: state}
roles:
  task: {env: [{name: PLAIN, value: x}, {name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: t}}}]}
`
	everybody := append(slices.Clone(roles), "bootstrap")
	concerned := map[string][]string{
		"tls": everybody, "openai": {"worker"}, "anthropic": {"worker"}, "state": {"session"}, "token": {"task"}, "waggle-gateway": {"gateway"},
		"of another release": nil,
	}
	for _, role := range everybody {
		concerned["waggle-nats-"+role] = []string{role}
	}
	found := chart.Secrets{}
	for name := range concerned {
		found[name] = map[string]string{"a": "b2xk"}
	}
	before := checksums(t, text, found)
	require.Equal(t, before, checksums(t, text, found), "the same Secrets give the same")
	for name, want := range concerned {
		changed := maps.Clone(found)
		changed[name] = map[string]string{"a": "bmV3"}
		var got []string
		for role, sum := range checksums(t, text, changed) {
			require.NotEmpty(t, sum, role)
			if sum != before[role] {
				got = append(got, role)
			}
		}
		require.ElementsMatch(t, want, got, name)
	}
}

// Without access to a cluster the annotation is absent: it would change with the tool that
// renders.
func TestNoClusterNoChecksum(t *testing.T) {
	found := chart.Secrets{"waggle-gateway": {"a": "YQ=="}}
	require.NotEmpty(t, checksums(t, "{}", found)["gateway"])
	for _, sums := range []map[string]string{
		checksums(t, "{}", nil), checksums(t, "{secretChanges: {lookup: false}}", found),
	} {
		for role, sum := range sums {
			require.Empty(t, sum, role)
		}
	}
}

// Controllers that watch Secrets look for annotations of Deployments.
func TestAnnotationsForControllersThatWatchSecrets(t *testing.T) {
	docs := render(t, "keda")
	for _, d := range all[appsv1.Deployment](t, docs, "Deployment") {
		require.Equal(t, map[string]string{"reloader.stakater.com/auto": "true"}, d.Annotations, d.Name)
	}
}
