// Package metricdoc writes the table of all metrics from the registry of a process, so
// that the page cannot say anything else than the program shows.
package metricdoc

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Head is how the page begins.
const Head = `<!-- Generated from a running process by "go test ./waggle/metricdoc -update" in cmd. Do not edit. -->

# Metrics

This page lists the metrics of ` + "`GET /metrics`" + ` at telemetry.addr with all roles in one process; a role alone shows those of its parts.
A histogram NAME has the series NAME_bucket (with the label le), NAME_sum and
NAME_count. Labels have small, fixed sets of values: no tenant, no session and no text of a
client is a label. The metrics of the survey (waggle_queue_*, waggle_service_*,
waggle_stream_*, waggle_dead_*) are shown by one process with the role session.

| Metric | Type | Labels | Meaning |
|---|---|---|---|
`

// Metric is one line of the table.
type Metric struct {
	Name, Type, Help string
	Labels           []string // sorted
}

// description is how prometheus.Desc prints itself, which is the only way to its parts.
var description = regexp.MustCompile(`^Desc{fqName: "(.*?)", help: "(.*)", unit: ".*?", constLabels: {(.*)}, variableLabels: {(.*)}}$`)

// Of returns the metrics of the registry that are ours, and those of the process itself
// that dashboards use, by name. A metric that was not used yet is among them; its type
// follows from its name then.
func Of(r *prometheus.Registry) ([]Metric, error) {
	types := map[string]string{}
	families, err := r.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather: %w", err)
	}
	for _, f := range families {
		types[f.GetName()] = typeName(f.GetType())
	}
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		r.Describe(ch)
	}()
	var out []Metric
	for d := range ch {
		m, err := parse(d)
		if err != nil {
			return nil, err
		}
		if !shown(m.Name) {
			continue
		}
		if m.Type = Type(m.Name); types[m.Name] != "" && types[m.Name] != m.Type {
			return nil, fmt.Errorf("metric %s is a %s, its name is that of a %s", m.Name, types[m.Name], m.Type)
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func shown(name string) bool {
	return strings.HasPrefix(name, "waggle_") || name == "go_goroutines" || name == "process_resident_memory_bytes" ||
		name == "process_cpu_seconds_total" || name == "process_open_fds" || name == "process_max_fds"
}

func parse(d *prometheus.Desc) (Metric, error) {
	p := description.FindStringSubmatch(d.String())
	if p == nil {
		return Metric{}, fmt.Errorf("%s is not understood", d)
	}
	m := Metric{Name: p[1], Help: strings.ReplaceAll(p[2], `\"`, `"`)}
	for _, l := range strings.Split(p[3]+","+p[4], ",") {
		if name, _, _ := strings.Cut(l, "="); name != "" {
			m.Labels = append(m.Labels, name)
		}
	}
	slices.Sort(m.Labels)
	return m, nil
}

// Type returns the type that the name of a metric promises.
func Type(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return "gauge"
	case strings.HasSuffix(name, "_seconds"):
		return "histogram"
	}
	return "gauge"
}

func typeName(t dto.MetricType) string { return strings.ToLower(t.String()) }

// Page renders the table.
func Page(all []Metric) string {
	var b strings.Builder
	b.WriteString(Head)
	for _, m := range all {
		labels := make([]string, len(m.Labels))
		for i, l := range m.Labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(labels, ", "), strings.ReplaceAll(m.Help, "|", `\|`))
	}
	return b.String()
}
