package orbit_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/orbit"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// outbound is one frame of every type to the client.
var outbound = map[string]any{
	orbit.AgentStart:     orbit.Frame[orbit.MessageData]{},
	orbit.AgentReady:     orbit.Frame[orbit.ReadyData]{},
	orbit.UserInput:      orbit.Frame[orbit.MessageData]{},
	orbit.AgentThinking:  orbit.Frame[orbit.ThoughtData]{},
	orbit.ToolCalled:     orbit.Frame[orbit.ToolCalledData]{},
	orbit.ToolExecuting:  orbit.Frame[orbit.ToolExecutingData]{},
	orbit.ToolResult:     orbit.Frame[orbit.ToolResultData]{},
	orbit.AgentResponse:  orbit.Frame[orbit.ResponseData]{},
	orbit.Error:          orbit.Frame[orbit.ErrorData]{},
	orbit.AgentDelta:     orbit.Frame[orbit.DeltaData]{},
	orbit.ThinkingDelta:  orbit.Frame[orbit.DeltaData]{},
	orbit.DeltaDiscarded: orbit.Frame[orbit.DiscardedData]{},
}

type schema struct {
	Ref        string            `json:"$ref"`
	AllOf      []schema          `json:"allOf"`
	Properties map[string]schema `json:"properties"`
	Const      any               `json:"const"`
}

// definitions are those of the bundle.
type definitions map[string]schema

func load(t *testing.T) definitions {
	t.Helper()
	var bundle struct {
		Defs definitions `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(orbit.Schema), &bundle); err != nil {
		t.Fatal(err)
	}
	return bundle.Defs
}

// members returns the members of a schema and of its references.
func (d definitions) members(s schema) map[string]schema {
	out := map[string]schema{}
	if s.Ref != "" {
		maps.Copy(out, d.members(d[strings.TrimPrefix(s.Ref, "#/$defs/")]))
	}
	for _, part := range s.AllOf {
		maps.Copy(out, d.members(part))
	}
	maps.Copy(out, s.Properties)
	return out
}

// TestTypesAndSchemasAgree checks that a Go type and its schema have the same
// members, so that neither is changed alone.
func TestTypesAndSchemasAgree(t *testing.T) {
	all := load(t)
	for _, kind := range orbit.Outbound {
		s := all.members(all[kind])
		if s["type"].Const != kind {
			t.Errorf("%s: the schema is about %v", kind, s["type"].Const)
		}
		frame := reflect.TypeOf(outbound[kind])
		for name := range s {
			if !slices.Contains(members(frame), name) {
				t.Errorf("%s: the Go type has no %s", kind, name)
			}
		}
		data, _ := frame.FieldByName("Data")
		same(t, kind+".data", members(data.Type), all.members(s["data"]))
	}
	same(t, "health", members(reflect.TypeFor[orbit.Health]()), all.members(all["health"]))
	for kind, in := range map[string]reflect.Type{
		orbit.UserMessage: reflect.TypeFor[orbit.UserMessageIn](), orbit.Cancel: reflect.TypeFor[orbit.CancelIn](),
		orbit.Answer: reflect.TypeFor[orbit.AnswerIn](),
	} {
		for name := range all.members(all[kind]) {
			if !slices.Contains(members(in), name) {
				t.Errorf("%s: the Go type has no %s", kind, name)
			}
		}
	}
	if len(outbound) != len(orbit.Outbound) {
		t.Errorf("%d frames for %d types", len(outbound), len(orbit.Outbound))
	}
}

// TestExamples checks that every example of the original protocol has a known type, and that every type of it has an
// example.
func TestExamples(t *testing.T) {
	additions := []string{orbit.Cancel, orbit.Answer, orbit.AgentDelta, orbit.ThinkingDelta, orbit.DeltaDiscarded}
	for _, kind := range append(append([]string{"health", "envelope"}, orbit.Inbound...), orbit.Outbound...) {
		raw, err := orbit.Examples.ReadFile("examples/" + kind + ".json")
		if slices.Contains(additions, kind) {
			if err == nil {
				t.Errorf("%s is an addition and has an example of the original", kind)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		var v struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(raw, &v); err != nil || kind != "health" && kind != "envelope" && v.Type != kind {
			t.Errorf("%s: the example is of type %q, %v", kind, v.Type, err)
		}
	}
}

func TestEnvelopeHasTheMembersOfTheOriginal(t *testing.T) {
	raw, err := orbit.Examples.ReadFile("examples/envelope.json")
	if err != nil {
		t.Fatal(err)
	}
	var example map[string]any
	if err := json.Unmarshal(raw, &example); err != nil {
		t.Fatal(err)
	}
	for name := range example {
		if !slices.Contains(members(reflect.TypeFor[orbit.Frame[any]]()), name) {
			t.Errorf("a frame has no %s", name)
		}
	}
}

func TestFrame(t *testing.T) {
	none, exec := orbit.ExecutionID(""), orbit.ExecutionID("exec_20260301_120000_000001")
	at := orbit.Timestamp{Time: time.Date(2026, 3, 1, 13, 0, 0, 7_900_000, time.FixedZone("", 3600))}
	for want, f := range map[string]orbit.Frame[orbit.MessageData]{
		`{"type":"a","timestamp":"2026-03-01T12:00:00.007Z","data":{"message":"<b>&"}}`:                                                          {Type: "a", Timestamp: at, Data: orbit.MessageData{Message: "<b>&"}},
		`{"type":"a","timestamp":"2026-03-01T12:00:00.007Z","execution_id":null,"data":{"message":""}}`:                                          {Type: "a", Timestamp: at, ExecutionID: &none},
		`{"type":"a","seq":9,"timestamp":"2026-03-01T12:00:00.007Z","execution_id":"exec_20260301_120000_000001","data":{"message":"\u2028\n"}}`: {Type: "a", Seq: 9, Timestamp: at, ExecutionID: &exec, Data: orbit.MessageData{Message: "\u2028\n"}},
	} {
		raw, err := f.Encode()
		if err != nil || string(raw) != want {
			t.Errorf("got %s, %v\nwant %s", raw, err, want)
		}
		var back orbit.Frame[orbit.MessageData]
		if err := json.Unmarshal(raw, &back); err != nil || back.Seq != f.Seq || back.Data != f.Data ||
			!back.Timestamp.Equal(at.Truncate(time.Millisecond)) {
			t.Errorf("%s came back as %+v, %v", raw, back, err)
		}
	}
	bad := orbit.Frame[json.RawMessage]{Type: "a", Data: json.RawMessage(`{`)}
	if _, err := bad.Encode(); err == nil {
		t.Error("a frame that is no JSON was encoded")
	}
}

// members returns the JSON names of a struct.
func members(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}

func same(t *testing.T, what string, names []string, props map[string]schema) {
	t.Helper()
	for _, n := range names {
		if _, ok := props[n]; !ok {
			t.Errorf("%s: the schema has no %s", what, n)
		}
	}
	for n := range props {
		if !slices.Contains(names, n) {
			t.Errorf("%s: the Go type has no %s", what, n)
		}
	}
}

// TestFramesAreEncodedAsTheirTagsSay: the encoder of frames writes what the struct tags say.
func TestFramesAreEncodedAsTheirTagsSay(t *testing.T) {
	at := orbit.Timestamp{Time: time.Date(2026, 2, 3, 4, 5, 6, 7_000_000, time.FixedZone("", 3600))}
	none, run := orbit.ExecutionID(""), orbit.ExecutionID("exec_20260203_040506_000007")
	text := "<a>&\u2028\"\\\n\x01é\xff"
	for _, id := range []*orbit.ExecutionID{nil, &none, &run} {
		for _, agent := range []string{"", "team/" + text} {
			asTagged(t, orbit.Frame[orbit.DeltaData]{Type: orbit.AgentDelta, Seq: 7, Timestamp: at, ExecutionID: id, Agent: agent, Data: orbit.DeltaData{MessageID: "m", Text: text}})
			asTagged(t, orbit.Frame[orbit.MessageData]{Type: text, Timestamp: at, ExecutionID: id, Agent: agent, Data: orbit.MessageData{Message: text}})
			asTagged(t, orbit.Frame[orbit.ResponseData]{Type: orbit.AgentResponse, Seq: 1<<64 - 1, Timestamp: at, ExecutionID: id, Agent: agent, Data: orbit.ResponseData{Message: text, ExecutionCompleted: true}})
			asTagged(t, orbit.Frame[orbit.ResponseData]{Type: orbit.AgentResponse, Timestamp: at, Agent: agent})
			asTagged(t, orbit.Frame[orbit.ToolResultData]{Type: orbit.ToolResult, Timestamp: at, ExecutionID: id, Agent: agent, Data: orbit.ToolResultData{Result: text}})
		}
	}
}

func asTagged[D any](t *testing.T, f orbit.Frame[D]) {
	t.Helper()
	want, err := plainjson.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.Encode(); err != nil || string(got) != string(want) {
		t.Errorf("Encode() = %s, %v; want %s", got, err, want)
	}
}
