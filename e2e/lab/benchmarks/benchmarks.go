// Package benchmarks reads what the benchmarks of "go test" print.
package benchmarks

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Figure is what a benchmark has measured in a unit.
type Figure struct {
	Benchmark string // without "Benchmark" and the number of processors
	Unit      string
	Value     float64
}

// Read returns the figures in their order. They stand in lines of a name, a number of iterations, and pairs of a figure and its
// unit.
func Read(out string) (all []Figure) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		for pair := range slices.Chunk(fields[2:], 2) {
			if len(pair) < 2 {
				break
			}
			if v, err := strconv.ParseFloat(pair[0], 64); err == nil {
				all = append(all, Figure{name, pair[1], v})
			}
		}
	}
	return all
}

// processors is the end of a benchmark's name.
var processors = regexp.MustCompile(`-\d+$`)
