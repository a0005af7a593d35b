package chart_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
)

// Pods keep the restricted profile of Pod Security, and more.
func TestPodsAreRestricted(t *testing.T) {
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		for _, w := range workloads(t, docs) {
			spec, pod, c := w.template.Spec, w.template.Spec.SecurityContext, w.container().SecurityContext
			require.True(t, *pod.RunAsNonRoot, w.name)
			require.EqualValues(t, 65532, *pod.RunAsUser, w.name)
			require.EqualValues(t, 65532, *pod.RunAsGroup, w.name)
			require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SeccompProfile.Type, w.name)
			require.False(t, *c.AllowPrivilegeEscalation, w.name)
			require.True(t, *c.ReadOnlyRootFilesystem, w.name)
			require.Equal(t, []corev1.Capability{"ALL"}, c.Capabilities.Drop, w.name)
			require.Empty(t, c.Capabilities.Add, w.name)
			require.False(t, *spec.AutomountServiceAccountToken, w.name)
			require.False(t, *spec.EnableServiceLinks, w.name)
			require.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC, w.name)
			for _, v := range spec.Volumes {
				require.Nil(t, v.HostPath, w.name)
			}
		}
		for _, a := range all[corev1.ServiceAccount](t, docs, "ServiceAccount") {
			require.False(t, *a.AutomountServiceAccountToken)
		}
	})
}

// An image has a version that does not move.
func TestImagesArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^ghcr\.io/waggle-dev/waggle(:\d+\.\d+\.\d+|@sha256:[0-9a-f]{64})$`)
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		for _, w := range workloads(t, docs) {
			require.Regexp(t, pinned, w.container().Image, w.name)
		}
	})
}

func TestProbes(t *testing.T) {
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		for _, w := range services(t, docs) {
			c := w.container()
			require.Equal(t, []corev1.ContainerPort{{Name: "http", ContainerPort: 9000}, {Name: "metrics", ContainerPort: 9464}}, c.Ports, w.name)
			require.Equal(t, "0.0.0.0:9000", w.env("WAGGLE_ADDR"), w.name)
			for path, p := range map[string]*corev1.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
				require.Equal(t, path, p.HTTPGet.Path, w.name)
				require.Equal(t, "http", p.HTTPGet.Port.String(), w.name)
			}
			require.Equal(t, "/livez", c.StartupProbe.HTTPGet.Path, w.name)
			// Nothing answers before NATS and its streams are there: that takes minutes
			// when all of it starts at once, and killing the process would not help.
			start := time.Duration(c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold) * time.Second
			require.GreaterOrEqual(t, start, 5*time.Minute, w.name)
		}
	})
}

// stopMargin is what a group of components may take beyond its drain: the time that
// package lifecycle gives a component to stop, for as many as hang at once in the worst
// case that is planned for.
const stopMargin = 10 * time.Second

// No pod is killed before it has finished its work.
func TestGraceIsLongerThanTheDrain(t *testing.T) {
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		for _, w := range services(t, docs) {
			drain, err := time.ParseDuration(w.env("WAGGLE_SHUTDOWN"))
			require.NoError(t, err, w.name)
			sleep := time.Duration(w.container().Lifecycle.PreStop.Sleep.Seconds) * time.Second
			require.Positive(t, sleep, "%s: load balancers learn too late that it goes", w.name)
			grace := time.Duration(*w.template.Spec.TerminationGracePeriodSeconds) * time.Second
			require.GreaterOrEqual(t, grace, sleep+drain+stopMargin, w.name)
			if w.role == "gateway" {
				spread, err := time.ParseDuration(w.env("WAGGLE_GATEWAY_DRAIN_SPREAD"))
				require.NoError(t, err)
				require.LessOrEqual(t, spread, drain/2, "sockets need time to close after they were told to")
			}
		}
	})
}

func TestEveryRoleHasItsOwnSeed(t *testing.T) {
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		users := map[string]string{}
		for _, w := range workloads(t, docs) {
			require.Equal(t, "/etc/waggle-nats/nkey", w.env("WAGGLE_NATS_NKEY"), w.name)
			require.Equal(t, "verify", w.env("WAGGLE_NATS_BOOTSTRAP"), w.name)
			secret := ""
			for _, v := range w.template.Spec.Volumes {
				if v.Name == "nkey" {
					secret = v.Secret.SecretName
					require.EqualValues(t, 0o440, *v.Secret.DefaultMode, w.name)
				}
			}
			require.Equal(t, "waggle-nats-"+w.role, secret, w.name)
			require.Empty(t, users[secret], "%s and %s share a seed", users[secret], w.name)
			users[secret] = w.name
			require.Contains(t, mounts(w), "/etc/waggle-nats")
		}
	})
}

func mounts(w workload) []string {
	var out []string
	for _, m := range w.container().VolumeMounts {
		out = append(out, m.MountPath)
		if !m.ReadOnly && m.MountPath != "/tmp" && m.MountPath != "/workspace" {
			out = append(out, "writable: "+m.MountPath)
		}
	}
	return out
}

// Keys of models go to those who ask models, the key of states to those who sign them.
func TestSecretsGoToTheirRolesOnly(t *testing.T) {
	for _, w := range workloads(t, render(t, "external")) {
		var refs []string
		for _, e := range w.container().Env {
			if e.ValueFrom != nil {
				refs = append(refs, e.Name+" from "+e.ValueFrom.SecretKeyRef.Name)
			}
		}
		if w.role == "worker" {
			require.Equal(t, []string{"OPENAI_API_KEY from openai"}, refs)
		} else {
			require.Empty(t, refs, w.name)
		}
		require.Equal(t, w.role == "session", contains(mounts(w), "/etc/waggle-state"), w.name)
		require.Equal(t, w.role == "tools", contains(mounts(w), "/workspace"), w.name)
		require.NotContains(t, strings.Join(mounts(w), " "), "writable", w.name)
	}
}

func contains(list []string, s string) bool {
	return strings.Contains(" "+strings.Join(list, " ")+" ", " "+s+" ")
}

// The garbage collector works before the kernel kills.
func TestMemory(t *testing.T) {
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		for _, w := range services(t, docs) {
			r := w.container().Resources
			require.False(t, r.Requests.Cpu().IsZero(), "%s: without a request there is no autoscaling", w.name)
			limit := r.Limits.Memory()
			soft := resource.MustParse(strings.TrimSuffix(w.env("GOMEMLIMIT"), "B"))
			require.Negative(t, soft.Cmp(*limit), "%s: %s of %s", w.name, soft.String(), limit)
			require.Positive(t, soft.Cmp(*r.Requests.Memory()), w.name)
		}
	})
}

// A change of the settings restarts the roles that it concerns, and no others.
func TestSettingsRestartTheirRoles(t *testing.T) {
	sums := func(extra string) map[string]string {
		docs, err := chart.Render(folder, chart.Release, parse(t, extra), nil)
		require.NoError(t, err)
		out := map[string]string{}
		for _, w := range workloads(t, docs) {
			out[w.role] = w.template.Annotations["checksum/config"]
			require.NotEmpty(t, out[w.role], w.role)
		}
		for _, j := range all[batchv1.Job](t, docs, "Job") {
			out["Job"] = j.Name
		}
		return out
	}
	before := sums("{}")
	one, every := sums("{roles: {task: {config: {task: {tries: 5}}}}}"), sums("{config: {session: {ttl: 1h}}}")
	require.NotEqual(t, before["Job"], every["Job"], "a Job cannot be changed: it is another one")
	for role := range before {
		require.Equal(t, role == "task", before[role] != one[role], role)
		require.NotEqual(t, before[role], every[role], role)
	}
}
