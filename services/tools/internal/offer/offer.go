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

// Sort sorts tools by name.
func Sort(list []tools.Tool) {
	slices.SortFunc(list, func(a, b tools.Tool) int { return strings.Compare(a.Name, b.Name) })
}
