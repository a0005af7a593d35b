package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/e2e/lab/growth"
)

const intro = `# Profiles

Which parts the processor time of the busiest paths goes to, now and before. ` + "`make profiles`" + ` writes this page: it takes CPU profiles of
benchmarks, and of ` + "`waggle up`" + ` while eight chats ask the demo model for answers of one line. A sample belongs to garbage collection,
allocation, system calls or goroutines, if it is one of these, and otherwise to the innermost function of a package that is
listed. Profiles of the benchmarks hold their clients and the NATS server, too. [SPEED.md](SPEED.md) has the costs themselves.

`

// functions is the number of functions in a table.
const functions = 12

// section writes the tables of a path. Without a former profile its columns are empty.
func section(b *strings.Builder, p path, before *taken, now taken) {
	fmt.Fprintf(b, "\n## %s\n\n%s", p.title, p.about)
	old := profile{}
	if before != nil {
		fmt.Fprintf(b, " Before: %s.", strings.Join(before.figures, ", "))
		old = before.profile
	}
	fmt.Fprintf(b, " Now: %s.\n\n| Part | Before | Now |\n|---|---:|---:|\n", strings.Join(now.figures, ", "))
	all := maps.Clone(now.profile.parts)
	for name := range old.parts {
		all[name] += 0
	}
	for _, name := range largest(all) {
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, share(old.parts[name], old.total), share(now.profile.parts[name], now.profile.total))
	}
	b.WriteString("\n| Before: functions without those that they call | Now |\n|---|---|\n")
	was, is := largest(old.functions), largest(now.profile.functions)
	for n := range functions {
		fmt.Fprintf(b, "| %s | %s |\n", function(was, n, old), function(is, n, now.profile))
	}
}

func function(names []string, n int, p profile) string {
	if n >= len(names) {
		return ""
	}
	name := strings.TrimPrefix(names[n], "github.com/")
	return fmt.Sprintf("`%s` %s", strings.ReplaceAll(name, "%2e", "."), share(p.functions[names[n]], p.total))
}

// largest returns the names, the largest first.
func largest(m map[string]time.Duration) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
}

func share(d, of time.Duration) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*d.Seconds()/of.Seconds())
}

// head says where and how the page was made.
func head(command, former string) string {
	text := growth.Head(command)
	if former != "" {
		text += "- Before: " + former + "\n"
	}
	return text
}
