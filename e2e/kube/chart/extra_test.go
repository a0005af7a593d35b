package chart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	yamlv3 "go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/waggle-dev/waggle/e2e/kube/chart"
)

// extras sets everything that operators add to what the chart makes.
const extras = `
nameOverride: bees
commonLabels: {example.com/team: platform}
global: {image: {registry: registry.example.com:5000, pullSecretNames: [registry]}}
serviceAccount: {annotations: {example.com/identity: waggle}}
podSecurityContext: {runAsUser: 1000, supplementalGroups: [7]}
securityContext: {readOnlyRootFilesystem: false}
ingress: {enabled: true, host: a.example.com, extraHosts: [b.example.com, c.example.com], tlsSecret: tls}
networkPolicy: {clients: [{podSelector: {matchLabels: {app: web}}}]}
extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Release.Name }}-mine"}}
  - |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: text}
roles:
  team:
    affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}}}
    extraEnvFrom: [{secretRef: {name: more}}]
    extraVolumes: [{name: more, emptyDir: {}}]
    extraVolumeMounts: [{name: more, mountPath: /more}]
    initContainers: [{name: first, image: "busybox:1.37"}]
    sidecars: [{name: beside, image: "busybox:1.37"}]
    podSecurityContext: {fsGroup: 9}
    securityContext: {runAsUser: 1001}
`

func withExtras(t *testing.T) []chart.Document {
	t.Helper()
	docs, err := chart.Render(folder, chart.Release, parse(t, extras), nil)
	require.NoError(t, err)
	known := decoder()
	for _, d := range docs {
		_, _, err := known.Decode([]byte(d.Text), nil, nil)
		require.NoError(t, err, d)
	}
	return docs
}

func TestWhatOperatorsAdd(t *testing.T) {
	docs := withExtras(t)
	objects := map[string]bool{}
	for _, d := range docs {
		objects[d.String()] = true
		if strings.HasPrefix(d.Template, "waggle/templates/") && d.Template != "waggle/templates/extra.yaml" {
			require.Equal(t, "platform", d.Object.GetLabels()["example.com/team"], d)
		}
	}
	for _, name := range []string{"ConfigMap/waggle-mine", "ConfigMap/text", "Deployment/waggle-bees-team", "Service/waggle-bees-gateway", "ServiceAccount/waggle-bees"} {
		require.True(t, objects[name], name)
	}
	for _, a := range all[corev1.ServiceAccount](t, docs, "ServiceAccount") {
		require.Equal(t, "waggle", a.Annotations["example.com/identity"])
	}
	hosts := all[networkingv1.Ingress](t, docs, "Ingress")[0].Spec
	require.Len(t, hosts.Rules, 3)
	require.Equal(t, []string{"a.example.com", "b.example.com", "c.example.com"}, hosts.TLS[0].Hosts)
}

// Additions to a role are in its pods, additions to the release in all pods; the rest
// stays as the restricted profile asks for.
func TestWhatOperatorsAddToPods(t *testing.T) {
	for _, d := range all[appsv1.Deployment](t, withExtras(t), "Deployment") {
		spec := d.Spec.Template.Spec
		c := spec.Containers[0]
		require.True(t, strings.HasPrefix(c.Image, "registry.example.com:5000/waggle-dev/waggle:"), c.Image)
		require.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, spec.ImagePullSecrets)
		require.Equal(t, "waggle-bees", spec.ServiceAccountName)
		require.Equal(t, "platform", d.Spec.Template.Labels["example.com/team"])
		require.Equal(t, "bees", d.Spec.Selector.MatchLabels["app.kubernetes.io/name"])
		require.EqualValues(t, 1000, *spec.SecurityContext.RunAsUser)
		require.True(t, *spec.SecurityContext.RunAsNonRoot)
		require.False(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
		mine := d.Name == "waggle-bees-team"
		require.Equal(t, mine, spec.Affinity != nil, d.Name)
		require.Equal(t, mine, len(c.EnvFrom) == 1, d.Name)
		require.Equal(t, mine, len(spec.InitContainers) == 1, d.Name)
		require.Equal(t, mine, len(spec.Containers) == 2, d.Name)
		require.Equal(t, mine, spec.Volumes[len(spec.Volumes)-1].Name == "more", d.Name)
		require.Equal(t, mine, c.VolumeMounts[len(c.VolumeMounts)-1].Name == "more", d.Name)
		require.Equal(t, mine, *spec.SecurityContext.FSGroup == 9, d.Name)
		require.Equal(t, mine, c.SecurityContext.RunAsUser != nil, d.Name)
	}
}

// The pod of "helm test" is as restricted as the others, and asks the Service.
func TestTheTestOfTheRelease(t *testing.T) {
	eachSet(t, func(t *testing.T, docs []chart.Document) {
		pods := all[corev1.Pod](t, docs, "Pod")
		require.Len(t, pods, 1)
		p, c := pods[0], pods[0].Spec.Containers[0]
		require.Equal(t, "test", p.Annotations["helm.sh/hook"])
		require.Contains(t, strings.Join(c.Args, " "), "healthcheck --addr waggle-gateway:80")
		require.True(t, *p.Spec.SecurityContext.RunAsNonRoot)
		require.False(t, *p.Spec.AutomountServiceAccountToken)
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	})
}

const (
	valuesBegin = "<!-- values: written by \"make helm-golden\" -->\n"
	valuesEnd   = "<!-- end of values -->"
)

// The chart's page lists every value, as values.yaml has it: make helm-golden writes it.
func TestThePageListsEveryValue(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "deploy/helm/waggle/values.yaml"))
	require.NoError(t, err)
	var file yamlv3.Node
	require.NoError(t, yamlv3.Unmarshal(raw, &file))
	table := "| Value | Default | |\n|---|---|---|\n" + rows("", file.Content[0])
	page := filepath.Join(root, "deploy/helm/waggle/README.md")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), valuesBegin)
	require.True(t, found)
	had, after, found := strings.Cut(rest, valuesEnd)
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+valuesBegin+"\n"+table+"\n"+valuesEnd+after), 0o600))
		had = "\n" + table + "\n"
	}
	require.Equal(t, "\n"+table+"\n", had, "if it is meant: make helm-golden")
}

// rows returns a line of the table for each value below a mapping.
func rows(prefix string, m *yamlv3.Node) string {
	var b strings.Builder
	for i := 0; i < len(m.Content); i += 2 {
		key, v := m.Content[i], m.Content[i+1]
		path := prefix + key.Value
		switch {
		case prefix == "roles." && path != "roles.gateway" && path != "roles.session":
			continue
		case v.Kind == yamlv3.MappingNode && len(v.Content) > 0 && v.Style != yamlv3.FlowStyle:
			b.WriteString(rows(path+".", v))
			continue
		}
		raw, _ := yamlv3.Marshal(plain(v)) // a parsed value can be written
		comment := strings.NewReplacer("# ", "", "#", "", "\n", " ", "|", "\\|").Replace(strings.TrimSpace(key.HeadComment + "\n" + v.LineComment))
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", path, strings.TrimSpace(string(raw)), strings.TrimSpace(comment))
	}
	return b.String()
}

// plain returns the value on one line, without comments.
func plain(n *yamlv3.Node) *yamlv3.Node {
	out := *n
	out.HeadComment, out.LineComment, out.FootComment, out.Anchor = "", "", "", ""
	if n.Kind != yamlv3.ScalarNode {
		out.Style = yamlv3.FlowStyle
	}
	out.Content = nil
	for _, c := range n.Content {
		out.Content = append(out.Content, plain(c))
	}
	return &out
}
