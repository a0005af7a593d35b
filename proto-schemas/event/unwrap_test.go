package event_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// inTeam returns e as stored in the log of a team: names are those of the member and of its nested teams, the
// innermost first.
func inTeam(t *testing.T, e event.Event, status string, names ...string) event.Event {
	t.Helper()
	for depth, name := range names {
		inner, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var d event.Data = event.TeamMemberEventData{
			MemberName: name, MemberID: "agent-1", Seq: e.Sequence, Status: status, OldStatus: status, Event: inner,
		}
		if depth > 0 {
			d = event.TeamSubTeamEventData{SubTeamNodeName: name, SubTeamID: fmt.Sprintf("team-%d", depth), Seq: e.Sequence, SubTeamEvent: inner}
		}
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		e = event.Event{
			ID: e.ID + "+", Type: d.EventType(), Source: "team", Subject: fmt.Sprintf("default.team.team-%d", depth+1),
			Time: e.Time.Add(time.Second), Sequence: e.Sequence + 10, Data: data,
		}
	}
	e.Stream, e.From = 77, e.Sequence-1
	return e
}

func spoken() event.Event {
	return event.Event{
		SpecVersion: event.SpecVersion, ID: "e1", Source: "worker", Type: event.MessageDelta, Subject: "default.member.agent-1",
		Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Sequence: 3, Data: json.RawMessage(`{ "text" : "<b>\u00e9", "later": [1e2] }`),
	}
}

// TestUnwrap: at any depth the event equals that of the member's log, byte for byte, at the position of the log that
// is read.
func TestUnwrap(t *testing.T) {
	for _, c := range []struct {
		names       []string
		route, last string
		team        string
	}{
		{nil, "", "", ""},
		{[]string{"Writer"}, "Writer", "Writer", ""},
		{[]string{"Coder", "backend_team"}, "backend_team/Coder", "Coder", "team-1"},
		{[]string{"Coder", "inner", "outer"}, "outer/inner/Coder", "Coder", "team-1"},
	} {
		outer := inTeam(t, spoken(), event.AgentIdle, c.names...)
		got := event.Unwrap(outer)
		sameEvent(t, got, spoken(), c.names)
		if got.Sequence != outer.Sequence || got.Stream != 77 || got.From != outer.From || got.Subject != outer.Subject {
			t.Errorf("%q: its position is that of another log: %+v", c.names, got)
		}
		want := event.Via{Route: c.route, TeamID: c.team}
		if c.names != nil {
			want.AgentID, want.Status, want.OldStatus = "agent-1", event.AgentIdle, event.AgentIdle
		}
		if got.Via != want || got.Via.Name() != c.last {
			t.Errorf("%q: it happened at %+v", c.names, got.Via)
		}
	}
}

// sameEvent checks that got is what the log of the agent has.
func sameEvent(t *testing.T, got, want event.Event, names []string) {
	t.Helper()
	if got.ID != want.ID || got.Type != want.Type || got.Source != want.Source || !got.Time.Equal(want.Time) {
		t.Errorf("%q: it is no longer the same event: %+v", names, got)
	}
	if string(got.Data) != string(want.Data) && string(got.Data) != compact(t, want.Data) {
		t.Errorf("%q: its data are %s", names, got.Data)
	}
}

// compact returns raw in the form that it has inside another document.
func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	b, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestUnwrapOfATeamsOwnEvent: an event of a nested team itself has no agent.
func TestUnwrapOfATeamsOwnEvent(t *testing.T) {
	own := spoken()
	own.Type, own.Data = event.TeamStatus, json.RawMessage(`{"new_status":"IDLE"}`)
	inner, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(event.TeamSubTeamEventData{SubTeamNodeName: "node", SubTeamID: "team-9", Seq: 3, SubTeamEvent: inner})
	if err != nil {
		t.Fatal(err)
	}
	got := event.Unwrap(event.Event{Type: event.TeamSubTeamEvent, Sequence: 5, Data: data})
	if got.Type != event.TeamStatus || got.Sequence != 5 || got.Via != (event.Via{Route: "node", TeamID: "team-9"}) {
		t.Fatalf("%+v", got)
	}
}

// TestUnwrapOfWhatCannotBeRead: it stays unchanged, with its position.
func TestUnwrapOfWhatCannotBeRead(t *testing.T) {
	for _, kind := range []event.Type{event.TeamMemberEvent, event.TeamSubTeamEvent} {
		for _, data := range []string{
			``, `{`, `7`, `"x"`, `[]`, `{}`, `{"event":7,"sub_team_event":7}`, `{"event":"x","sub_team_event":[]}`,
			`{"event":{"sequence":"x"},"sub_team_event":{"time":1}}`, `{"seq":-1,"event":{},"sub_team_event":{}}`,
		} {
			e := event.Event{ID: "e1", Type: kind, Subject: "default.team.t", Sequence: 4, Stream: 5, From: 3, Data: json.RawMessage(data)}
			got := event.Unwrap(e)
			if got.ID != "e1" || got.Type != kind || string(got.Data) != data || got.Sequence != 4 || got.Stream != 5 || got.From != 3 || got.Via != (event.Via{}) {
				t.Errorf("%s %s became %+v", kind, data, got)
			}
			outer := inTeam(t, spoken(), "", "node")
			outer.Type = event.TeamSubTeamEvent
			inner := strings.Replace(`{"id":"in","type":"TYPE","data":DATA}`, "TYPE", string(kind), 1)
			if !json.Valid([]byte(data)) {
				continue
			}
			outer.Data = json.RawMessage(`{"sub_team_node_name":"node","sub_team_id":"t9","sub_team_event":` + strings.Replace(inner, "DATA", data, 1) + `}`)
			if got := event.Unwrap(outer); got.ID != "in" || got.Type != kind || got.Sequence != outer.Sequence || got.Via.Route != "node" {
				t.Errorf("a team with %s %s became %+v", kind, data, got)
			}
		}
	}
}

// TestUnwrapEnds: unwrapping stops below the maximal nesting of teams.
func TestUnwrapEnds(t *testing.T) {
	names := []string{"Coder"}
	for range 40 {
		names = append(names, "node")
	}
	got := event.Unwrap(inTeam(t, spoken(), "", names...))
	if got.Type != event.TeamSubTeamEvent {
		t.Fatalf("40 layers were taken off: %s", got.Type)
	}
	if n := strings.Count(got.Via.Route, "/") + 1; n != 16 {
		t.Fatalf("%d layers were taken off", n)
	}
}

// TestStatusAfter: every status of an agent follows from some event, and an answer decides which.
func TestStatusAfter(t *testing.T) {
	seen := map[string]bool{event.AgentUninitialized: true} // before its first event
	for _, info := range event.Catalogue {
		for _, decision := range []string{event.DecisionApprove, event.DecisionModify, event.DecisionReject} {
			e := event.Event{Type: info.Type, Data: json.RawMessage(`{"decision":"` + decision + `"}`)}
			status, ok := event.StatusAfter(e)
			if ok != (status != "") {
				t.Errorf("%s: %q, %v", info.Type, status, ok)
			}
			if ok {
				seen[status] = true
			}
			if info.Type != event.InputAnswered {
				continue
			}
			if want := map[bool]string{true: event.AgentToolDenied, false: event.AgentExecutingTool}[decision == event.DecisionReject]; status != want {
				t.Errorf("after %s an agent is %s", decision, status)
			}
		}
	}
	for _, s := range []string{
		event.AgentUninitialized, event.AgentIdle, event.AgentProcessingInput, event.AgentAwaitingModel, event.AgentAnalyzing,
		event.AgentAwaitingApproval, event.AgentToolDenied, event.AgentExecutingTool, event.AgentProcessingResult, event.AgentShutdown, event.AgentError,
	} {
		if !seen[s] {
			t.Errorf("nothing makes an agent %s", s)
		}
	}
	if len(seen) != 11 {
		t.Errorf("statuses that are none: %v", seen)
	}
	if s, ok := event.StatusAfter(event.Event{Type: event.InputAnswered, Data: json.RawMessage(`{`)}); ok || s != "" {
		t.Errorf("an answer that cannot be read makes an agent %q", s)
	}
	if s, ok := event.StatusAfter(event.Event{Type: "something.new"}); ok || s != "" {
		t.Errorf("an unknown event makes an agent %q", s)
	}
}

// TestWorking: an agent works during a run, even while it waits for people, and never after the run, however it
// ended.
func TestWorking(t *testing.T) {
	middle := []event.Type{
		event.JobStarted, event.MessageStarted, event.MessageCompleted, event.InputRequested, event.JobSuspended, event.InputAnswered,
		event.ToolCalled, event.ToolStarted, event.ToolCompleted, event.ToolFailed, event.ToolUnknown, event.MessageDelta, event.UsageRecorded,
	}
	ends := []event.Type{event.RunCompleted, event.RunCancelled, event.RunFailed}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		status := event.AgentUninitialized
		step := func(kind event.Type) {
			if s, ok := event.StatusAfter(event.Event{Type: kind, Data: json.RawMessage(`{"decision":"approve"}`)}); ok {
				status = s
			}
		}
		step(event.MemberCreated)
		if event.Working(status) {
			t.Fatal("a new agent works")
		}
		step(event.RunStarted)
		for range rng.IntN(20) {
			step(middle[rng.IntN(len(middle))])
			if !event.Working(status) {
				t.Fatalf("an agent that is %s does not work", status)
			}
		}
		step(ends[rng.IntN(len(ends))])
		if event.Working(status) {
			t.Fatalf("after its run an agent that is %s works", status)
		}
	}
	for _, s := range []string{"", event.AgentUninitialized, event.AgentShutdown} {
		if event.Working(s) {
			t.Errorf("an agent that is %q works", s)
		}
	}
}
