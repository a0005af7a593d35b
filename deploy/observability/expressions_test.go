package observability_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// metric is a line of docs/generated/metrics.md.
type metric struct {
	kind   string
	labels []string
}

// targetLabels are set by Prometheus for every series, by the configuration here.
var targetLabels = []string{"job", "instance", "role", model.MetricNameLabel}

var tableLine = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| (.*?) \\|")

// metrics returns what processes show, and what Prometheus adds.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	page, err := os.ReadFile("../../docs/generated/metrics.md")
	require.NoError(t, err)
	out := map[string]metric{"up": {kind: "gauge"}}
	for _, m := range tableLine.FindAllStringSubmatch(string(page), -1) {
		var list []string
		for _, l := range strings.Split(m[3], ",") {
			if name := strings.Trim(l, " `"); name != "" {
				list = append(list, name)
			}
		}
		out[m[1]] = metric{kind: m[2], labels: list}
	}
	require.Greater(t, len(out), 50)
	return out
}

// series finds the metric of a series: that of a histogram has several.
func series(all map[string]metric, name string) (metric, bool) {
	if m, ok := all[name]; ok {
		return m, m.kind != "histogram"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		m, ok := all[strings.TrimSuffix(name, suffix)]
		if ok && strings.HasSuffix(name, suffix) && m.kind == "histogram" {
			if suffix == "_bucket" {
				m.labels = append(slices.Clone(m.labels), labels.BucketLabel)
			}
			return m, true
		}
	}
	return metric{}, false
}

// rule is an alert as Prometheus reads it.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	files, err := filepath.Glob("prometheus/rules/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []rule
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		var page struct {
			Groups []struct {
				Name  string `yaml:"name"`
				Rules []rule `yaml:"rules"`
			} `yaml:"groups"`
		}
		d := yaml.NewDecoder(strings.NewReader(string(text)))
		d.KnownFields(true)
		require.NoError(t, d.Decode(&page), f)
		for _, g := range page.Groups {
			out = append(out, g.Rules...)
		}
	}
	return out
}

// panel is what is looked at of a dashboard's panel.
type panel struct {
	ID      int    `json:"id"`
	Title   string `json:"title"`
	Type    string `json:"type"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
	GridPos struct{ X, Y, W, H int } `json:"gridPos"`
}

func panels(t *testing.T) []panel {
	t.Helper()
	files, err := filepath.Glob("grafana/dashboards/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []panel
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		var d struct {
			UID    string  `json:"uid"`
			Panels []panel `json:"panels"`
		}
		require.NoError(t, json.Unmarshal(text, &d), f)
		require.NotEmpty(t, d.UID)
		out = append(out, d.Panels...)
	}
	return out
}

// check parses an expression and looks every name in it up.
func check(t *testing.T, all map[string]metric, where, expr string) (used []string) {
	t.Helper()
	// Grafana puts a duration where its variable stands.
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(expr, "$__rate_interval", "1m"))
	require.NoError(t, err, "%s: %s", where, expr)
	known := slices.Clone(targetLabels)
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		m, ok := series(all, v.Name)
		require.True(t, ok, "%s: no metric %s", where, v.Name)
		used = append(used, v.Name)
		known = append(known, m.labels...)
		for _, l := range v.LabelMatchers {
			require.True(t, slices.Contains(m.labels, l.Name) || slices.Contains(targetLabels, l.Name), "%s: %s has no label %s", where, v.Name, l.Name)
		}
		return nil
	})
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			below := known
			if len(used) > 0 {
				below = under(all, n)
			}
			for _, l := range n.Grouping {
				require.Contains(t, below, l, "%s: grouped by a label that is not there", where)
			}
		case *parser.Call:
			counters(t, all, where, n)
		}
		return nil
	})
	require.NotEmpty(t, used, "%s asks for nothing", where)
	return used
}

// under returns the labels of what an aggregation is of.
func under(all map[string]metric, n *parser.AggregateExpr) []string {
	out := slices.Clone(targetLabels)
	parser.Inspect(n.Expr, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			m, _ := series(all, v.Name)
			out = append(out, m.labels...)
		}
		return nil
	})
	return out
}

// counters refuses the rate of a metric that is not a counter.
func counters(t *testing.T, all map[string]metric, where string, c *parser.Call) {
	t.Helper()
	if c.Func.Name != "rate" && c.Func.Name != "increase" {
		return
	}
	parser.Inspect(c, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			m, _ := series(all, v.Name)
			require.NotEqual(t, "gauge", m.kind, "%s: %s of the gauge %s", where, c.Func.Name, v.Name)
		}
		return nil
	})
}

// The files that are loaded are those that are tested.
func TestPrometheusLoadsTheRules(t *testing.T) {
	text, err := os.ReadFile("prometheus/prometheus.yml")
	require.NoError(t, err)
	var c struct {
		Rules []string `yaml:"rule_files"`
		Jobs  []struct {
			Name string `yaml:"job_name"`
		} `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal(text, &c))
	require.Equal(t, []string{"rules/*.yml"}, c.Rules, "relative to the file, and what the tests here read")
	require.Len(t, c.Jobs, 1)
	require.Equal(t, "waggle", c.Jobs[0].Name, "expressions name the job")
}

var heading = regexp.MustCompile(`(?m)^### (Waggle[A-Za-z]+)$`)

const runbooks = "https://github.com/waggle-dev/waggle/blob/main/docs/OPERATIONS.md#"

func TestEveryAlertCanFireAndSaysWhatToDo(t *testing.T) {
	all := metrics(t)
	page, err := os.ReadFile("../../docs/OPERATIONS.md")
	require.NoError(t, err)
	var documented []string
	for _, m := range heading.FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, m[1])
	}
	var alerts []string
	for _, r := range rules(t) {
		alerts = append(alerts, r.Alert)
		check(t, all, r.Alert, r.Expr)
		require.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
		require.Equal(t, runbooks+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		if r.For != "" {
			_, err := time.ParseDuration(r.For)
			require.NoError(t, err, r.Alert)
		}
	}
	require.ElementsMatch(t, alerts, documented, "run books and alerts")
}

func TestEveryPanelShowsWhatThereIs(t *testing.T) {
	all := metrics(t)
	seen := map[string]bool{}
	ids := map[int]bool{}
	drawn := 0
	for _, p := range panels(t) {
		require.False(t, ids[p.ID], "panel id %d twice", p.ID)
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for _, q := range p.Targets {
			for _, name := range check(t, all, p.Title, q.Expr) {
				seen[name] = true
			}
			drawn++
		}
	}
	t.Logf("%d queries over %d series", drawn, len(seen))
	require.Greater(t, len(seen), 40)
}

// A wrong name anywhere has to be noticed: the checks themselves are checked.
func TestWrongExpressionsAreNoticed(t *testing.T) {
	all := metrics(t)
	for _, name := range []string{"waggle_gateway_sockets", "waggle_log_append_seconds", "waggle_build_info_bucket"} {
		_, ok := series(all, name)
		require.False(t, ok, name)
	}
	_, ok := series(all, "waggle_log_append_seconds_bucket")
	require.True(t, ok)
}
