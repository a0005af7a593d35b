package chart_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// opened describes what a policy lets out: the ports, by whether they lead anywhere on
// the internet.
func opened(rules []networking.NetworkPolicyEgressRule) (ports map[int]bool) {
	ports = map[int]bool{}
	for _, r := range rules {
		internet := len(r.To) == 0
		for _, p := range r.To {
			internet = internet || p.IPBlock != nil && p.IPBlock.CIDR == "0.0.0.0/0"
		}
		for _, p := range r.Ports {
			ports[p.Port.IntValue()] = internet
		}
	}
	return ports
}

// Every pod has one policy for both directions, which opens NATS and names and nothing
// else, but for the roles whose work is outside.
func TestWhoMayTalkToWhom(t *testing.T) {
	for set, internet := range map[string][]string{
		"default":  {"worker", "tools"},
		"external": {"worker", "tools", "gateway"}, // the keys of the identity provider
	} {
		docs := render(t, set)
		policies := all[networking.NetworkPolicy](t, docs, "NetworkPolicy")
		for _, w := range workloads(t, docs) {
			p := policyOf(t, policies, w)
			want := map[int]bool{53: false, 4222: false}
			if set == "external" && w.role != "bootstrap" {
				want[4318] = false
			}
			if contains(internet, w.role) {
				want[443] = true
			}
			require.Equal(t, want, opened(p.Spec.Egress), "%s: %s", set, w.role)
			checkIngress(t, p, w.role)
		}
	}
}

func policyOf(t testing.TB, policies []networking.NetworkPolicy, w workload) networking.NetworkPolicy {
	t.Helper()
	var found []networking.NetworkPolicy
	for _, p := range policies {
		sel, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		require.NoError(t, err)
		if sel.Matches(labels.Set(w.template.Labels)) {
			found = append(found, p)
		}
	}
	require.Len(t, found, 1, w.name)
	require.Len(t, found[0].Spec.PolicyTypes, 2, "one that says nothing of a direction leaves it open")
	return found[0]
}

func checkIngress(t testing.TB, p networking.NetworkPolicy, role string) {
	t.Helper()
	if role == "bootstrap" {
		require.Empty(t, p.Spec.Ingress)
		return
	}
	last := p.Spec.Ingress[len(p.Spec.Ingress)-1]
	require.Len(t, last.Ports, 1, role)
	require.Equal(t, "metrics", last.Ports[0].Port.String(), role)
	require.NotEmpty(t, last.From, "metrics are for monitoring only")
	if role != "gateway" {
		require.Len(t, p.Spec.Ingress, 1, role)
		return
	}
	require.Len(t, p.Spec.Ingress, 2)
	require.Equal(t, "http", p.Spec.Ingress[0].Ports[0].Port.String())
	require.Empty(t, p.Spec.Ingress[0].From, "clients come from anywhere")
}

// The pod of "helm test" reaches gateways, and no pod reaches it: a namespace may deny
// traffic that no policy allows.
func TestTheTestReachesGatewaysOnly(t *testing.T) {
	docs := render(t, "default")
	pod := all[corev1.Pod](t, docs, "Pod")[0]
	p := policyOf(t, all[networking.NetworkPolicy](t, docs, "NetworkPolicy"), workload{name: pod.Name, template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta}})
	require.Empty(t, p.Spec.Ingress)
	require.Len(t, p.Spec.Egress, 2)
	require.Equal(t, "http", p.Spec.Egress[1].Ports[0].Port.String())
	sel, err := metav1.LabelSelectorAsSelector(p.Spec.Egress[1].To[0].PodSelector)
	require.NoError(t, err)
	for _, w := range workloads(t, docs) {
		require.Equal(t, w.role == "gateway", sel.Matches(labels.Set(w.template.Labels)), w.name)
	}
}

// NATS answers only the pods of this release; Prometheus reads its figures.
func TestWhoReachesNATS(t *testing.T) {
	docs := render(t, "default")
	for _, p := range all[networking.NetworkPolicy](t, docs, "NetworkPolicy") {
		if p.Name != "waggle-nats" {
			continue
		}
		require.Len(t, p.Spec.Ingress, 3)
		clients := p.Spec.Ingress[0]
		require.Equal(t, 4222, clients.Ports[0].Port.IntValue())
		require.Len(t, clients.From, 1)
		sel, err := metav1.LabelSelectorAsSelector(clients.From[0].PodSelector)
		require.NoError(t, err)
		for _, w := range workloads(t, docs) {
			require.True(t, sel.Matches(labels.Set(w.template.Labels)), w.name)
		}
		require.False(t, sel.Matches(labels.Set{"app.kubernetes.io/name": "waggle", "app.kubernetes.io/instance": "other"}))
		return
	}
	require.Fail(t, "NATS has no policy")
}

// The private addresses, the cloud's metadata among them, are not the internet.
func TestTheInternetIsNotTheCluster(t *testing.T) {
	for _, p := range all[networking.NetworkPolicy](t, render(t, "external"), "NetworkPolicy") {
		for _, r := range p.Spec.Egress {
			for _, to := range r.To {
				if to.IPBlock != nil && to.IPBlock.CIDR == "0.0.0.0/0" {
					require.Subset(t, to.IPBlock.Except, []string{"10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"}, p.Name)
				}
			}
		}
	}
}

func TestOnlyGatewaysAreReachedFromOutside(t *testing.T) {
	docs := render(t, "external")
	paths := map[string]bool{}
	for _, i := range all[networking.Ingress](t, docs, "Ingress") {
		for _, p := range i.Spec.Rules[0].HTTP.Paths {
			require.Equal(t, "waggle-gateway", p.Backend.Service.Name)
			paths[p.Path] = true
		}
	}
	// Metrics and probes stay inside.
	require.Equal(t, map[string]bool{"/ws": true, "/api": true, "/health": true}, paths)
}
