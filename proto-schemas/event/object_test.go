package event_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

var refType = reflect.TypeFor[*event.ObjectRef]()

// refs returns pointers to the references in a struct, by the name of their member.
func refs(v reflect.Value) map[string]**event.ObjectRef {
	out := map[string]**event.ObjectRef{}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Type == refType {
			out[f.Name], _ = v.Field(i).Addr().Interface().(**event.ObjectRef)
		}
	}
	return out
}

// TestEveryReferenceIsFound: data of any type in the catalogue with a member for a reference implements Large, and
// Refers finds the references of its events.
func TestEveryReferenceIsFound(t *testing.T) {
	found := 0
	for _, info := range event.Catalogue {
		v := reflect.New(reflect.TypeOf(info.Data))
		for name, ref := range refs(v.Elem()) {
			found++
			large, ok := v.Interface().(event.Large)
			if !ok {
				t.Fatalf("%s has the member %s, and no Payloads", info.Type, name)
			}
			*ref = &event.ObjectRef{Log: "task.t1", Digest: name, Size: 7}
			raw, err := json.Marshal(v.Interface())
			if err != nil {
				t.Fatal(err)
			}
			got, err := event.Refers(event.Event{Type: info.Type, Data: raw})
			if err != nil || got == nil {
				t.Fatalf("%s with %s refers to nothing: %v", info.Type, name, err)
			}
			if n := len(payloads(got)); n != 1 {
				t.Errorf("%s with %s has %d references", info.Type, name, n)
			}
			filled := payloads(large)[0]
			*filled.Data, *filled.Ref = json.RawMessage(`"<&>"`), nil
			e, err := event.Event{Type: info.Type}.With(large)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := event.Refers(e); err != nil || got != nil {
				t.Errorf("%s refers to something without a reference: %s", info.Type, e.Data)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d members have references", found)
	}
	for _, large := range []event.Large{
		&command.NewTask{}, &command.SpawnChild{}, &command.TaskMessage{}, &command.TaskNotification{}, &command.TaskQuestion{},
		&command.TaskResult{}, &command.ToolRequest{}, &command.TaskView{},
	} {
		if want := len(refs(reflect.ValueOf(large).Elem())); len(large.Payloads()) != want {
			t.Errorf("%T names %d of its %d references", large, len(large.Payloads()), want)
		}
	}
}

func payloads(d event.Large) (set []event.Payload) {
	for _, p := range d.Payloads() {
		if *p.Ref != nil {
			set = append(set, p)
		}
	}
	return set
}

// TestWhatClientsWriteIsNoReference: only members of our own types are references.
func TestWhatClientsWriteIsNoReference(t *testing.T) {
	for _, data := range []string{
		`{"task_id":"t","status":"completed","result":{"result_ref":{"log":"task.t1","digest":"d","size":1}}}`,
		`{"task_id":"t","status":"completed","result":"\"result_ref\":"}`,
		`{"task_id":"t","status":"completed","data_ref":{"log":"task.t1","digest":"d","size":1}}`,
		`{"task_id":"t","status":"completed","result_ref":null}`,
	} {
		if got, err := event.Refers(event.Event{Type: event.TaskFinished, Data: json.RawMessage(data)}); err != nil || got != nil {
			t.Errorf("%s refers to %v: %v", data, got, err)
		}
	}
	if _, err := event.Refers(event.Event{Type: event.TaskFinished, Data: json.RawMessage(`{"result_ref":7}`)}); err == nil {
		t.Error("a reference that is none is taken")
	}
}
