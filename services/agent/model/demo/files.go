package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/services/agent/model"
)

// The ends of the names of the tools for files.
const (
	toolList   = "list_files"
	toolRead   = "read_file"
	toolWrite  = "write_file"
	toolSearch = "search_files"
)

// Property names under which tools take a path, a text to write, a text to find,
// and a pattern of file names.
var (
	pathNames    = []string{"path", "file", "filename", "file_path", "filepath", "name", "folder", "directory", "dir"}
	contentNames = []string{"content", "contents", "text", "data", "body"}
	queryNames   = []string{"text", "query", "pattern", "q", "regex", "search", "term"}
	globNames    = []string{"glob", "file_pattern", "include"}
)

// maxParts bounds how many pieces of a long file are read for one answer: a worker
// allows only so many rounds of tools.
const maxParts = 6

// tool is an offered tool and the names of its arguments.
type tool struct {
	name       string
	properties []string
}

// tool finds the offered tool whose name is suffix, or ends in it after a separator.
func (t *turn) tool(suffix string) (tool, bool) {
	i := slices.IndexFunc(t.req.Tools, func(s model.ToolSpec) bool {
		rest, ok := strings.CutSuffix(s.Name, suffix)
		return ok && (rest == "" || strings.HasSuffix(rest, "_") || strings.HasSuffix(rest, "-"))
	})
	if i < 0 {
		return tool{}, false
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	found := tool{name: t.req.Tools[i].Name}
	if json.Unmarshal(t.req.Tools[i].InputSchema, &schema) == nil {
		for p := range schema.Properties {
			found.properties = append(found.properties, p)
		}
	}
	return found, true
}

// property returns the first of the names that the tool takes, or "".
func (t tool) property(names ...string) string {
	for _, n := range names {
		if slices.Contains(t.properties, n) {
			return n
		}
	}
	return ""
}

// missing is the answer when there is no tool for what was asked.
func missing(what, doing string) string {
	return fmt.Sprintf("I cannot %s: no tool for %s is offered to me.", what, doing)
}

func failed(what string, o *outcome) string {
	return fmt.Sprintf("I could not %s: %s", what, strings.TrimSpace(o.text))
}

// text is what a file holds, as far as it was read.
type text struct {
	content string
	partial bool
	problem string // why there is nothing: an answer for the user
}

// goesOn matches the remark at the end of a file that was not read to its end.
var goesOn = regexp.MustCompile(`\n\[These are lines \d+ to \d+\. The file goes on: continue with offset (\d+)\.\]$`)

// emptyFile is what the workspace's read_file returns for an empty file.
const emptyFile = "[The file is empty.]"

// read returns the first part of a file, or with all set as much as maxParts allows.
func (t *turn) read(file string, all bool) (text, error) {
	what := "read " + file
	rd, ok := t.tool(toolRead)
	path := rd.property(pathNames...)
	if !ok || path == "" {
		return text{problem: missing(what, "reading files")}, nil
	}
	var content strings.Builder
	args := map[string]any{path: file}
	for part := 1; ; part++ {
		o, err := t.call(rd.name, args, false)
		if err != nil {
			return text{}, err
		}
		if o.failed {
			return text{problem: failed(what, o)}, nil
		}
		if o.text == emptyFile {
			return text{}, nil
		}
		next := goesOn.FindStringSubmatch(o.text)
		if next == nil {
			content.WriteString(o.text)
			return text{content: content.String()}, nil
		}
		content.WriteString(strings.TrimSuffix(o.text, next[0]) + "\n")
		offset := atoi(next[1])
		if offset == 0 || !all || part == maxParts || rd.property("offset") == "" {
			return text{content: content.String(), partial: true}, nil
		}
		args = map[string]any{path: file, "offset": offset}
	}
}

func readTask(files []string, note string) *task {
	return &task{do: func(t *turn) (string, error) {
		var answers []string
		waiting := false
		for _, f := range files {
			c, err := t.read(f, false)
			waiting = waiting || err != nil
			answers = append(answers, show(f, c))
		}
		if waiting {
			return "", errWait
		}
		return note + strings.Join(answers, "\n\n"), nil
	}}
}

func show(file string, c text) string {
	s := strings.TrimRight(c.content, "\n")
	switch {
	case c.problem != "":
		return c.problem
	case s == "":
		return file + " is empty."
	case c.partial:
		return fmt.Sprintf("%s is long. It begins:\n\n%s", file, s)
	case strings.Contains(s, "\n"):
		return fmt.Sprintf("%s says:\n\n%s", file, s)
	}
	return fmt.Sprintf("%s says: %s", file, s)
}

// place names a folder for people.
func place(folder string) string {
	if folder == "" {
		return "The workspace"
	}
	return "The folder " + folder
}

// list returns the entries of a folder and the remarks of the tool, or an answer that says why not.
func (t *turn) list(folder string, deep bool) (entries, remarks []string, problem string, err error) {
	what := "list the files"
	ls, ok := t.tool(toolList)
	path := ls.property(pathNames...)
	if !ok || folder != "" && path == "" {
		return nil, nil, missing(what, "listing files"), nil
	}
	args := map[string]any{}
	if folder != "" {
		args[path] = folder
	}
	if deep && ls.property("recursive") != "" {
		args["recursive"] = true
	}
	o, err := t.call(ls.name, args, false)
	if err != nil {
		return nil, nil, "", err
	}
	if o.failed {
		return nil, nil, failed(what, o), nil
	}
	entries, remarks = lines(o.text)
	return entries, remarks, "", nil
}

// lines separates the lines of a tool's result from its remarks in brackets.
func lines(s string) (entries, remarks []string) {
	for line := range strings.Lines(s) {
		switch line = strings.TrimSpace(line); {
		case line == "":
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			remarks = append(remarks, strings.Trim(line, "[]"))
		default:
			entries = append(entries, line)
		}
	}
	return entries, remarks
}

func listTask(folder string, deep, countOnly bool) *task {
	return &task{do: func(t *turn) (string, error) {
		entries, remarks, problem, err := t.list(folder, deep)
		if err != nil || problem != "" {
			return problem, err
		}
		folders := 0
		for _, e := range entries {
			if strings.HasSuffix(e, "/") {
				folders++
			}
		}
		if len(entries) == 0 {
			return place(folder) + " is empty.", nil
		}
		answer := fmt.Sprintf("%s has %s", place(folder), kinds(len(entries)-folders, folders))
		if countOnly {
			return answer + "." + after(remarks), nil
		}
		return answer + ":\n" + bullets(entries) + after(remarks), nil
	}}
}

func kinds(files, folders int) string {
	switch {
	case folders == 0:
		return plural(files, "file")
	case files == 0:
		return plural(folders, "folder")
	}
	return plural(files, "file") + " and " + plural(folders, "folder")
}

func existsTask(file string) *task {
	return &task{do: func(t *turn) (string, error) {
		folder, base := "", file
		if i := strings.LastIndexByte(file, '/'); i >= 0 {
			folder, base = file[:i], file[i+1:]
		}
		entries, _, problem, err := t.list(folder, false)
		if err != nil || problem != "" {
			return problem, err
		}
		for _, e := range entries {
			e = strings.TrimPrefix(e, folder+"/")
			if e == base || strings.HasPrefix(e, base+" ") || e == base+"/" {
				return fmt.Sprintf("Yes, there is %s.", file), nil
			}
		}
		return fmt.Sprintf("No, %s has no %s.", strings.ToLower(place(folder)[:1])+place(folder)[1:], base), nil
	}}
}

// searchTask finds text in files. The area is "", a folder or a file; without text
// the glob selects files by name.
func searchTask(query, area, glob string) *task {
	return &task{do: func(t *turn) (string, error) {
		what := fmt.Sprintf("search for %q", query+glob)
		s, ok := t.tool(toolSearch)
		q, path, pattern := s.property(queryNames...), s.property(pathNames...), s.property(globNames...)
		if !ok || query != "" && q == "" || query == "" && pattern == "" {
			return missing(what, "searching files"), nil
		}
		args := map[string]any{q: query, path: area, pattern: glob}
		if looksLikeFile(area) && pattern != "" { // the path of a search is a folder
			args[path], args[pattern] = "", area
		}
		maps.DeleteFunc(args, func(name string, v any) bool { return name == "" || v == "" })
		o, err := t.call(s.name, args, false)
		if err != nil {
			return "", err
		}
		if o.failed {
			return failed(what, o), nil
		}
		found, remarks := lines(o.text)
		if len(found) == 0 {
			return fmt.Sprintf("I found nothing for %q.", query+glob), nil
		}
		return fmt.Sprintf("I found %q in %s:\n%s%s", query+glob, plural(len(found), "place"), bullets(found), after(remarks)), nil
	}}
}

// writeTask writes lines of text: the last one is ended, so that what is added
// later starts on a line of its own.
func writeTask(file, content string, add bool) *task {
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	return &task{effect: true, do: func(t *turn) (string, error) { return t.write(file, content, add) }}
}

// write puts content into a file, or at its end. Where the tool cannot append, the
// file is read and written anew.
func (t *turn) write(file, content string, add bool) (string, error) {
	what := "write " + file
	w, ok := t.tool(toolWrite)
	path, body := w.property(pathNames...), w.property(contentNames...)
	if !ok || path == "" || body == "" {
		return missing(what, "writing files"), nil
	}
	args := map[string]any{path: file, body: content}
	if add && w.property("append") != "" {
		args["append"] = true
	} else if add {
		old, err := t.read(file, true)
		if err != nil {
			return "", err
		}
		if old.problem != "" || old.partial {
			return fmt.Sprintf("I did not add to %s, because I could not read all of it. %s", file, old.problem), nil
		}
		args[body] = old.content + content
	}
	o, err := t.call(w.name, args, true)
	if err != nil {
		return "", err
	}
	if o.failed {
		return failed(what, o), nil
	}
	if said := strings.TrimSpace(o.text); said != "" {
		return "Done. " + said, nil
	}
	return fmt.Sprintf("Done. I wrote %s.", file), nil
}

func copyTask(from, to string) *task {
	return &task{effect: true, do: func(t *turn) (string, error) {
		c, err := t.read(from, true)
		switch {
		case err != nil:
			return "", err
		case c.problem != "":
			return c.problem, nil
		case c.partial:
			return fmt.Sprintf("I did not copy %s: it is too long for me to read whole.", from), nil
		}
		return t.write(to, c.content, false)
	}}
}

func bullets(items []string) string { return "- " + strings.Join(items, "\n- ") }

func after(remarks []string) string {
	if len(remarks) == 0 {
		return ""
	}
	return "\n" + strings.Join(remarks, "\n")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
