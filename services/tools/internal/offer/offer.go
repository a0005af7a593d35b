// Package offer holds tools as models see them: under unique names, with compiled schemas.
package offer

import (
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// Tool is a tool that can be called. It is never modified.
type Tool struct {
	tools.Tool
	Arguments *schema.Schema
	Result    *schema.Schema // of structured results; nil = they are not checked
}

// Sort sorts tools by name.
func Sort(list []tools.Tool) {
	slices.SortFunc(list, func(a, b tools.Tool) int { return strings.Compare(a.Name, b.Name) })
}
