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

	"github.com/waggle-dev/waggle/e2e/kube/chart"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// Values that cannot be meant are refused before anything is made of them.
func TestValuesAreRefused(t *testing.T) {
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
		"{streams: {partitions: 32}}":                         "partitions",
		"{streams: {partitions: 64}}":                         "waggle keys --dir keys --partitions 64",
		"{nats: {accounts: 'users: []'}}":                     "may read 0 event streams",
		"{streams: {eventMaxAge: 30d}}":                       "eventMaxAge",
		"{drain: {marginSeconds: 0}}":                         "marginSeconds",
		"{networkPolicy: {dns: []}}":                          "dns",
		"{route: {enabled: true}}":                            "parentRefs",
		"{nats: {release: ''}}":                               "url",
		"{nats: {release: A_b}}":                              "release",
		"{nats: {config: {cluster: {replicas: 1}}}}":          "config",
		"{global: {image: {registri: x}}}":                    "registri",
		"{networkPolicy: {dns: [{ipBlok: {}}]}}":              "ipBlok",
		"{roles: {team: {tolerations: [{keys: x}]}}}":         "keys",
		"{roles: {team: {env: [{name: X, val: y}]}}}":         "val",
		"{roles: {team: {extraEnvFrom: [{secret: {}}]}}}":     "secret",
		"{roles: {team: {egress: {extra: [{port: 1}]}}}}":     "port",
		"{route: {parentRefs: [{nam: x}]}}":                   "nam",
		"{nats: {external: {url: 'http://x:1'}}}":             "url",
		"{secretChanges: {lookup: sometimes}}":                "lookup",
		"{serviceAccount: {annotation: {}}}":                  "annotation",
		"{serviceAccount: {create: false}}":                   "serviceAccount.name",
		"{ingress: {hosts: [x]}}":                             "hosts",
		"{podSecurityContext: {runAsUsr: 1}}":                 "runAsUsr",
		"{roles: {team: {securityContext: {privilged: 1}}}}":  "privilged",
		"{roles: {team: {affinity: {nodeAffinty: {}}}}}":      "nodeAffinty",
		"{roles: {team: {extraVolumes: [{emptyDir: {}}]}}}":   "extraVolumes",
		"{nameOverride: A_b}":                                 "nameOverride",
		"{nats: {external: {url: 'nats://x:4222'}}}":          "choose one",
		"{roles: {gateway: {configSecret: {name: ''}}}}":      "without authentication",
		"{nats: {release: '', external: {url: 'nats://x:1'}}, roles: {worker: {autoscaling: {keda: true}}}}": "nats.external.monitoring",
	} {
		_, err := chart.Render(folder, chart.Release, parse(t, text), nil)
		require.ErrorContains(t, err, why, text)
	}
}

// The chart of NATS refuses what it does not know: its schema here is what the official one
// documents.
func TestValuesOfTheServersAreRefused(t *testing.T) {
	for text, why := range map[string]string{
		"{config: {jetsream: {enabled: true}}}":           "jetsream",
		"{config: {jetstream: {fileStorage: {}}}}":        "fileStorage", // its name before 1.0
		"{natsbox: {enabled: true}}":                      "natsbox",
		"{config: {cluster: {replicas: 1}}}":              "replicas",
		"{container: {patch: [{add: /x, value: 1}]}}":     "add",
		"{podTemplate: {topologySpreadConstraints: [x]}}": "topologySpreadConstraints",
	} {
		_, err := chart.Render(natsFolder, chart.Servers, parse(t, text), nil)
		require.ErrorContains(t, err, why, text)
	}
}

// The servers do not start without the public keys of all users.
func TestNATSGetsThePublicKeyOfEveryRole(t *testing.T) {
	nats := serverValues(t, "default")
	env, _ := nested(nats, "container", "env").(map[string]any)
	var want []string
	for _, l := range permission.All(subject.DefaultPartitions) {
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
	nats := serverValues(t, "default")
	require.Equal(t, "../nats-accounts/accounts.conf", nested(nats, "config", "merge", "$include"))
	require.Equal(t, "1s", nested(nats, "config", "jetstream", "merge", "sync_interval"))
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
	require.Fail(t, "no object is the ConfigMap", name)
}

// The volume of a server has room for its files, which take more than their contents. A test of cmd/repocheck shows that all streams
// fit into the server, with a real one and these values.
func TestStoresFitIntoTheirVolumes(t *testing.T) {
	for _, set := range []string{"default", "minimal"} {
		store := nested(serverValues(t, set), "config", "jetstream", "fileStore")
		limit, _ := nested(store, "maxSize").(string)
		volume, _ := nested(store, "pvc", "size").(string)
		require.LessOrEqual(t, quantity(t, limit), quantity(t, volume)/10*9, set)
	}
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
