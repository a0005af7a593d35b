package myagent

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Task is one piece of a plan.
type Task struct {
	ID               string          `json:"id"`
	Title            string          `json:"title"`
	Description      string          `json:"description,omitempty"`
	Priority         int             `json:"priority,omitempty"`               // lower starts earlier
	Dependencies     []string        `json:"dependencies"`                     // ids of tasks that have to be done first
	Capability       string          `json:"capability,omitempty"`             // the agents that may solve it; absent: the built-in one. Addition
	Context          json.RawMessage `json:"context,omitempty"`                // as it was given
	EstimatedTokens  int64           `json:"estimated_tokens,omitempty"`       // as the planner guessed
	EstimatedSeconds int64           `json:"estimated_time_seconds,omitempty"` // as the planner guessed
	Extra            map[string]any  `json:"-"`                                // members of the task that are not named here; they stay at its top level
}

// MarshalJSON implements json.Marshaler. Members of Extra come last, sorted; those
// that the task has by itself are left out.
func (t Task) MarshalJSON() ([]byte, error) {
	type plain Task // Without the method, which would call itself.
	if t.Dependencies == nil {
		t.Dependencies = []string{}
	}
	b, err := plainjson.Marshal(plain(t))
	if err != nil || len(t.Extra) == 0 {
		return b, err
	}
	more := maps.Clone(t.Extra)
	for _, name := range TaskMembers {
		delete(more, name)
	}
	if len(more) == 0 {
		return b, nil
	}
	extra, err := plainjson.Marshal(more)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{b[:len(b)-1], extra[1:]}, []byte{','}), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Task) UnmarshalJSON(b []byte) error {
	type plain Task
	if err := json.Unmarshal(b, (*plain)(t)); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &t.Extra); err != nil {
		return err
	}
	maps.DeleteFunc(t.Extra, func(name string, _ any) bool { return slices.Contains(TaskMembers, name) })
	return nil
}

// TaskMembers are the members of a task that have a meaning here.
var TaskMembers = []string{
	"id", "title", "description", "priority", "dependencies", "capability", "context", "estimated_tokens", "estimated_time_seconds",
}
