package sdk

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed tasks.json
var taskFile []byte

// Task is one that docs/SDKS.md shows in all languages. A test of each language runs it.
type Task struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Text    string   `json:"text"`
	Prints  []string `json:"prints"`            // words that the program prints, among others, in any case
	Without []string `json:"without,omitempty"` // languages that cannot do it
}

// language is one of the columns of the tasks.
type language struct {
	name, fence string
	source      string                   // from the root of the repository
	function    func(name string) string // the beginning of the line that begins a task
	end         string                   // the line that ends it; empty: it ends before the next line that is not indented
}

var languages = []language{
	{"Go", "go", "sdk/go/examples/tasks_test.go", func(name string) string { return "func " + camel(name) + `\(` }, "}"},
	{"TypeScript", "ts", "sdk/typescript/examples/tasks.ts", func(name string) string { return `export (async )?function ` + camel(name) + `\(` }, "}"},
	{"Python", "python", "sdk/python/examples/tasks.py", func(name string) string { return "async def " + name + `\(` }, ""},
	{"curl", "sh", "docs/examples/tasks.sh", func(name string) string { return name + `\(\) {` }, "}"},
}

// LoadTasks returns the tasks in the order of the page.
func LoadTasks() ([]Task, error) {
	var tasks []Task
	if err := json.Unmarshal(taskFile, &tasks); err != nil {
		return nil, fmt.Errorf("read the tasks: %w", err)
	}
	return tasks, nil
}

// Sources returns the files that have the tasks, by their languages.
func Sources() map[string]string {
	files := map[string]string{}
	for _, l := range languages {
		files[l.name] = l.source
	}
	return files
}

// tasksOf returns the part of the page with the tasks. sources are the contents of the files, by their languages.
func tasksOf(tasks []Task, sources map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString(pageTasks)
	setup, err := cut(sources["curl"], `setup\(\) {`, "}")
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nThe examples with curl need jq, and begin with:\n\n```sh\n%s```\n", unindented(setup))
	for n, t := range tasks {
		fmt.Fprintf(&b, "\n### %d. %s\n\n%s\n", n+1, t.Title, t.Text)
		for _, l := range languages {
			if slices.Contains(t.Without, l.name) {
				continue
			}
			code, err := cut(sources[l.name], l.function(t.Name), l.end)
			if err != nil {
				return "", fmt.Errorf("%s in %s: %w", t.Name, l.source, err)
			}
			if l.fence == "sh" {
				code = unindented(code)
			}
			fmt.Fprintf(&b, "\n%s:\n\n```%s\n%s```\n", l.name, l.fence, code)
		}
	}
	return b.String(), nil
}

// cut returns a function of a source.
func cut(source, begin, end string) (string, error) {
	at := regexp.MustCompile(`(?m)^` + begin)
	place := at.FindStringIndex(source)
	if place == nil {
		return "", fmt.Errorf("no line begins with %s", begin)
	}
	var b strings.Builder
	for n, line := range strings.SplitAfter(source[place[0]:], "\n") {
		if end == "" && n > 0 && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, " ") {
			break
		}
		b.WriteString(line)
		if end != "" && strings.TrimRight(line, "\n") == end {
			break
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n", nil
}

// unindented returns the body of a function of the shell.
func unindented(code string) string {
	lines := strings.SplitAfter(code, "\n")
	var b strings.Builder
	for _, line := range lines[1 : len(lines)-2] {
		b.WriteString(strings.TrimPrefix(line, "  "))
	}
	return b.String()
}

// camel returns a name in the form of Go and TypeScript.
func camel(name string) string {
	words := strings.Split(name, "_")
	for n, w := range words[1:] {
		words[n+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}
