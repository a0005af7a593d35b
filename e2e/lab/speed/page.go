package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/e2e/lab/growth"
)

// page returns the page as Markdown.
func (f figures) page(rounds int) (string, error) {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString(growth.Head(fmt.Sprintf("make speed ROUNDS=%d", rounds)))
	b.WriteString("\n| | Unit | Waggle | Bare | Waggle to bare | Benchmark |\n|---|---|---:|---:|---:|---|\n")
	for _, r := range rows {
		ours, err := f.of(r, r.ours, rounds)
		if err != nil {
			return "", err
		}
		bare, ratio := "", ""
		if r.bare.benchmark != "" {
			theirs, err := f.of(r, r.bare, rounds)
			if err != nil {
				return "", err
			}
			bare, ratio = spread(theirs), spread(times(ours, theirs))
		}
		name, _, _ := strings.Cut(r.ours.benchmark, "/")
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | `%s`: `Benchmark%s` |\n", r.what, r.unit, spread(ours), bare, ratio, r.pkg, name)
	}
	return b.String(), nil
}

// of returns a figure of each round in the unit of the page.
func (f figures) of(r row, s side, rounds int) ([]float64, error) {
	all := f[key{r.pkg, s}]
	if len(all) != rounds {
		return nil, fmt.Errorf("%w: %s %s in %s: %d figures of %d rounds", errMissing, s.benchmark, s.unit, r.pkg, len(all), rounds)
	}
	out := make([]float64, len(all))
	for i, v := range all {
		out[i] = v * r.scale
	}
	return out, nil
}

// times returns how many times the other side's figure each round's figure is.
func times(ours, theirs []float64) []float64 {
	out := make([]float64, len(ours))
	for i := range ours {
		out[i] = ours[i] / theirs[i]
	}
	return out
}

// spread returns the median, and the lowest and the highest figure in brackets.
func spread(all []float64) string {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	median := (sorted[(n-1)/2] + sorted[n/2]) / 2
	return fmt.Sprintf("%s (%s to %s)", digits(median), digits(sorted[0]), digits(sorted[n-1]))
}

// digits returns a figure with three digits or all before the point.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
