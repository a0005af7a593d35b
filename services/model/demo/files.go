package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Suffixes of the names of file tools.
const (
	toolList   = "list_files"
	toolRead   = "read_file"
	toolWrite  = "write_file"
	toolSearch = "search_files"
)

// Names of properties by which tools accept a path, a text to write and a text to find.
var (
	pathNames    = []string{"path", "file", "filename", "file_path"}
	contentNames = []string{"content", "text"}
	queryNames   = []string{"text", "query", "pattern"}
)

// workspace is the prefix of the built-in file tools' names.
const workspace = "workspace"

// tool is an offered tool and its arguments.
type tool struct {
	name       string
	properties map[string]json.RawMessage
}

// tools returns the offered tools whose name is suffix, or ends in it after a separator: the workspace's first, the others
// in the order of the request.
func (t *talk) tools(suffix string) []tool {
	var first, rest []tool
	for _, s := range t.req.Tools {
		prefix, ok := strings.CutSuffix(s.Name, suffix)
		if !ok || strings.TrimRight(prefix, "_-") == prefix && prefix != "" {
			continue
		}
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		_ = json.Unmarshal(s.InputSchema, &schema) // a tool with another schema accepts no argument
		if found := (tool{s.Name, schema.Properties}); strings.HasPrefix(prefix, workspace) {
			first = append(first, found)
		} else {
			rest = append(rest, found)
		}
	}
	return append(first, rest...)
}

// property returns the first of the names that the tool accepts, or "".
func (t tool) property(names ...string) string {
	for _, n := range names {
		if _, ok := t.properties[n]; ok {
			return n
		}
	}
	return ""
}

// offer is a possible call of a tool.
type offer struct {
	tool string
	args any
}

// offers returns the calls of the tools named suffix. args returns the arguments, or nil if the tool does not accept them.
func (t *talk) offers(suffix string, args func(tool) map[string]any) []offer {
	var out []offer
	for _, by := range t.tools(suffix) {
		if a := args(by); a != nil {
			out = append(out, offer{by.name, a})
		}
	}
	return out
}

// use returns an action that makes the calls of find one after the other until one succeeds: each file server has a root of
// its own. If all fail, the action reports the error of the first.
func use(request string, effect bool, find func(*talk) []offer, answer func(result string) string) *action {
	return &action{effect: effect, do: func(t *talk) (string, error) {
		refused := fmt.Sprintf("I cannot %s: no tool for it is offered to me.", request)
		for i, k := range find(t) {
			o, err := t.call(k.tool, k.args)
			switch {
			case err != nil:
				return "", err
			case !o.failed:
				return strings.TrimRight(answer(o.text), "\n"), nil
			case i == 0:
				refused = fmt.Sprintf("I could not %s: %s", request, strings.TrimSpace(o.text))
			}
		}
		return refused, nil
	}}
}

// ofFile returns an action that answers with the content of a file.
func ofFile(c *clause, name string, answer func(file, content string) string) *action {
	return c.about(name, func(file string) *action {
		return use("read "+file, false, func(t *talk) []offer {
			return t.offers(toolRead, func(by tool) map[string]any {
				if path := by.property(pathNames...); path != "" {
					return map[string]any{path: file}
				}
				return nil
			})
		}, func(result string) string {
			const empty = "[The file is empty.]" // the answer of the workspace's tool
			return answer(file, strings.TrimPrefix(result, empty))
		})
	})
}

func readFile(c *clause, m []string) *action {
	return ofFile(c, m[0], func(file, content string) string {
		switch content = strings.TrimRight(content, "\n"); {
		case content == "":
			return file + " is empty."
		case strings.Contains(content, "\n"):
			return fmt.Sprintf("%s says:\n\n%s", file, content)
		}
		return fmt.Sprintf("%s says: %s", file, content)
	})
}

// goesOn matches the remark at the end of a partly read file.
var goesOn = regexp.MustCompile(`\n\[These are lines [^\n]+\]$`)

// countIn counts as wc does: words are separated by white space, and a line is a text
// that ends in a line end, or the rest.
func countIn(c *clause, m []string) *action {
	return ofFile(c, m[1], func(file, content string) string {
		unit := strings.ToLower(m[0])
		n := utf8.RuneCountInString(content)
		switch {
		case goesOn.MatchString(content):
			return file + " is too long for me to count."
		case unit == "word":
			n = len(strings.Fields(content))
		case unit == "line":
			n = len(slices.Collect(strings.Lines(content)))
		}
		return fmt.Sprintf("%s has %s.", file, plural(n, unit))
	})
}

func listFiles(*clause, []string) *action {
	return use("list the files", false, func(t *talk) []offer {
		return t.offers(toolList, func(tool) map[string]any { return map[string]any{} })
	}, func(result string) string {
		var entries, remarks []string
		folders := 0
		for line := range strings.Lines(result) {
			switch line = strings.TrimSpace(line); {
			case strings.HasPrefix(line, "["):
				remarks = append(remarks, strings.Trim(line, "[]"))
			case line != "":
				entries = append(entries, "- "+line)
			}
			if strings.HasSuffix(line, "/") {
				folders++
			}
		}
		count := plural(len(entries)-folders, "file")
		if folders > 0 {
			count += " and " + plural(folders, "folder")
		}
		return fmt.Sprintf("The workspace has %s:\n%s", count, strings.Join(append(entries, remarks...), "\n"))
	})
}

func search(_ *clause, m []string) *action {
	query := unquote(m[0])
	return use(fmt.Sprintf("search for %q", query), false, func(t *talk) []offer {
		return t.offers(toolSearch, func(by tool) map[string]any {
			if property := by.property(queryNames...); property != "" {
				return map[string]any{property: query}
			}
			return nil
		})
	}, func(result string) string { return fmt.Sprintf("The search for %q found:\n%s", query, result) })
}

// write writes a line of text into a file, or appends it. It ends the line, so that the next one starts on a line of its
// own.
func write(c *clause, m []string) *action {
	add := strings.EqualFold(m[0], "append") || strings.EqualFold(m[0], "add")
	return c.about(m[2], func(file string) *action {
		return use("write "+file, true, func(t *talk) []offer {
			all := t.offers(toolWrite, func(by tool) map[string]any {
				path, content := by.property(pathNames...), by.property(contentNames...)
				if path == "" || content == "" || add && by.property("append") == "" {
					return nil
				}
				args := map[string]any{path: file, content: unquote(m[1]) + "\n"}
				if add {
					args["append"] = true
				}
				return args
			})
			return all[:min(len(all), 1)]
		}, func(result string) string { return strings.TrimSpace("Done. " + result) })
	})
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
