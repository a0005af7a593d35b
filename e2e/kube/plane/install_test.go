package plane_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
	"github.com/waggle-dev/waggle/e2e/kube/plane"
)

// helm runs Helm's command, as an administrator does who installs the chart.
func (c *cluster) helm(t testing.TB, namespace string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(c.ctx, c.bin[plane.Helm], append(args, "--namespace", namespace, "--kubeconfig", c.config)...)
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run runs Helm's command, which has to succeed, and says how long it took.
func (c *cluster) run(t testing.TB, namespace string, args ...string) {
	t.Helper()
	began := time.Now()
	if args[0] != "uninstall" && args[0] != "rollback" {
		args = append(args, chart.Release, waggleChart)
	}
	if args[0] != "uninstall" {
		args = append(args, "--wait-for-jobs")
	}
	out, err := c.helm(t, namespace, append(args, "--wait", "--timeout", maxWait.String())...)
	require.NoError(t, err, out)
	t.Logf("helm %s: %s", strings.Join(args[:1], " "), time.Since(began).Round(100*time.Millisecond))
}

// serve installs the servers that go with a set of values, as the chart's page says: they
// wait for Waggle's release.
func (c *cluster) serve(t testing.TB, namespace, set string) {
	t.Helper()
	files := serverFiles(set)
	if files == nil {
		return
	}
	args := []string{"install", chart.Servers, natsChart}
	for _, f := range files {
		args = append(args, "--values", f)
	}
	out, err := c.helm(t, namespace, args...)
	require.NoError(t, err, out)
}

// revision returns the number of what is deployed.
func (c *cluster) revision(t testing.TB, namespace string) int {
	t.Helper()
	out, err := c.helm(t, namespace, "status", chart.Release, "-o", "json")
	require.NoError(t, err, out)
	var status struct {
		Version int `json:"version"`
		Info    struct {
			Status string `json:"status"`
		} `json:"info"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &status), out)
	require.Equal(t, "deployed", status.Info.Status)
	return status.Version
}

// secret makes or changes a Secret.
func (c *cluster) secret(t testing.TB, namespace, name, content string) {
	t.Helper()
	require.NoError(t, c.client.Apply(c.ctx, namespace, object(t, "{apiVersion: v1, kind: Secret, metadata: {name: %s}, stringData: {content: %s}}", name, content)))
}

// prepare makes the namespace and what has to be there before the chart, and returns what
// is there.
func (c *cluster) prepare(t testing.TB, namespace string) []string {
	c.namespace(t, namespace)
	c.workspace(t, namespace)
	for _, name := range []string{"waggle-gateway", "waggle-nats-public", "waggle-signing", "waggle-signing-public", "waggle-tls", "waggle-state", "openai"} {
		c.secret(t, namespace, name, "old")
	}
	for _, role := range []string{"gateway", "session", "pipeline", "worker", "task", "team", "tools", "bootstrap"} {
		c.secret(t, namespace, "waggle-nats-"+role, role)
	}
	var before []string
	err := wait.PollUntilContextTimeout(c.ctx, 300*time.Millisecond, maxWait, true, func(context.Context) (bool, error) {
		var err error
		before, err = c.client.Left(c.ctx, namespace)
		return slices.Contains(before, "ConfigMap/kube-root-ca.crt"), err // a controller makes it
	})
	require.NoError(t, err)
	return before
}

// gone waits until only the earlier objects and the data are left.
func (c *cluster) gone(t testing.TB, namespace string, before []string) {
	t.Helper()
	var rest []string
	err := wait.PollUntilContextTimeout(c.ctx, 300*time.Millisecond, maxWait, true, func(context.Context) (bool, error) {
		left, err := c.client.Left(c.ctx, namespace)
		rest = slices.DeleteFunc(left, func(s string) bool {
			return slices.Contains(before, s) || strings.HasPrefix(s, "PersistentVolumeClaim/")
		})
		return len(rest) == 0, err
	})
	require.NoError(t, err, "left behind: %v", rest)
}

// changed returns the Deployments whose pods were replaced since.
func (c *cluster) changed(t testing.TB, namespace string, since map[string]string) []string {
	t.Helper()
	var out []string
	for name, is := range revisions(c.rollout(t, namespace)) {
		if is != since[name] {
			out = append(out, strings.TrimPrefix(name, chart.Release+"-"))
		}
	}
	return out
}

func TestTheLifeOfARelease(t *testing.T) {
	c := start(t)
	const namespace = "life"
	before := c.prepare(t, namespace)
	c.serve(t, namespace, "default")
	c.run(t, namespace, "install")
	require.Equal(t, 1, c.revision(t, namespace))
	require.Len(t, c.rollout(t, namespace), 7)
	require.EqualValues(t, 3, c.servers(t, namespace))
	made, err := plane.List[batchv1.Job](c.ctx, c.client, jobs, namespace, "")
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.EqualValues(t, 1, made[0].Status.Succeeded, "Helm has waited for the Job")

	t.Run("an upgrade without a change restarts nothing", func(t *testing.T) {
		since := revisions(c.rollout(t, namespace))
		c.run(t, namespace, "upgrade")
		require.Empty(t, c.changed(t, namespace, since))
	})
	t.Run("an upgrade after a Secret has changed", func(t *testing.T) {
		since := revisions(c.rollout(t, namespace))
		c.secret(t, namespace, "waggle-gateway", "new")
		c.run(t, namespace, "upgrade")
		require.Equal(t, []string{"gateway"}, c.changed(t, namespace, since))
	})
	t.Run("an upgrade with other values, and back", func(t *testing.T) { c.upgrades(t, namespace) })
	t.Run("values that cannot be meant", func(t *testing.T) {
		is := c.revision(t, namespace)
		out, err := c.helm(t, namespace, "upgrade", chart.Release, waggleChart, "--set", "image.tag=latest")
		require.Error(t, err)
		require.Contains(t, out, "/image/tag")
		require.Equal(t, is, c.revision(t, namespace))
	})
	c.run(t, namespace, "uninstall", chart.Release, chart.Servers)
	c.gone(t, namespace, before)
	// The selector with which docs/OPERATIONS.md deletes the data.
	data, err := plane.List[corev1.PersistentVolumeClaim](c.ctx, c.client, claims, namespace, "app.kubernetes.io/instance="+chart.Servers)
	require.NoError(t, err)
	require.Len(t, data, 3, "data stays")
}

// upgrades: what has other values rolls out without a gap; a rollback brings the old ones.
func (c *cluster) upgrades(t *testing.T, namespace string) {
	since, first := revisions(c.rollout(t, namespace)), c.revision(t, namespace)
	require.Equal(t, "100m", c.cpu(t, namespace))
	c.run(t, namespace, "upgrade", "--set", "roles.session.resources.requests.cpu=150m")
	require.Equal(t, []string{"session"}, c.changed(t, namespace, since))
	require.Equal(t, "150m", c.cpu(t, namespace))
	require.Equal(t, first+1, c.revision(t, namespace))

	since = revisions(c.rollout(t, namespace))
	c.run(t, namespace, "rollback", chart.Release)
	require.Equal(t, []string{"session"}, c.changed(t, namespace, since))
	require.Equal(t, "100m", c.cpu(t, namespace))
	require.Equal(t, first+2, c.revision(t, namespace))
}

// cpu returns what the pods of sessions ask for.
func (c *cluster) cpu(t testing.TB, namespace string) string {
	t.Helper()
	i := slices.IndexFunc(c.rollout(t, namespace), func(d appsv1.Deployment) bool { return d.Name == "waggle-session" })
	return c.rollout(t, namespace)[i].Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()
}

// Every set of values can be installed and goes without a trace, hooks included.
func TestEverySetComesAndGoes(t *testing.T) {
	c := start(t)
	for _, set := range []string{"external", "keda", "minimal"} {
		t.Run(set, func(t *testing.T) {
			namespace := "set-" + set
			before := c.prepare(t, namespace)
			c.serve(t, namespace, set)
			c.run(t, namespace, "install", "--values", filepath.Join("../chart/testdata/values", set+".yaml"))
			require.Len(t, c.rollout(t, namespace), 7)
			c.run(t, namespace, "upgrade", "--reuse-values")
			gone := []string{chart.Release}
			if set != "external" {
				gone = append(gone, chart.Servers)
			}
			c.run(t, namespace, append([]string{"uninstall"}, gone...)...)
			c.gone(t, namespace, before)
		})
	}
}
