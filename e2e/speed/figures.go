package main

import (
	"errors"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// key names a figure.
type key struct {
	pkg string
	side
}

// figures are those of all rounds, in their order.
type figures map[key][]float64

// read reads what a benchmark of a package has printed.
func (f figures) read(r io.Reader, pkg string) error {
	all := benchfmt.NewReader(r, pkg)
	for all.Scan() {
		switch rec := all.Result().(type) {
		case *benchfmt.SyntaxError:
			return rec
		case *benchfmt.Result:
			name, _ := rec.Name.Parts()
			full := string(name) + sub(rec.Name)
			for _, v := range rec.Values {
				k := key{pkg, side{full, v.Unit}}
				f[k] = append(f[k], v.Value)
			}
		}
	}
	return all.Err()
}

// sub returns the names of the parts of a benchmark, without the number of processors.
func sub(n benchfmt.Name) string {
	_, all := n.Parts()
	var b strings.Builder
	for _, part := range all {
		if part[0] == '/' {
			b.Write(part)
		}
	}
	return b.String()
}

var errMissing = errors.New("a benchmark has not reported its figure")
