package teamwork_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/teamwork"
)

var began = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// tester is what testing.T and rapid.T have in common.
type tester interface {
	require.TestingT
	Helper()
}

// world is one team's log with the logs of its members, all in memory.
type world struct {
	t       tester
	log     subject.Log
	node    string // of a nested team: its name as a member
	state   *teamwork.State
	events  []event.Event
	sent    map[string]bool // messages and commands that members have got
	members map[string][]teamwork.Incoming
	clock   time.Time
}

func newWorld(t tester, def event.TeamDefinition) *world {
	return newWorldAt(t, id.EntityFromExternal("team_0011223344556677"), def, nil)
}

func newWorldAt(t tester, team id.Entity, def event.TeamDefinition, parent *event.TeamParent) *world {
	t.Helper()
	w := &world{
		t: t, log: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: team}, state: &teamwork.State{},
		sent: map[string]bool{}, members: map[string][]teamwork.Incoming{}, clock: began,
	}
	w.do(command.CreateTeam, "create", "", command.NewTeam{Definition: def, Parent: parent})
	return w
}

func (w *world) command(verb id.Name, commandID, member string, data any) command.Command {
	w.t.Helper()
	raw, err := json.Marshal(data)
	require.NoError(w.t, err)
	return command.Command{
		ID: commandID, Service: command.Team, Verb: verb, Tenant: w.log.Tenant, Key: w.log.Entity, Principal: "ann", Member: member, Data: raw,
	}
}

// do handles a command to its end and returns what its sender is told.
func (w *world) do(verb id.Name, commandID, member string, data any) event.Data {
	w.t.Helper()
	c := w.command(verb, commandID, member, data)
	var direct event.Data
	for round := 0; ; round++ {
		require.Less(w.t, round, 100, "%s has no end", verb)
		d, err := w.state.Decide(c, w.clock)
		require.NoError(w.t, err)
		if round == 0 {
			direct = d.Direct
		}
		if len(d.Facts) == 0 {
			return direct
		}
		w.append(d.Facts)
	}
}

func (w *world) append(facts []decision.Fact) {
	w.t.Helper()
	for _, f := range facts {
		e, err := event.New(w.log, f.ID, "test", w.clock, f.Data)
		require.NoError(w.t, err)
		for _, known := range w.events {
			require.NotEqual(w.t, known.ID, e.ID, "an id is used twice: %s and %s", known.Type, e.Type)
		}
		e.Sequence = uint64(len(w.events) + 1)
		w.events = append(w.events, e)
		require.NoError(w.t, w.state.Apply(e))
		w.deliverable()
	}
}

// deliverable checks that no member is sent a message before it is started, wherever a reader of the log stops.
func (w *world) deliverable() {
	w.t.Helper()
	started := map[string]bool{}
	for _, s := range w.state.Follow() {
		started[s.Name] = true
	}
	for _, m := range w.state.Deliverable() {
		require.True(w.t, started[m.Member], "the message %s goes to %s before it is started", m.MessageID, m.Member)
	}
}

// happens adds an event to the log of a member, under which the team does not see it yet.
func (w *world) happens(name string, data event.Data) {
	w.t.Helper()
	src := w.source(name)
	kind := id.KindMember
	if src.Kind == event.MemberTeam {
		kind = id.KindTeam
	}
	w.clock = w.clock.Add(time.Second)
	seq := uint64(len(w.members[name]) + 1)
	e, err := event.New(subject.Log{Tenant: w.log.Tenant, Kind: kind, Entity: src.ID}, fmt.Sprintf("e%d", seq), "test", w.clock, data)
	require.NoError(w.t, err)
	e.Sequence = seq
	raw, err := json.Marshal(e)
	require.NoError(w.t, err)
	w.members[name] = append(w.members[name], teamwork.Incoming{Event: e, Raw: raw})
}

func (w *world) source(name string) teamwork.Source {
	w.t.Helper()
	for _, s := range w.state.Follow() {
		if s.Name == name {
			return s
		}
	}
	require.FailNow(w.t, "the member has no log", name)
	return teamwork.Source{}
}

// relay shows the team all that its members have logged.
func (w *world) relay(name string) {
	w.t.Helper()
	for round := 0; ; round++ {
		require.Less(w.t, round, 10000)
		facts, err := w.state.Relay(name, w.members[name])
		require.NoError(w.t, err)
		if len(facts) == 0 {
			return
		}
		w.append(facts)
	}
}

// serve does what the runtime does: members get their logs and their messages.
func (w *world) serve() {
	w.t.Helper()
	for _, s := range w.state.Unstarted() {
		if len(w.members[s.Name]) == 0 && s.Kind == event.MemberAgent {
			d, err := w.state.Agent(s.Name)
			require.NoError(w.t, err)
			w.happens(s.Name, d)
		}
	}
	for _, m := range w.state.Deliverable() {
		if w.sent[m.MessageID] || w.state.Closed() || len(w.members[m.Member]) == 0 {
			continue
		}
		w.sent[m.MessageID] = true
		w.happens(m.Member, event.MessageReceivedData{MessageID: m.MessageID, RunID: "run-" + m.MessageID, Content: m.Content, Sender: m.Sender})
	}
}

// started is the world with the coordinator's log relayed.
func started(t tester, def event.TeamDefinition) *world {
	t.Helper()
	w := newWorld(t, def)
	w.serve()
	w.relay(def.Coordinator)
	return w
}

func (w *world) run(member, run string, ends event.Data) {
	w.t.Helper()
	w.happens(member, event.RunStartedData{RunID: run})
	w.happens(member, ends)
	w.relay(member)
}

// types are the types of the log from an index on.
func (w *world) types(from int) []event.Type {
	var out []event.Type
	for _, e := range w.events[from:] {
		out = append(out, e.Type)
	}
	return out
}

func (w *world) statuses() []string {
	w.t.Helper()
	var out []string
	for _, e := range w.events {
		if e.Type == event.TeamStatus {
			d, err := event.As[event.TeamStatusData](e)
			require.NoError(w.t, err)
			out = append(out, d.NewStatus)
		}
	}
	return out
}

func pair() event.TeamDefinition {
	return event.TeamDefinition{Name: "pair", Coordinator: "Lead", Members: []event.MemberDefinition{{Name: "Lead"}, {Name: "Coder", Role: "writes code"}}}
}

// three is a team of three with a nested team of two, one of which is a team of one.
func three() event.TeamDefinition {
	return event.TeamDefinition{Name: "three", Coordinator: "Lead", Members: []event.MemberDefinition{
		{Name: "Lead"},
		{Name: "Writer"},
		{Name: "backend", Team: &event.TeamDefinition{Name: "Backend", Coordinator: "Boss", Members: []event.MemberDefinition{
			{Name: "Boss"},
			{Name: "deep", Team: &event.TeamDefinition{Name: "Deep", Coordinator: "Coder", Members: []event.MemberDefinition{{Name: "Coder"}}}},
		}}},
	}}
}

func act(member, call, tool string, args any) command.TeamAct {
	raw, _ := json.Marshal(args)
	return command.TeamAct{Member: member, AgentID: "a-" + member, RunID: "r", CallID: call, Tool: tool, Arguments: raw}
}

func acted(t *testing.T, d event.Data) event.TeamActedData {
	t.Helper()
	out, ok := d.(event.TeamActedData)
	require.True(t, ok, "%T", d)
	return out
}

func refused(t *testing.T, d event.Data) event.CommandRefusedData {
	t.Helper()
	out, ok := d.(event.CommandRefusedData)
	require.True(t, ok, "%T", d)
	return out
}
