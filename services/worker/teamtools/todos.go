package teamtools

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Todos returns the list that a call of update_todos makes. Items without an id of
// their own get the first free number of the list. The same arguments give the same list.
func Todos(arguments json.RawMessage) ([]event.Todo, error) {
	var in struct {
		Todos []event.Todo `json:"todos"`
	}
	if err := json.Unmarshal(object(arguments), &in); err != nil {
		return nil, fault.New(fault.ToolBadInput).Wrap(err)
	}
	taken := map[string]bool{}
	for i, t := range in.Todos {
		if t.TodoID != "" && taken[t.TodoID] {
			return nil, fault.Newf(fault.ToolBadInput, "Two items have the todo_id %q.", t.TodoID).At(fmt.Sprintf("/todos/%d/todo_id", i))
		}
		taken[t.TodoID] = true
	}
	next := 0
	for i := range in.Todos {
		for t := &in.Todos[i]; t.TodoID == ""; {
			next++
			if n := "todo_" + strconv.Itoa(next); !taken[n] {
				t.TodoID = n
			}
		}
	}
	if in.Todos == nil {
		in.Todos = []event.Todo{}
	}
	return in.Todos, nil
}

// told is the result of the tool for the member.
func told(list []event.Todo) string {
	if len(list) == 0 {
		return "Your list is empty now."
	}
	var b strings.Builder
	b.WriteString("Your list is now:")
	for _, t := range list {
		fmt.Fprintf(&b, "\n- %s (%s): %s", t.TodoID, t.Status, t.Description)
	}
	return b.String()
}
