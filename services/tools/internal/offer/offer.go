// Package offer holds tools in the form that models see: under unique names, with compiled schemas.
package offer

import (
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// Tool is a callable tool. It is immutable.
type Tool struct {
	tools.Tool
	Arguments *schema.Schema
	Result    *schema.Schema // schema of structured results; nil = no check
}

// Unchecked returns what is not checked of the tool's schemas, one line each.
func (t *Tool) Unchecked() []string {
	var list []string
	for _, s := range []struct {
		of   string
		what *schema.Schema
	}{{"input schema ", t.Arguments}, {"output schema ", t.Result}} {
		if s.what == nil {
			continue
		}
		for _, line := range s.what.Unchecked() {
			list = append(list, s.of+line)
		}
	}
	return list
}

// Sort sorts tools by name.
func Sort(list []tools.Tool) {
	slices.SortFunc(list, func(a, b tools.Tool) int { return strings.Compare(a.Name, b.Name) })
}
