package main

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// key names a figure.
type key struct {
	pkg string
	side
}

// figures are those of all rounds, in their order.
type figures map[key][]float64

// read reads what the benchmarks of a package have printed: lines of a name, a number of iterations, and pairs of a figure and
// its unit.
func (f figures) read(out, pkg string) {
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
				k := key{pkg, side{name, pair[1]}}
				f[k] = append(f[k], v)
			}
		}
	}
}

// processors is the end of a benchmark's name.
var processors = regexp.MustCompile(`-\d+$`)

var errMissing = errors.New("a benchmark has not reported its figure")
