package chart_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// Values that cannot be meant are refused before anything is made of them.
func TestValuesAreRefused(t *testing.T) {
	dir, err := folder()
	require.NoError(t, err)
	for text, why := range map[string]string{
		"{replica: 3}":                                        "replica",
		"{roles: {gateway: {replica: 3}}}":                    "replica",
		"{roles: {gatway: {replicas: 3}}}":                    "gatway",
		"{roles: {session: {autoscaling: {connections: 5}}}}": "connections",
		"{image: {tag: latest}}":                              "tag",
		"{config: {addr: '127.0.0.1:1'}}":                     "addr",
		"{config: {nats: {url: 'nats://x:1'}}}":               "nats",
		"{config: {auth: {api_keys: []}}}":                    "api_keys",
		"{config: {shutdown: 5s}}":                            "shutdown",
		"{streams: {replicas: 2}}":                            "replicas",
		"{streams: {eventMaxAge: 30d}}":                       "eventMaxAge",
		"{drain: {marginSeconds: 0}}":                         "marginSeconds",
		"{networkPolicy: {dns: []}}":                          "dns",
		"{route: {enabled: true}}":                            "parentRefs",
		"{nats: {enabled: false}}":                            "url",
		"{nats: {external: {url: 'http://x:1'}}}":             "url",
		"{secretChanges: {lookup: sometimes}}":                "lookup",
		// The chart of NATS: its schema is what the official one documents.
		"{nats: {config: {jetsream: {enabled: true}}}}":                                                        "jetsream",
		"{nats: {config: {jetstream: {fileStorage: {}}}}}":                                                     "fileStorage", // its name before 1.0
		"{nats: {natsbox: {enabled: true}}}":                                                                   "natsbox",
		"{nats: {config: {cluster: {replicas: 1}}}}":                                                           "replicas",
		"{nats: {container: {patch: [{add: /x, value: 1}]}}}":                                                  "add",
		"{nats: {podTemplate: {topologySpreadConstraints: [x]}}}":                                              "topologySpreadConstraints",
		"{nats: {external: {url: 'nats://x:4222'}}}":                                                           "choose one",
		"{roles: {gateway: {configSecret: {name: ''}}}}":                                                       "nobody would have to authenticate",
		"{nats: {enabled: false, external: {url: 'nats://x:1'}}, roles: {agent: {autoscaling: {keda: true}}}}": "nats.external.monitoring",
	} {
		_, err := chart.Render(dir, parse(t, text), nil)
		require.ErrorContains(t, err, why, text)
	}
}

// The servers do not start without the public keys of all users.
func TestNATSGetsThePublicKeyOfEveryRole(t *testing.T) {
	nats := given(t, "default")
	env, _ := nested(nats, "container", "env").(map[string]any)
	var want []string
	for _, l := range permission.All() {
		want = append(want, permission.Variable(l.Role))
	}
	want = append(want, permission.Variable(permission.System))
	var got []string
	for name, v := range env {
		got = append(got, name)
		require.Equal(t, "waggle-nats-public", nested(v, "valueFrom", "secretKeyRef", "name"))
		require.Equal(t, name, nested(v, "valueFrom", "secretKeyRef", "key"))
	}
	require.ElementsMatch(t, want, got)
	accounts, err := os.ReadFile(filepath.Join(root, "deploy/helm/waggle/files/accounts.conf"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`\$(WAGGLE_\w+)`).FindAllStringSubmatch(string(accounts), -1) {
		require.True(t, slices.Contains(got, m[1]), m[1])
	}
}

// The users and what they may do are where the configuration of the servers includes them.
func TestNATSIncludesTheUsers(t *testing.T) {
	nats := given(t, "default")
	require.Equal(t, "../nats-accounts/accounts.conf", nested(nats, "config", "merge", "$include"))
	require.Equal(t, "100ms", nested(nats, "config", "jetstream", "merge", "sync_interval"))
	patches, _ := nested(nats, "container", "patch").([]any)
	require.Equal(t, "/etc/nats-accounts", nested(patches[0], "value", "mountPath"))
	patches, _ = nested(nats, "podTemplate", "patch").([]any)
	name := nested(patches[0], "value", "configMap", "name")
	for _, c := range all[corev1.ConfigMap](t, render(t, "default"), "ConfigMap") {
		if c.Name == name {
			require.Contains(t, c.Data["accounts.conf"], "nkey: $WAGGLE_NKEY_GATEWAY")
			return
		}
	}
	require.Fail(t, "nobody makes the ConfigMap", name)
}

// All streams fit into what a server may store, and that into its volume: files take more
// than what is in them.
func TestStreamsFit(t *testing.T) {
	for _, set := range []string{"default", "minimal"} {
		store := nested(given(t, set), "config", "jetstream", "fileStore")
		limit, _ := nested(store, "maxSize").(string)
		volume, _ := nested(store, "pvc", "size").(string)
		require.LessOrEqual(t, quantity(t, limit), quantity(t, volume)/10*9, set)
		for _, w := range workloads(t, render(t, set)) {
			need := quantity(t, w.env("WAGGLE_NATS_EVENT_MAX_BYTES"))*int64(partitions()) + quantity(t, "1Gi")
			require.LessOrEqual(t, need, quantity(t, limit), "%s: %s", set, w.name)
		}
	}
}

// given returns the values that the chart of NATS gets.
func given(t testing.TB, set string) map[string]any {
	t.Helper()
	for _, d := range render(t, set) {
		if d.String() == "ConfigMap/nats-values" {
			text, _, err := unstructured.NestedString(d.Object.Object, "data", "values.yaml")
			require.NoError(t, err)
			return parse(t, text)
		}
	}
	require.Fail(t, "the chart of NATS is not in use")
	return nil
}

func nested(v any, path ...string) any {
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

// NOTES name what the pods wait for.
func TestNotesNameTheSecrets(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/helm/waggle/templates/NOTES.txt"))
	require.NoError(t, err)
	for _, s := range []string{"waggle keys --dir", "nkeys.secretPrefix", "waggle-nats-public", "nkeys.env"} {
		require.True(t, strings.Contains(string(text), s) || strings.Contains(string(text), "."+s), s)
	}
}
