package builtin

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func TestPrompts(t *testing.T) {
	for _, c := range []struct{ taskType, data, want string }{
		{"", `"do it"`, "do it"},
		{"x", `{"prompt":"do it"}`, "do it"},
		{"x", `{"type":"x","query":"do it"}`, "do it"},
		{"x", `{"text":"second","prompt":"first"}`, "first\n\nWhat belongs to it, as JSON:\n" + `{"text":"second","prompt":"first"}`},
		{"add", `{"a":1}`, "Do this task: add. Its data, as JSON:\n" + `{"a":1}`},
		{"", `[1]`, "Do what these data ask for:\n[1]"},
		{"", `{"prompt":" "}`, "Do what these data ask for:\n" + `{"prompt":" "}`},
		{"", `null`, "Do what these data ask for:\nnull"},
	} {
		require.Equal(t, c.want, prompt(event.TaskAssignedData{TaskType: c.taskType, Data: json.RawMessage(c.data)}))
	}
}

func FuzzPrompt(f *testing.F) {
	f.Add("t", `{"prompt":"x"}`)
	f.Add("", `"`+strings.Repeat("ü", maxPrompt)+`"`)
	f.Fuzz(func(t *testing.T, taskType, data string) {
		if !json.Valid([]byte(data)) || !utf8.ValidString(taskType) {
			return // no task holds that
		}
		got := prompt(event.TaskAssignedData{TaskType: taskType, Data: json.RawMessage(data)})
		require.NotEmpty(t, strings.TrimSpace(got))
		require.LessOrEqual(t, len(got), maxPrompt+len("\n[truncated]"))
	})
}
