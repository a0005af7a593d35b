package sdk

import (
	"fmt"
	"strings"
)

const pageHead = `# One contract for all SDKs

The clients for [Go](../sdk/go/README.md), [TypeScript](../sdk/typescript/README.md) and [Python](../sdk/python/README.md) do the same over HTTP and server-sent
events. Their promises are written once, as data: [proto-schemas/sdk/cases](../proto-schemas/sdk/cases). Each case says what a program does, how the server
behaves, and what the program must see of it. Each client runs every case with its own tests (` + "`make test`, `make typescript`, `make python`" + `). The server of the
cases, which also compares, is [sdk/go/internal/judge](../sdk/go/internal/judge/judge.go).

This page is generated: ` + "`make generate`" + `.
`

const pageAdd = `
## Add a case

Append it to a file of cases, and run the tests of the three clients. A case needs code only if its program does what no other case does: then name the
operation in ` + "`proto-schemas/sdk/operations.go`" + ` and add it to the three programs, ` + "`conformance_test.go`, `conformance.test.ts` and `test_conformance.py`" + `.
`

const pageSockets = `
## What needs a WebSocket

Only parts that others reach need a connection of their own: an agent that takes tasks, reports and asks; a provider of tools; a client with a name in the swarm, which
agents and other clients can message. The packages for the swarm make it. All that people and programs ask for goes over HTTP.
`

const pageTasks = `
## Twelve tasks in four languages

The programs are those of the tests: [Go](../sdk/go/examples/tasks_test.go), [TypeScript](../sdk/typescript/examples/tasks.ts),
[Python](../sdk/python/examples/tasks.py) and [curl](examples/tasks.sh). The client connects to a gateway, ` + "`http://127.0.0.1:9000`" + `, and takes a key as its token:

` + "```go\nw, err := waggle.Open(ctx, url, waggle.Options{Token: key})\n```\n\n```ts\nconst client = new WaggleClient({ url, token: key });\n```\n\n```python\nasync with Waggle(url, token=key) as client:\n```" + `
`

// Page returns docs/SDKS.md. sources are the contents of the files of Sources, by their languages.
func Page(groups []Group, tasks []Task, sources map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString(pageHead)
	shown, err := tasksOf(tasks, sources)
	if err != nil {
		return "", err
	}
	b.WriteString(shown)
	b.WriteString(pageAdd)
	b.WriteString("\n## What a program can do\n\nThe routes are those of [openapi.json](openapi.json).\n\n| Operation | Route | Go | TypeScript | Python |\n|---|---|---|---|---|\n")
	for _, o := range Operations {
		fmt.Fprintf(&b, "| %s | %s | `%s` | `%s` | `%s` |\n", o.Name, o.Route, o.Go, strings.ReplaceAll(o.TypeScript, ", ", "`, `"), strings.ReplaceAll(o.Python, ", ", "`, `"))
	}
	b.WriteString(pageSockets)
	b.WriteString("\n## What it can rely on\n\nCases marked with * run against a real server; for the others a script plays the server.\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n| Case | Promise |\n|---|---|\n", g.Title)
		for _, c := range g.Cases {
			mark := ""
			if c.Real != "" {
				mark = " *"
			}
			fmt.Fprintf(&b, "| %s%s | %s |\n", c.Name, mark, c.Promise)
		}
	}
	return b.String(), nil
}
