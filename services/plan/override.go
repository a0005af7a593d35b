package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Override returns the tasks with some of their members changed. The patch is a list of objects,
// each with the id of a task and the members to override; null clears a member. The result passes
// Check. An invalid patch, or one that names an unknown task, is a PLAN_INVALID fault.
func Override(tasks []event.Step, patch json.RawMessage) ([]event.Step, error) {
	if len(patch) > maxRaw {
		return nil, invalid("modified_tasks", "the changes have %d bytes: %d are allowed.", len(patch), maxRaw)
	}
	patch = bytes.ToValidUTF8(patch, []byte("\uFFFD"))
	var list []json.RawMessage
	if first(patch) != '[' || json.Unmarshal(patch, &list) != nil {
		return nil, invalid("modified_tasks", "The changes are not a list. Send a list of objects, each with the id of a task and what to change of it.")
	}
	drafts := make([]draft, 0, len(tasks))
	for _, t := range tasks {
		t.Dependencies = slices.Clone(t.Dependencies)
		drafts = append(drafts, draft{task: t, written: t.ID})
	}
	p, at := &problems{}, positions(tasks)
	for i, raw := range list {
		if why := patchOne(drafts, at, raw); why != "" {
			p.add("modified_tasks["+strconv.Itoa(i)+"]", "change %d %s", i+1, why)
		}
	}
	if err := p.fault(); err != nil {
		return nil, err
	}
	resolve(drafts)
	out := make([]event.Step, 0, len(drafts))
	for _, d := range drafts {
		out = append(out, d.task)
	}
	if err := Check(out); err != nil {
		return nil, err
	}
	return out, nil
}

// patchOne changes the task that an element names, and returns the problem, or "".
func patchOne(drafts []draft, at map[string]int, raw json.RawMessage) string {
	o, ok := asObject(raw)
	if !ok {
		return "is not an object"
	}
	key, ok := o.find(namesID)
	if !ok {
		return "names no task: it has no id"
	}
	id, _, ok := reference(o[key])
	if !ok || id == "" {
		return "names no task: its id is " + show(string(o[key]))
	}
	i, known := at[id]
	if !known {
		return "names the task " + show(id) + ", which is not in the list"
	}
	delete(o, key)
	d := &drafts[i]
	why := d.merge(o)
	d.written = id // another member with a name of an id changes nothing
	return why
}
