package growth

import (
	"fmt"
	"math"
	"strings"
)

// Table holds figures by size. The line before the last says how many times the figures of the first size those of the last
// are, the last one how they grow.
type Table struct {
	columns []string
	sizes   []int
	rows    [][]float64
}

// NewTable returns a table whose first column is the size.
func NewTable(columns ...string) *Table { return &Table{columns: columns} }

// Add adds the figures of a size, in the order of the columns.
func (t *Table) Add(size int, figures ...float64) {
	t.sizes, t.rows = append(t.sizes, size), append(t.rows, figures)
}

// String returns the table as Markdown.
func (t *Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(t.columns, " | "), strings.Repeat("---:|", len(t.columns)))
	for i, row := range t.rows {
		line(&b, fmt.Sprint(t.sizes[i]), row, "")
	}
	if n := len(t.rows); n > 1 {
		times := make([]float64, len(t.rows[0]))
		for i, first := range t.rows[0] {
			if first > 0 {
				times[i] = t.rows[n-1][i] / first
			}
		}
		line(&b, fmt.Sprintf("%dx", t.sizes[n-1]/max(1, t.sizes[0])), times, "x")
		slopes := make([]float64, len(times))
		for i := range slopes {
			slopes[i] = t.slope(i)
		}
		line(&b, "slope", slopes, "")
	}
	return b.String()
}

// slope returns the exponent with which a figure grows with the size, fitted over all sizes: 0 for one that stays, 1 for one that
// grows in proportion. Figures that are not positive do not count.
func (t *Table) slope(figure int) float64 {
	var n, sx, sy, sxx, sxy float64
	for i, row := range t.rows {
		if row[figure] <= 0 || t.sizes[i] <= 0 {
			continue
		}
		x, y := math.Log(float64(t.sizes[i])), math.Log(row[figure])
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; d > 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}

func line(b *strings.Builder, size string, figures []float64, unit string) {
	fmt.Fprintf(b, "| %s |", size)
	for _, f := range figures {
		fmt.Fprintf(b, " %.1f%s |", f, unit)
	}
	b.WriteByte('\n')
}
