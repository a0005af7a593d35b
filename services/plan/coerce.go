package plan

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const (
	// maxRaw bounds the text to parse: far above any list that Check accepts.
	maxRaw = 1 << 20
	// maxOpenings bounds the places in a text where JSON is tried to begin: each may
	// cost a look at all the rest.
	maxOpenings = 64
	// maxWrapped is how many objects around a plan are taken off.
	maxWrapped = 3
)

// The names under which models and clients write the parts of a plan. Case, spaces,
// hyphens and underscores make no difference; the first name that is present counts.
var (
	namesTasks     = []string{"tasks", "tasklist", "subtasks", "steps", "plan", "todo", "todos", "items"}
	namesWrapper   = []string{"plan", "result", "output", "response", "data", "answer", "arguments", "input", "parameters"}
	namesSummary   = []string{"summary", "plansummary", "overview", "goal", "objective", "title", "description"}
	namesReasoning = []string{"reasoning", "rationale", "explanation", "analysis", "thoughts", "thought"}
)

// Coerce parses a model's text into a plan: an object with tasks, summary and reasoning, a bare
// list, or either inside other objects, a code fence or prose. It generates missing ids and
// replaces invalid ones. The result passes Check. The error is a PLAN_INVALID fault that tells a
// model what to correct.
func Coerce(raw []byte) (Plan, error) {
	if len(raw) > maxRaw {
		return Plan{}, invalid("tasks", "the plan has %d bytes: %d are allowed.", len(raw), maxRaw)
	}
	raw = bytes.ToValidUTF8(bytes.TrimPrefix(raw, []byte("\uFEFF")), []byte("\uFFFD"))
	best, rank := found{}, -1
	for _, v := range values(raw) {
		if f, ok := findPlan(v, maxWrapped); ok && f.rank() > rank {
			best, rank = f, f.rank()
		}
	}
	if rank >= 0 {
		return best.plan()
	}
	return Plan{}, invalid("tasks", `This text holds no plan. Answer with one JSON object and nothing else: `+
		`{"tasks": [{"id": "task_1", "title": "...", "description": "...", "dependencies": []}], "summary": "..."}.`)
}

// CoerceTasks converts a client's list of tasks, or a single task, into a list of tasks. It
// generates missing ids and keeps the others. The result
// passes Check. The error is a PLAN_INVALID fault that a person can act on.
func CoerceTasks(raw json.RawMessage) ([]event.Step, error) {
	if len(raw) > maxRaw {
		return nil, invalid("tasks", "the list has %d bytes: %d are allowed.", len(raw), maxRaw)
	}
	raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	var list []json.RawMessage
	switch first(raw) {
	case '[':
		if json.Unmarshal(raw, &list) != nil {
			return nil, invalid("tasks", "The tasks are not valid JSON.")
		}
	case '{':
		list = []json.RawMessage{raw}
	default:
		return nil, invalid("tasks", "The tasks are not a list. Send a list of objects with id and title, or one such object.")
	}
	return makeTasks(list, false)
}

// found is a plan that was found in a text.
type found struct {
	list []json.RawMessage
	rest object // the members beside the list
}

// rank says how sure it is that this is the plan: any text may hold an empty list, or
// one of strings.
func (f found) rank() int {
	switch {
	case f.rest != nil, slices.ContainsFunc(f.list, func(v json.RawMessage) bool { return first(v) == '{' }):
		return 2
	case len(f.list) > 0:
		return 1
	}
	return 0
}

func (f found) plan() (Plan, error) {
	tasks, err := makeTasks(f.list, true)
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Tasks: tasks, Summary: cut(f.rest.text(namesSummary), maxSummary), Reasoning: cut(f.rest.text(namesReasoning), maxReasoning),
	}, nil
}

// cut shortens a text to at most limit bytes, visibly.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit - len("...")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// findPlan looks for a list of tasks in a value: the value itself, a member of it,
// or of an object in it.
func findPlan(v json.RawMessage, depth int) (found, bool) {
	if list, ok := taskList(v); ok {
		return found{list: list}, true
	}
	o, ok := asObject(v)
	if !ok {
		return found{}, false
	}
	for _, name := range namesTasks {
		for _, key := range o.keys(name) {
			if list, ok := taskList(o[key]); ok {
				delete(o, key)
				return found{list, o}, true
			}
		}
	}
	if depth > 0 {
		for _, key := range o.wrappers() {
			if f, ok := findPlan(o[key], depth-1); ok {
				return f, true
			}
		}
	}
	if o.has(namesTitle) && (o.has(namesDescription) || o.has(namesID)) {
		return found{list: []json.RawMessage{v}}, true // one task by itself
	}
	return found{}, false
}

// wrappers returns the members that may hold the plan: well-known ones, or the only one.
func (o object) wrappers() []string {
	var out []string
	for _, name := range namesWrapper {
		out = append(out, o.keys(name)...)
	}
	if len(o) == 1 && len(out) == 0 {
		for key := range o {
			out = append(out, key)
		}
	}
	return out
}

// taskList reports whether v is a list whose elements may be tasks. An empty list counts, because
// Check reports it.
func taskList(v json.RawMessage) ([]json.RawMessage, bool) {
	var list []json.RawMessage
	if first(v) != '[' || json.Unmarshal(v, &list) != nil {
		return nil, false
	}
	for _, e := range list {
		if c := first(e); c != '{' && c != '"' {
			return nil, false
		}
	}
	return list, true
}

// values returns the JSON values in a text, in the order in which they are to be
// tried: the text itself, those in code fences, those anywhere else.
func values(raw []byte) []json.RawMessage {
	var out []json.RawMessage
	if v, ok := whole(raw); ok {
		return append(out, v)
	}
	for _, m := range fenced.FindAllSubmatch(raw, maxOpenings) {
		if v, ok := whole(m[1]); ok {
			out = append(out, v)
		}
	}
	return append(out, embedded(raw)...)
}

var fenced = regexp.MustCompile("(?s)(?:```|~~~)[A-Za-z0-9_+-]*[ \t]*\r?\n?(.*?)(?:```|~~~)")

// whole returns raw as one JSON value, if it is one with at most some commas too many.
func whole(raw []byte) (json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	if c := first(raw); c == '"' { // JSON that was quoted as a string
		var s string
		if json.Unmarshal(raw, &s) == nil {
			raw = bytes.TrimSpace([]byte(s))
		}
	}
	if json.Valid(raw) {
		return raw, true
	}
	raw = dropCommas(raw)
	return raw, json.Valid(raw)
}

// embedded returns the lists and objects that are somewhere in a text.
func embedded(raw []byte) []json.RawMessage {
	var out []json.RawMessage
	for range maxOpenings {
		i := bytes.IndexAny(raw, "{[")
		if i < 0 {
			break
		}
		raw = raw[i:]
		v, rest, ok := leading(raw)
		if !ok {
			v, rest, ok = leading(dropCommas(raw))
		}
		if !ok {
			raw = raw[1:]
			continue
		}
		out, raw = append(out, v), rest
	}
	return out
}

// leading returns the JSON value that a text begins with, and what follows it.
func leading(raw []byte) (v json.RawMessage, rest []byte, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if d.Decode(&v) != nil {
		return nil, raw, false
	}
	return v, raw[d.InputOffset():], true
}

// dropCommas removes the commas that stand before a closing bracket, outside of
// strings. It is the one mistake that is put right: its meaning is beyond doubt.
func dropCommas(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	inString, escaped := false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == ']', c == '}':
			if t := bytes.TrimRight(out, " \t\r\n"); bytes.HasSuffix(t, []byte(",")) {
				out = t[:len(t)-1]
			}
		}
		out = append(out, c)
	}
	return out
}

func (o object) has(names []string) bool {
	_, ok := o.find(names)
	return ok
}

// text returns the first member with one of the names that is a text, "" for none.
func (o object) text(names []string) string {
	for _, n := range names {
		for _, key := range o.keys(n) {
			var s string
			if first(o[key]) == '"' && json.Unmarshal(o[key], &s) == nil {
				return strings.TrimSpace(s)
			}
		}
	}
	return ""
}
