package growth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/lab/growth"
)

// TestThePageHasTheTables: the page has each table with its slopes, and says when, where and how they were measured.
func TestThePageHasTheTables(t *testing.T) {
	t.Parallel()
	table := growth.NewTable("agents", "page ms", "memory MiB", "nothing")
	table.Add(10, 2, 5, 0)
	table.Add(1000, 2, 50, 0)
	table.Add(100000, 2, 500, 0)
	p := &growth.Page{Command: "make growth AGENTS=10,1000,100000", Remark: "other work ran beside it"}
	p.Add("Agents", "Lists.", table)
	text := p.String()
	for _, want := range []string{
		"- Date: 20", "- Machine: ", "- Command: `make growth AGENTS=10,1000,100000`\n- Remark: other work ran beside it\n", "\n## Agents\n\nLists.\n\n| agents | page ms |",
		"| 100000 | 2.0 | 500.0 | 0.0 |\n| 10000x | 1.0x | 100.0x | 0.0x |\n| slope | 0.0 | 0.5 | 0.0 |\n",
	} {
		require.Contains(t, text, want)
	}
}
