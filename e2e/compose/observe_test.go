//go:build compose

package compose_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// prometheus asks the API of the fleet's Prometheus.
type prometheus struct {
	t    *testing.T
	addr string
}

// get decodes the data of an answer.
func (p prometheus) get(path string, data any) {
	p.t.Helper()
	answer := process.Get(p.t, "http://"+p.addr+"/api/v1/"+path)
	var page struct {
		Status string
		Error  string
		Data   json.RawMessage
	}
	require.NoError(p.t, json.Unmarshal([]byte(answer.Body), &page), answer.Body)
	require.Equal(p.t, "success", page.Status, "%s: %s", path, page.Error)
	require.NoError(p.t, json.Unmarshal(page.Data, data), answer.Body)
}

// TestTheFleetIsObserved: the profile "observability" as it is in the file. Prometheus
// finds every container of every service and can carry out all alerts and all queries of
// the dashboard; the collector gets the traces of a chat. Grafana itself is not started:
// it cannot be built from Go modules alone.
func TestTheFleetIsObserved(t *testing.T) {
	p := prometheus{t: t, addr: freeport.Addr(t)}
	f := start(t, tools(t)[0], "WAGGLE_PROMETHEUS_PORT="+port(t, p.addr), "OTEL_EXPORTER_OTLP_ENDPOINT=http://otel:4318")
	f.compose("up", "-d", "prometheus", "otel")
	f.talk(0).Once()

	config := f.compose("exec", "-T", "prometheus", "/bin/promtool", "check", "config", "/etc/prometheus/prometheus.yml")
	require.Contains(t, config, "SUCCESS")
	targets := f.targets(t, p)
	rules := p.rules(t)
	queries := f.queries(t, p)
	spans := f.spans(t)
	t.Logf("Prometheus: %d targets up, %d rules and %d queries of the dashboard without an error; collector: %d spans", targets, rules, queries, spans)
}

// targets waits until Prometheus gets figures from all containers that have some.
func (f *fleet) targets(t *testing.T, p prometheus) int {
	t.Helper()
	want := map[string]int{}
	sum := 0
	for _, s := range []string{"gateway", "session", "pipeline", "worker", "task", "team", "tools"} {
		want[s] = len(f.containers(s))
		sum += want[s]
	}
	process.Eventually(t, "every container is a target that is up", func() bool {
		var page struct {
			ActiveTargets []struct {
				Health string
				Labels map[string]string
			}
		}
		p.get("targets", &page)
		up := map[string]int{}
		for _, x := range page.ActiveTargets {
			if x.Health != "up" || x.Labels["job"] != "waggle" {
				return false
			}
			up[x.Labels["role"]]++
		}
		for s, n := range want {
			if up[s] != n {
				return false
			}
		}
		return len(page.ActiveTargets) == sum
	})
	return sum
}

var alert = regexp.MustCompile(`(?m)^\s*- (?:alert|record): `)

// rules waits until each rule of the files has been carried out, and has worked.
func (p prometheus) rules(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("../../deploy/observability/prometheus/rules/*.yml")
	require.NoError(t, err)
	want := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		want += len(alert.FindAll(text, -1))
	}
	require.Positive(t, want)
	// They are looked at once a minute.
	require.Eventually(t, func() bool {
		var page struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		p.get("rules", &page)
		all, done := 0, 0
		for _, g := range page.Groups {
			for _, r := range g.Rules {
				require.Empty(t, r.LastError, r.Name)
				all++
				if r.Health == "ok" {
					done++
				}
			}
		}
		return all == want && done == want
	}, maxWait, time.Second, "every rule is carried out")
	return want
}

// queries carries out what the dashboard asks for; most of it has to have an answer.
func (f *fleet) queries(t *testing.T, p prometheus) int {
	t.Helper()
	text, err := os.ReadFile("../../deploy/observability/grafana/dashboards/waggle.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	asked, empty := 0, []string{}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			var page struct{ Result []json.RawMessage }
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")
			p.get("query?query="+url.QueryEscape(expr), &page)
			asked++
			if len(page.Result) == 0 {
				empty = append(empty, panel.Title)
			}
		}
	}
	require.Positive(t, asked)
	t.Logf("nothing to show yet, %d of %d: %s", len(empty), asked, strings.Join(empty, "; "))
	require.Less(t, len(empty), asked/2, "most panels show something after a chat")
	return asked
}

var spans = regexp.MustCompile(`"spans": (\d+)`)

// spans waits for the traces of the chat and returns the number of their spans.
func (f *fleet) spans(t *testing.T) int {
	t.Helper()
	sum := 0
	process.Eventually(t, "the collector has traces", func() bool {
		sum = 0
		for _, found := range spans.FindAllStringSubmatch(f.compose("logs", "--no-color", "otel"), -1) {
			n, err := strconv.Atoi(found[1])
			require.NoError(t, err)
			sum += n
		}
		return sum > 0
	})
	return sum
}
