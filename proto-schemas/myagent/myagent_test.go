package myagent_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// shape holds the types of the content and the metadata of an event. Content is nil for an event without one.
type shape struct{ content, metadata any }

// inbound holds the types of the content and the metadata of an event from the client, in the form of the original's
// example.
var inbound = map[string]shape{
	myagent.UserMessage:            {"", &myagent.RunMeta{}},
	myagent.UserSolveTasks:         {&myagent.Tasks{}, &myagent.RunMeta{}},
	myagent.UserResponse:           {&myagent.Response{}, &myagent.ResponseMeta{}},
	myagent.UserCancel:             {"", &myagent.ReasonMeta{}},
	myagent.UserCancelTask:         {&myagent.TaskRef{}, &myagent.ReasonMeta{}},
	myagent.UserRestartTask:        {&myagent.TaskRef{}, &myagent.ReasonMeta{}},
	myagent.UserAck:                {nil, &myagent.AckMeta{}},
	myagent.UserCreateSession:      {&myagent.ClientInfo{}, &myagent.ClientMeta{}},
	myagent.UserReconnectWithState: {&myagent.Position{}, &myagent.OfflineMeta{}},
	myagent.UserRequestState:       {nil, &myagent.StateMeta{}},
}

// TestTheTypesOfClientsHaveAllOfTheOriginal: the Go types keep every member of the original's examples.
func TestTheTypesOfClientsHaveAllOfTheOriginal(t *testing.T) {
	for kind, s := range inbound {
		raw, err := myagent.Examples.ReadFile("examples/" + kind + ".json")
		if err != nil {
			t.Fatal(err)
		}
		m := myagent.Message{Content: s.content, Metadata: s.metadata}
		d := json.NewDecoder(bytes.NewReader(withoutTime(t, raw)))
		d.DisallowUnknownFields()
		if err := d.Decode(&m); err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if json.Unmarshal(withoutTime(t, raw), &want) != nil || json.Unmarshal(again, &got) != nil || !has(got, want) {
			t.Errorf("%s came back as %s", raw, again)
		}
	}
}

// withoutTime removes the timestamp from a message: clients need not send one.
func withoutTime(t *testing.T, raw []byte) []byte {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "timestamp")
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// has reports whether got has all members of want, except false ones, which are left out.
func has(got, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for name, v := range w {
			ok = ok && (v == false || has(g[name], v))
		}
		return ok
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			ok = ok && has(g[i], w[i])
		}
		return ok
	}
	return reflect.DeepEqual(got, want)
}

func TestEveryExampleIsOfItsEvent(t *testing.T) {
	entries, err := fs.ReadDir(myagent.Examples, "examples")
	if err != nil {
		t.Fatal(err)
	}
	const described = 38 // events of the original description
	if len(entries) != described {
		t.Errorf("%d examples", len(entries))
	}
	for _, e := range entries {
		raw, err := myagent.Examples.ReadFile("examples/" + e.Name())
		var m myagent.Message
		if err != nil || json.Unmarshal(raw, &m) != nil || m.Event+".json" != e.Name() {
			t.Errorf("%s is an example of %q (%v)", e.Name(), m.Event, err)
		}
		if !slices.Contains(myagent.Inbound, m.Event) && !slices.Contains(myagent.Outbound, m.Event) {
			t.Errorf("%s is not known", m.Event)
		}
	}
}

func TestFrame(t *testing.T) {
	at := myagent.Stamp(time.Date(2026, 3, 1, 13, 0, 0, 7_900_000, time.FixedZone("", 3600)))
	f := myagent.Frame{Event: "a", Metadata: myagent.Context{}, Timestamp: at}
	if b, err := f.Encode(); err != nil || string(b) != `{"event":"a","metadata":{},"timestamp":"2026-03-01T12:00:00.007Z"}` {
		t.Errorf("%s, %v", b, err)
	}
	f.Content, f.ShowContent = json.RawMessage("\"\xff\""), "<b>&"
	if b, err := f.Encode(); err != nil || string(b) != `{"event":"a","content":"`+"\ufffd"+`","metadata":{},"timestamp":"2026-03-01T12:00:00.007Z","show_content":"<b>&"}` {
		t.Errorf("%s, %v", b, err)
	}
	f.Content = json.RawMessage(`{`)
	if _, err := f.Encode(); err == nil {
		t.Error("a frame that is no JSON was encoded")
	}
}

// TestTask: unknown members keep their place, and cannot replace known ones.
func TestTask(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":"a","title":"A"}`: `{"id":"a","title":"A","dependencies":[]}`,
		`{"notes":"n","id":"a","title":"A","z":1,"dependencies":["b"]}`: `{"id":"a","title":"A","dependencies":["b"],"notes":"n","z":1}`,
	} {
		var task myagent.Task
		if err := json.Unmarshal([]byte(in), &task); err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(task); err != nil || string(b) != want {
			t.Errorf("%s gives %s, %v", in, b, err)
		}
	}
	b, err := json.Marshal(myagent.Task{ID: "a", Title: "A", Extra: map[string]any{"id": "other"}})
	if err != nil || string(b) != `{"id":"a","title":"A","dependencies":[]}` {
		t.Errorf("%s, %v", b, err)
	}
}
