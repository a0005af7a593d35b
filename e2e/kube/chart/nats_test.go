package chart_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// serverPods returns the StatefulSet that the NATS chart makes.
func serverPods(t testing.TB, set string) appsv1.StatefulSet {
	t.Helper()
	found := all[appsv1.StatefulSet](t, servers(t, set), "StatefulSet")
	require.Len(t, found, 1)
	return found[0]
}

// TestWaggleFindsItsServers: the names and labels by which the one release looks for the
// other are those that the other has.
func TestWaggleFindsItsServers(t *testing.T) {
	for _, set := range withServers {
		found := serverPods(t, set)
		for _, w := range workloads(t, render(t, set)) {
			require.Equal(t, "nats://"+found.Name+":4222", w.env("WAGGLE_NATS"), w.name)
		}
		for _, p := range all[networkingv1.NetworkPolicy](t, render(t, set), "NetworkPolicy") {
			if p.Name == "waggle-nats" {
				require.Subset(t, found.Spec.Template.Labels, p.Spec.PodSelector.MatchLabels)
			}
		}
	}
}

// The values make the servers' pods as restricted as the others.
func TestServersAreRestricted(t *testing.T) {
	for _, set := range withServers {
		spec := serverPods(t, set).Spec.Template.Spec
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
	spec := serverPods(t, "default").Spec.Template.Spec
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
		"default": {"include ../nats-accounts/accounts.conf;", `"max_payload": 1MB`, `"sync_interval": "1s"`, `"max_file_store": 36Gi`, `"cluster": {`},
		"minimal": {"include ../nats-accounts/accounts.conf;", `"max_file_store": 6400Mi`},
	} {
		found := false
		for _, c := range servers(t, set) {
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
