package observability_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Prometheus' package rules imports its storage and all discovery, several minutes of a cold build.
// This test needs little of it: an alert fires when its expression has had a result for as long as
// "for" says. Prometheus' own code evaluates the expressions and templates.

// suite is what is read of a file of "promtool test rules".
type suite struct {
	Rules []string   `yaml:"rule_files"`
	Every string     `yaml:"evaluation_interval"`
	Tests []scenario `yaml:"tests"`
}

type scenario struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval"`
	Series   []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Checks []expectation `yaml:"alert_rule_test"`
}

type expectation struct {
	At     string  `yaml:"eval_time"`
	Alert  string  `yaml:"alertname"`
	Alerts []fired `yaml:"exp_alerts"`
}

// fired is an alert that fires.
type fired struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func alertSuite(t *testing.T) suite {
	t.Helper()
	text, err := os.ReadFile("prometheus/tests/alerts.yml")
	require.NoError(t, err)
	var s suite
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	require.NoError(t, d.Decode(&s))
	var tested, loaded []string
	for _, pattern := range s.Rules {
		tested = append(tested, filepath.Join("prometheus/tests", pattern))
	}
	loaded, err = filepath.Glob("prometheus/rules/*.yml")
	require.NoError(t, err)
	require.ElementsMatch(t, loaded, tested, "promtool reads what Prometheus reads")
	return s
}

func TestEveryAlertFiresWhenItShould(t *testing.T) {
	s, all := alertSuite(t), metrics(t)
	byName := map[string]rule{}
	for _, r := range rules(t) {
		byName[r.Alert] = r
	}
	every := duration(t, s.Every)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range s.Tests {
		t.Run(test.Name, func(t *testing.T) {
			data := load(t, all, test)
			for _, c := range test.Checks {
				r, ok := byName[c.Alert]
				require.True(t, ok, "no alert %s", c.Alert)
				got := data.firing(t, r, every, duration(t, c.At))
				require.ElementsMatch(t, c.Alerts, got, "%s at %s", c.Alert, c.At)
				fires[c.Alert] = fires[c.Alert] || len(c.Alerts) > 0
			}
			if last := test.Checks[len(test.Checks)-1]; len(last.Alerts) == 0 {
				quiet[last.Alert] = true
			}
		})
	}
	names := slices.Sorted(maps.Keys(byName))
	require.Equal(t, names, slices.Sorted(maps.Keys(fires)), "alerts that are tested")
	for _, name := range names {
		require.True(t, fires[name], "no series fire %s", name)
		require.True(t, quiet[name], "no series have to leave %s quiet", name)
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "" {
		return 0
	}
	d, err := model.ParseDuration(text)
	require.NoError(t, err)
	return time.Duration(d)
}

// memory holds the series of a test.
type memory []storage.Series

// load makes the series of a test, of which each has to be one that processes show.
func load(t *testing.T, all map[string]metric, test scenario) memory {
	t.Helper()
	step := duration(t, test.Interval).Milliseconds()
	var out memory
	for _, in := range test.Series {
		set, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(in.Series + " " + in.Values)
		require.NoError(t, err, in.Series)
		m, ok := series(all, set.Get(model.MetricNameLabel))
		require.True(t, ok, "no process measures %s", in.Series)
		set.Range(func(l labels.Label) {
			require.Contains(t, append(slices.Clone(targetLabels), m.labels...), l.Name, in.Series)
		})
		var points []promql.FPoint
		for i, v := range values {
			if !v.Omitted {
				points = append(points, promql.FPoint{T: int64(i) * step, F: v.Value})
			}
		}
		out = append(out, promql.NewStorageSeries(promql.Series{Metric: set, Floats: points}))
	}
	return out
}

// firing returns the alerts of the rule that fire at the time, after it was evaluated
// again and again since the beginning.
func (m memory) firing(t *testing.T, r rule, every, at time.Duration) []fired {
	t.Helper()
	hold := duration(t, r.For)
	since := map[string]time.Duration{}
	out := []fired{}
	for now := time.Duration(0); now <= at; now += every {
		active := map[string]time.Duration{}
		for _, sample := range m.ask(t, r.Expr, now) {
			key := sample.Metric.String()
			began, ok := since[key]
			if !ok {
				began = now
			}
			active[key] = began
			if now == at && now-began >= hold {
				out = append(out, r.alert(t, sample, now))
			}
		}
		since = active
	}
	return out
}

// ask works out an expression.
func (m memory) ask(t *testing.T, expr string, at time.Duration) promql.Vector {
	t.Helper()
	q, err := engine.NewInstantQuery(t.Context(), m, nil, expr, time.UnixMilli(at.Milliseconds()))
	require.NoError(t, err)
	defer q.Close()
	v, err := q.Exec(t.Context()).Vector()
	require.NoError(t, err, expr)
	return slices.Clone(v)
}

// Prometheus' own limits and look-back.
var engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: 2 * time.Minute, LookbackDelta: 5 * time.Minute})

// alert words an alert as it is sent to people.
func (r rule) alert(t *testing.T, s promql.Sample, at time.Duration) fired {
	t.Helper()
	l := s.Metric.Map()
	data := template.AlertTemplateData(maps.Clone(l), nil, "", s)
	expand := func(text string) string {
		const names = "{{$labels := .Labels}}{{$value := .Value}}"
		e := template.NewTemplateExpander(t.Context(), names+text, r.Alert, data, model.Time(at.Milliseconds()), nil, nil, []string{"missingkey=error"})
		out, err := e.Expand()
		require.NoError(t, err, text)
		return out
	}
	delete(l, model.MetricNameLabel)
	out := fired{Labels: l, Annotations: map[string]string{}}
	for k, v := range r.Labels {
		out.Labels[k] = expand(v)
	}
	for k, v := range r.Annotations {
		out.Annotations[k] = expand(v)
	}
	return out
}

// Querier implements storage.Queryable.
func (m memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: m.find}, nil
}

func (m memory) find(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var out found
	for _, s := range m {
		if !slices.ContainsFunc(matchers, func(c *labels.Matcher) bool { return !c.Matches(s.Labels().Get(c.Name)) }) {
			out.rest = append(out.rest, s)
		}
	}
	return &out
}

// found is a storage.SeriesSet.
type found struct {
	now  storage.Series
	rest []storage.Series
}

func (f *found) Next() bool {
	if len(f.rest) == 0 {
		return false
	}
	f.now, f.rest = f.rest[0], f.rest[1:]
	return true
}

func (f *found) At() storage.Series                { return f.now }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

var _ storage.Queryable = memory{}
