package builtin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// promptMembers are the members of a task's data that may hold its text, by precedence.
var promptMembers = []string{"prompt", "message", "question", "query", "text", "input", "description", "content", "task", "goal"}

// typeMembers name the type of a task and mean nothing to a model.
var typeMembers = []string{"taskType", "type"}

// maxPrompt bounds the text of a task for the model, so that the message fits into an event (256
// KiB) even if JSON doubles it.
const maxPrompt = 96 << 10

// prompt makes a message for the model of a task's text and the rest of its data.
func prompt(t event.TaskAssignedData) string {
	return clip(say(t.TaskType, t.Data))
}

func say(taskType string, data json.RawMessage) string {
	if s, ok := text(data); ok {
		return s
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || members == nil {
		return whole(taskType, data)
	}
	for _, name := range promptMembers {
		s, ok := text(members[name])
		if !ok {
			continue
		}
		if alone(members, name) {
			return s
		}
		return s + "\n\nWhat belongs to it, as JSON:\n" + string(data)
	}
	return whole(taskType, data)
}

// alone reports whether an object says nothing beside the member.
func alone(members map[string]json.RawMessage, name string) bool {
	for m := range members {
		if m != name && !slices.Contains(typeMembers, m) {
			return false
		}
	}
	return true
}

func whole(taskType string, data json.RawMessage) string {
	if taskType == "" {
		return "Do what these data ask for:\n" + string(data)
	}
	return fmt.Sprintf("Do this task: %s. Its data, as JSON:\n%s", taskType, data)
}

// text returns a JSON string that says something.
func text(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil || strings.TrimSpace(s) == "" {
		return "", false
	}
	return s, true
}

func clip(s string) string {
	if len(s) <= maxPrompt {
		return s
	}
	return strings.ToValidUTF8(s[:maxPrompt], "") + "\n[truncated]"
}

// mail turns a message of the client during the task into one for the model.
func mail(m event.TaskMessagedData) string { return clip(say("", m.Message)) }
