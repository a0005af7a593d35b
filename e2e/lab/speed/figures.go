package main

import (
	"errors"

	"github.com/waggle-dev/waggle/e2e/lab/benchmarks"
)

// key names a figure.
type key struct {
	pkg string
	side
}

// figures are those of all rounds, in their order.
type figures map[key][]float64

// read reads what the benchmarks of a package have printed.
func (f figures) read(out, pkg string) {
	for _, one := range benchmarks.Read(out) {
		k := key{pkg, side{one.Benchmark, one.Unit}}
		f[k] = append(f[k], one.Value)
	}
}

var errMissing = errors.New("a benchmark has not reported its figure")
