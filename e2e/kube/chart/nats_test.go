package chart_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
)

// servers returns what the chart of NATS makes of its values.
func servers(t testing.TB, docs []chart.Document) appsv1.StatefulSet {
	t.Helper()
	var out appsv1.StatefulSet
	for _, d := range docs {
		if d.Object.GetKind() == "StatefulSet" {
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(d.Object.Object, &out, true))
			return out
		}
	}
	require.Fail(t, "there are no servers")
	return out
}

// The values make the servers' pods as restricted as the others.
func TestServersAreRestricted(t *testing.T) {
	for _, set := range []string{"default", "keda", "minimal"} {
		spec := servers(t, render(t, set)).Spec.Template.Spec
		require.True(t, *spec.SecurityContext.RunAsNonRoot)
		require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type)
		require.False(t, *spec.AutomountServiceAccountToken)
		require.Len(t, spec.Containers, 2)
		for _, c := range spec.Containers {
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, c.Name)
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, c.Name)
			require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, c.Name)
		}
	}
}

// Both containers see the users: the server reads them, the reloader watches them, which
// it does below /etc only.
func TestServersAndTheirReloaderSeeTheUsers(t *testing.T) {
	spec := servers(t, render(t, "default")).Spec.Template.Spec
	for _, c := range spec.Containers {
		paths := map[string]string{}
		for _, m := range c.VolumeMounts {
			paths[m.MountPath] = m.Name
		}
		require.Equal(t, "accounts", paths["/etc/nats-accounts"], c.Name)
		require.Equal(t, "config", paths["/etc/nats-config"], c.Name)
	}
}

// The configuration of the servers holds what the values say, beside their own.
func TestServersGetTheirConfiguration(t *testing.T) {
	for set, want := range map[string][]string{
		"default": {"include ../nats-accounts/accounts.conf;", `"max_payload": 1MB`, `"sync_interval": "100ms"`, `"max_file_store": 36Gi`, `"cluster": {`},
		"minimal": {"include ../nats-accounts/accounts.conf;", `"max_file_store": 5400Mi`},
	} {
		found := false
		for _, c := range render(t, set) {
			if c.String() == "ConfigMap/waggle-nats-config" {
				found = true
				for _, line := range want {
					require.Contains(t, c.Text, line, set)
				}
				require.Equal(t, set == "default", strings.Contains(c.Text, `"cluster"`), set)
			}
		}
		require.True(t, found, set)
	}
}
