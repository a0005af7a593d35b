package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/internal/hostile"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var log = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}

func TestNew(t *testing.T) {
	at := time.Date(2026, 3, 1, 13, 0, 0, 123_456_789, time.FixedZone("CET", 3600))
	e, err := event.New(log, "e1", "waggle/worker/x", at, event.ToolStartedData{CallID: "c", Attempt: 2, Tool: "t", Retry: true})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"specversion":"1.0","id":"e1","source":"waggle/worker/x","type":"tool.started","subject":"default.session.s1",` +
		`"time":"2026-03-01T12:00:00.123Z","sequence":0,"data":{"call_id":"c","run_id":"","execution_id":"","attempt":2,"tool":"t","retry":true}}`
	if string(raw) != want {
		t.Fatalf("got  %s\nwant %s", raw, want)
	}
}

type unencodable struct{ C chan int }

func (unencodable) EventType() event.Type { return event.Notice }

func TestNewNamesTheTypeThatItCannotEncode(t *testing.T) {
	_, err := event.New(log, "e1", "s", time.Now(), unencodable{make(chan int)})
	if err == nil || !strings.Contains(err.Error(), string(event.Notice)) {
		t.Fatalf("got %v", err)
	}
}

// TestDataSurvives stores and reads events whose data has members that no struct knows, numbers that float64 cannot
// hold and texts of every kind. The stored form of data does not depend on the type: the types take turns, and each of
// them gets several texts.
func TestDataSurvives(t *testing.T) {
	n := 0
	hostile.Strings(5, 20*len(event.Catalogue), func(s string) {
		kind := event.Catalogue[n%len(event.Catalogue)].Type
		n++
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		data := fmt.Sprintf(`{"unknown":{"deep":[1,2.50,123456789012345678901234567890,null,true]},"text":%s,"":%s,"later":[]}`, text, text)
		e := event.Event{
			SpecVersion: event.SpecVersion, ID: "e1", Source: "s", Type: kind, Subject: log.Name(),
			Time: time.Unix(1, 0).UTC(), Sequence: 1<<63 + 1, Data: []byte(data), TraceParent: "00-1-2-01",
		}
		once := again(t, e)
		twice := again(t, once)
		if once.Type != kind || once.Sequence != e.Sequence || !once.Time.Equal(e.Time) || once.TraceParent != e.TraceParent {
			t.Fatalf("got %+v", once)
		}
		if !bytes.Equal(once.Data, twice.Data) || canonical(t, once.Data) != canonical(t, e.Data) {
			t.Fatalf("data changed: %s", once.Data)
		}
	})
}

func again(t *testing.T, e event.Event) event.Event {
	t.Helper()
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var out event.Event
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// canonical returns JSON with sorted members and numbers as they were written.
func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(v)
}

func TestDecode(t *testing.T) {
	e := event.Event{ID: "e7", Type: event.MessageDelta, Data: []byte(`{"text":"hi","attempt":3,"new":1}`)}
	d, err := event.As[event.MessageDeltaData](e)
	if err != nil || d.Text != "hi" || d.Attempt != 3 {
		t.Fatalf("%+v, %v", d, err)
	}
	e.Data = []byte(`{"attempt":"three"}`)
	if _, err := event.As[event.MessageDeltaData](e); err == nil || !strings.Contains(err.Error(), "message.delta event e7") {
		t.Fatalf("the error does not name the event: %v", err)
	}
}

func TestDedupeIDTellsLogsApart(t *testing.T) {
	other := log
	other.Entity = id.EntityFromExternal("s2")
	a, b := event.Event{ID: "e1", Subject: log.Name()}, event.Event{ID: "e1", Subject: other.Name()}
	if a.DedupeID() == b.DedupeID() || a.DedupeID() != "default.session.s1:e1" {
		t.Fatalf("%s, %s", a.DedupeID(), b.DedupeID())
	}
}

func TestTerminal(t *testing.T) {
	n := 0
	for _, info := range event.Catalogue {
		if info.Type.Terminal() {
			n++
			if !strings.Contains(info.Meaning, "(terminal)") {
				t.Errorf("%s is terminal and its meaning does not say so", info.Type)
			}
		}
	}
	if n != 3 {
		t.Errorf("%d terminal types", n)
	}
}

func TestCatalogueIsComplete(t *testing.T) {
	listed := map[event.Type]bool{}
	for _, info := range event.Catalogue {
		if listed[info.Type] || info.Data.EventType() != info.Type || info.Meaning == "" {
			t.Errorf("entry of %s is wrong: %+v", info.Type, info)
		}
		listed[info.Type] = true
		for f := range reflect.TypeOf(info.Data).Fields() {
			if f.Tag.Get("json") == "" && !f.Anonymous {
				t.Errorf("%s.%s has no name in JSON", reflect.TypeOf(info.Data), f.Name)
			}
		}
	}
	listDirectMessages(t, listed)
	for _, value := range append(constants(t, "types.go", "Type"), constants(t, "reasoning.go", "Type")...) {
		if !listed[event.Type(value)] {
			t.Errorf("%s is not in the catalogue", value)
		}
		delete(listed, event.Type(value))
	}
	if len(listed) > 0 {
		t.Errorf("the catalogue has types that are no constants: %v", listed)
	}
}

func listDirectMessages(t *testing.T, listed map[event.Type]bool) {
	t.Helper()
	for _, info := range event.DirectMessages {
		if listed[info.Type] || info.Data.EventType() != info.Type || info.Meaning == "" {
			t.Errorf("aside %s is wrong: %+v", info.Type, info)
		}
		listed[info.Type] = true
	}
}

// constants returns the values of all string constants of a type in a file.
func constants(t *testing.T, path, typeName string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := v.Type.(*ast.Ident); ok && name.Name == typeName {
			for _, e := range v.Values {
				out = append(out, strings.Trim(e.(*ast.BasicLit).Value, `"`))
			}
		}
		return true
	})
	if len(out) == 0 {
		t.Fatalf("%s has no constants of type %s", path, typeName)
	}
	return out
}
