package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
)

var (
	fileName = regexp.MustCompile(`[\w./-]*\w\.[A-Za-z]\w*`)
	writing  = regexp.MustCompile(`(?i)\bwrite (.+?) to ([\w./-]*\w\.[A-Za-z]\w*)`)
	seeking  = regexp.MustCompile(`(?i)\bsearch for (\S+)`)
	listing  = regexp.MustCompile(`(?i)\b(files|list|folder)\b`)
)

// Smart is a deterministic script that behaves like a simple model:
//
//   - "write TEXT to FILE" calls the tool that ends in write_file, and nothing else;
//   - otherwise, all in one parallel step: the words files, list or folder call
//     list_files, "search for WORD" calls search_files, and every file name calls read_file;
//   - once it has the results, it answers with all of them, each after its tool's name;
//   - without anything to call it answers "You said: ..." with the user's text.
//
// It does not call tools that are not offered. It reports a token a word.
//
// In the stages of a pipeline run it plans a step for each part of the question between semicolons, in sequence where a part
// begins with "then"; it solves a step as it answers the step's title; and its aggregate lists the result of each step.
func Smart() Script {
	return func(x *Exchange) Reply {
		if r, ok := smartStage(x); ok {
			return r
		}
		user, results := turn(x.Prompt.Messages)
		if x.Stage == event.StageSolving && x.Data.Task != nil {
			user = x.Data.Task.Title
		}
		in := int64(len(strings.Fields(user)))
		if len(results) > 0 {
			text := strings.Join(results, "\n\n")
			return Stream(Text(Words(text)...), Usage(in, int64(len(Words(text)))))
		}
		if calls := smartCalls(x, user); len(calls) > 0 {
			return Stream(Calls(7, calls...), Usage(in, int64(len(calls))))
		}
		text := "You said: " + user
		return Stream(Text(Words(text)...), Usage(in, int64(len(Words(text)))))
	}
}

// turn returns the last message of the user and the tools' results since.
func turn(messages []model.Message) (user string, results []string) {
	names := map[string]string{}
	for _, m := range messages {
		switch m.Role {
		case model.RoleUser:
			user, results = m.Content, nil
		case model.RoleAssistant:
			for _, c := range m.ToolCalls {
				names[c.ID] = c.Name
			}
		case model.RoleTool:
			results = append(results, fmt.Sprintf("%s returned:\n%s", names[m.ToolCallID], m.Content))
		}
	}
	return user, results
}

func smartCalls(x *Exchange, user string) []Call {
	var calls []Call
	call := func(tool string, args map[string]string) {
		i := slices.IndexFunc(x.Prompt.Tools, func(t model.ToolSpec) bool { return strings.HasSuffix(t.Name, tool) })
		if i < 0 {
			return
		}
		calls = append(calls, Call{
			ID: fmt.Sprintf("call_%d_%d", x.N, len(calls)), Name: x.Prompt.Tools[i].Name,
			Arguments: fit(x.Prompt.Tools[i].InputSchema, args),
		})
	}
	if m := writing.FindStringSubmatch(user); m != nil {
		call("write_file", map[string]string{"content": m[1], "path": m[2]})
		return calls
	}
	if listing.MatchString(user) {
		call("list_files", nil)
	}
	if m := seeking.FindStringSubmatch(user); m != nil {
		call("search_files", map[string]string{"query": m[1]})
	}
	for _, f := range fileName.FindAllString(user, -1) {
		call("read_file", map[string]string{"path": f})
	}
	return calls
}

// fit renames arguments to the schema's names.
func fit(schema json.RawMessage, args map[string]string) string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s) // without properties the names stay unchanged
	also := map[string][]string{
		"path":    {"file", "filename", "name"},
		"content": {"text", "contents", "data"},
		"query":   {"pattern", "text", "q"},
	}
	out := map[string]string{}
	for name, v := range args {
		for _, other := range append([]string{name}, also[name]...) {
			if _, ok := s.Properties[other]; ok {
				name = other
				break
			}
		}
		out[name] = v
	}
	b, err := json.Marshal(out)
	if err != nil { // unreachable: strings always have a JSON form
		return "{}"
	}
	return string(b)
}

// Calls asks for tools, in parallel for several calls, with the arguments in fragments of at most size runes; 0 sends them
// whole.
func Calls(size int, calls ...Call) Step {
	return func(ctx context.Context, w *Writer) error {
		for _, c := range calls {
			if err := w.Call(ctx, c, size); err != nil {
				return err
			}
		}
		return nil
	}
}

// Script returns the script that answers by stage.
func (s Stages) Script() Script {
	smart := Smart()
	return func(x *Exchange) Reply {
		script := s.of(x)
		if script == nil {
			script = smart
		}
		return script(x)
	}
}

// smartStage returns Smart's answer in a stage; it reports false for a stage that Smart answers like a chat.
func smartStage(x *Exchange) (Reply, bool) {
	in := len(strings.Fields(x.Data.Question))
	switch {
	case x.Stage == event.StagePlanning:
		return Plan(smartPlan(x.Data.Question)...), true
	case x.Stage == event.StageAggregation:
		return say(smartAnswer(x), in), true
	case x.Prompt.Schema != nil && x.Stage == "":
		user, _ := turn(x.Prompt.Messages)
		return Plan(smartPlan(user)...), true
	}
	return Reply{}, false
}
