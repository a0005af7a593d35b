package narrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// TestWhoAndWhat: a narration names the task, its agent, and the tool with its arguments, and says which failure is the end.
func TestWhoAndWhat(t *testing.T) {
	const head = `"task_id":"t1","agent_id":"a1","agent_name":"Painter"`
	for name, c := range map[string]struct {
		kind       event.Type
		data, text string
		by, run    string
		ends       bool
	}{
		"question of an agent": {event.TaskAsked, `{` + head + `,"input_id":"q","message":"Which?"}`, "Painter asks: Which?", "Painter", "t1", false},
		"without a name":       {event.TaskAsked, `{"task_id":"t1","input_id":"q","message":"Which?"}`, "Which?", "", "t1", false},
		"question about a tool": {
			event.InputRequested, `{"run_id":"r1","scope":"tool","tool":"write","arguments":{"path":"a"},"description":"Writes."}`,
			"May the tool write be called?\nWrites.\nArguments: {\"path\":\"a\"}", "", "r1", false,
		},
		"end of a task": {event.TaskFinished, `{` + head + `,"status":"failed","error":"It is dry."}`, "The agent Painter has failed: It is dry.", "Painter", "t1", true},
		"end of a run":  {event.RunFailed, `{"run_id":"r1","code":"MODEL_FAILED","message":"Too bad."}`, "Too bad.", "", "r1", true},
		"failed call":   {event.CallFinished, `{` + head + `,"tool":"mix","status":"error","error":"No paint."}`, "The tool mix has failed: No paint.", "Painter", "t1", false},
		"lost call":     {event.CallFinished, `{` + head + `,"tool":"mix","status":"unknown","error":"Gone."}`, "The outcome of the tool mix is unknown: Gone.", "Painter", "t1", false},
		"lost tool":     {event.ToolUnknown, `{"run_id":"r1","tool":"mix","message":"Gone."}`, "The outcome of the tool mix is unknown: Gone.", "", "r1", false},
	} {
		n, err := narrate.Of(event.Event{Type: c.kind, Data: []byte(c.data)})
		require.NoError(t, err, name)
		require.Equal(t, c.text, n.Whole(), name)
		require.Equal(t, []any{c.by, c.run, c.ends}, []any{n.By, n.Run, n.Ends}, name)
	}
}
