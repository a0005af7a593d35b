package team_test

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// names returns the names of the files of a folder, without .json.
func names(t *testing.T, fsys fs.FS, dir string) []string {
	t.Helper()
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(out)
	return out
}

// TestNoMessageGoesBothWays: the type of a message is the name of a definition.
func TestNoMessageGoesBothWays(t *testing.T) {
	for _, kind := range team.Inbound {
		if slices.Contains(team.Outbound, kind) || kind == team.AssistantChunk {
			t.Errorf("%s goes both ways", kind)
		}
	}
}

// TestEveryMessageIsDescribed: its definition describes the message.
func TestEveryMessageIsDescribed(t *testing.T) {
	var bundle struct {
		Defs map[string]struct {
			Description string `json:"description"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(team.Schema), &bundle); err != nil {
		t.Fatal(err)
	}
	for _, kind := range append(slices.Clone(team.Inbound), team.Outbound...) {
		if bundle.Defs[kind].Description == "" {
			t.Errorf("%s: the definition says nothing", kind)
		}
	}
}

// TestEveryMessageHasAnEventType: except for the handshake, and for two messages that only teams send and that have
// an event type of their own.
func TestEveryMessageHasAnEventType(t *testing.T) {
	of := map[string]string{}
	for _, kind := range append(slices.Clone(team.Outbound), team.AssistantChunk) {
		name, ok := team.EventTypes[kind]
		if ok == (kind == team.Connected) {
			t.Errorf("%s: %q", kind, name)
		}
		if other := of[name]; ok && name != team.SegmentEventType && other != "" {
			t.Errorf("%s and %s are both %s", kind, other, name)
		}
		of[name] = kind
	}
}

// TestExamples: each is a known message, and every message of clients has one.
func TestExamples(t *testing.T) {
	shown := map[string]bool{}
	for _, name := range names(t, team.Examples, "examples") {
		kind, _, _ := strings.Cut(name, "-")
		shown[kind] = true
		raw, err := team.Examples.ReadFile("examples/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Type   string `json:"type"`
			Source string `json:"event_source_type"`
		}
		if err := json.Unmarshal(raw, &v); err != nil || v.Type != kind && v.Source == "" {
			t.Errorf("%s: the example is of type %q, %v", name, v.Type, err)
		}
	}
	for _, kind := range team.Inbound {
		if addition := kind == team.Pause || kind == team.Resume; shown[kind] == addition {
			t.Errorf("%s: there is an example of the original: %v", kind, shown[kind])
		}
	}
}

// TestWhereWins: the place does not replace members of the payload itself.
func TestWhereWins(t *testing.T) {
	p := &team.TaskPlanPayload{TeamID: "t", AgentName: "Writer"}
	p.Put(team.Where{AgentName: "other", AgentID: "a", SubTeamNodeName: "node"})
	raw, err := team.Encode(team.Frame{Type: team.TaskPlanEvent, Payload: p})
	const want = `{"type":"TASK_PLAN_EVENT","payload":{"team_id":"t","agent_name":"Writer","agent_id":"a","sub_team_node_name":"node"}}`
	if err != nil || string(raw) != want {
		t.Fatalf("got  %s, %v\nwant %s", raw, err, want)
	}
}

func TestEncode(t *testing.T) {
	at := team.Timestamp{Time: time.Date(2026, 3, 1, 13, 0, 0, 7_900_000, time.FixedZone("", 3600))}
	v := team.StreamEvent{EventID: "<b>&\u2028", Timestamp: at, AgentID: "a", EventType: "error_event", Data: json.RawMessage(`{"a":1}`)}
	raw, err := team.Encode(v)
	const want = `{"event_id":"<b>&\u2028","timestamp":"2026-03-01T12:00:00.007Z","agent_id":"a","event_type":"error_event","data":{"a":1}}`
	if err != nil || string(raw) != want {
		t.Fatalf("got  %s, %v\nwant %s", raw, err, want)
	}
	var back team.StreamEvent
	if err := json.Unmarshal(raw, &back); err != nil || !back.Timestamp.Equal(at.Truncate(time.Millisecond)) {
		t.Fatalf("%s came back as %+v, %v", raw, back, err)
	}
	if _, err := team.Encode(json.RawMessage(`{`)); err == nil {
		t.Fatal("what is no JSON was encoded")
	}
}
