package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/e2e/harness/original"
	"github.com/waggle-dev/waggle/gateway/dialect"
	teamdialect "github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// teamHistory is the log of a team that is made up, with what its viewers were told at each event.
type teamHistory struct {
	t      *testing.T
	log    subject.Log
	state  *teamwork.State
	events []event.Event
	views  []command.TeamAttachReply // after as many events
	parent *teamHistory
	node   string                  // in the parent
	own    map[string]*eventOfLogs // logs of its agents
}

type eventOfLogs struct{ seq uint64 }

func newTeamHistory(t *testing.T, name string, d event.TeamDefinition) *teamHistory {
	t.Helper()
	l := &teamHistory{
		t: t, log: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal(name)},
		state: &teamwork.State{}, views: make([]command.TeamAttachReply, 1), own: map[string]*eventOfLogs{},
	}
	l.append(event.TeamCreatedData{TeamID: name, Definition: d})
	return l
}

func (l *teamHistory) append(d event.Data) {
	l.t.Helper()
	e, err := event.New(l.log, fmt.Sprint(l.log.Entity, ".", len(l.events)), "test", time.Unix(0, 0).UTC(), d)
	require.NoError(l.t, err)
	e.Sequence = uint64(len(l.events)) + 1
	require.NoError(l.t, l.state.Apply(e))
	l.events = append(l.events, e)
	if l.parent == nil {
		l.views = append(l.views, command.TeamAttachReply{TeamView: l.state.View(), Head: l.state.Seq(), From: l.state.From(), Recent: l.state.Recent()})
		return
	}
	l.parent.relay(l.node, e)
}

// relay appends an event of a member's log with all that follows from it.
func (l *teamHistory) relay(name string, e event.Event) {
	l.t.Helper()
	raw, err := json.Marshal(e)
	require.NoError(l.t, err)
	for {
		facts, err := l.state.Relay(name, []teamwork.Incoming{{Event: e, Raw: raw}})
		require.NoError(l.t, err)
		if len(facts) == 0 {
			return
		}
		for _, f := range facts {
			l.append(f.Data)
		}
	}
}

// says appends an event of an agent of the team.
func (l *teamHistory) says(name string, d event.Data) {
	l.t.Helper()
	place, err := l.state.Locate(name)
	require.NoError(l.t, err)
	at := l.own[name]
	if at == nil {
		at = &eventOfLogs{}
		l.own[name] = at
	}
	at.seq++
	e, err := event.New(subject.Log{Tenant: l.log.Tenant, Kind: id.KindMember, Entity: place.ID}, fmt.Sprint(name, at.seq), "test", time.Unix(0, 0).UTC(), d)
	require.NoError(l.t, err)
	e.Sequence = at.seq
	l.relay(name, e)
}

// turns is what an agent does for a message, however that ends.
func turns(r *rapid.T, run string) []event.Data {
	list := []event.Data{
		event.MessageReceivedData{MessageID: "m" + run, RunID: run, Content: "go"}, event.RunStartedData{RunID: run}, event.JobStartedData{RunID: run, Attempt: 1},
	}
	for n := range rapid.IntRange(1, 3).Draw(r, "rounds") {
		msg, call, parts := fmt.Sprint(run, ".m", n), fmt.Sprint(run, ".c", n), rapid.IntRange(0, 4).Draw(r, "parts")
		list = append(list, event.MessageStartedData{MessageID: msg, RunID: run, Waits: true})
		text := ""
		for p := range parts {
			piece := fmt.Sprint(n, "-", p, " ")
			text += piece
			list = append(list, event.MessageDeltaData{MessageID: msg, RunID: run, Text: piece, Begins: p == 0})
		}
		how := rapid.SampledFrom([]string{"whole", "whole", "stopped", "failed", "another"}).Draw(r, "how")
		if how != "whole" {
			list = append(list, event.MessageDiscardedData{MessageID: msg, RunID: run, Silent: parts == 0})
		}
		switch how {
		case "stopped":
			return append(list, event.RunCancelledData{RunID: run})
		case "failed":
			return append(list, event.RunFailedData{RunID: run, Code: "MODEL_TIMEOUT", Message: "late"})
		case "another":
			list = append(list, event.JobStartedData{RunID: run, Attempt: 2})
			continue
		}
		list = append(list, event.MessageCompletedData{MessageID: msg, RunID: run, Content: text, Silent: parts == 0})
		list = append(list, calls(r, run, call)...)
	}
	return append(list, event.RunCompletedData{RunID: run, MessageID: "x", Content: "done"})
}

// calls is a tool call of an agent, if it makes one.
func calls(r *rapid.T, run, call string) []event.Data {
	const args = `{"path":"a","content":"b"}`
	asked := event.InputRequestedData{InputID: "q" + call, RunID: run, Scope: event.ScopeTool, CallID: call, Tool: "x_write_file", Arguments: []byte(args)}
	called := event.ToolCalledData{CallID: call, RunID: run, Tool: "x_write_file", Arguments: []byte(args)}
	started := event.ToolStartedData{CallID: call, RunID: run, Tool: "x_write_file"}
	answer := event.InputAnsweredData{InputID: asked.InputID, RunID: run, CallID: call, Tool: called.Tool, Decision: event.DecisionApprove}
	switch rapid.SampledFrom([]string{"none", "runs", "fails", "allowed", "denied"}).Draw(r, "call") {
	case "runs":
		return []event.Data{called, started, event.ToolCompletedData{CallID: call, RunID: run, Tool: called.Tool, Result: "ok"}}
	case "fails":
		return []event.Data{called, started, event.ToolFailedData{CallID: call, RunID: run, Tool: called.Tool, Code: "TOOL_TIMEOUT", Message: "late"}}
	case "allowed":
		called.InputID = asked.InputID
		return []event.Data{asked, answer, called, started, event.ToolCompletedData{CallID: call, RunID: run, Tool: called.Tool, Result: "ok"}}
	case "denied":
		answer.Decision = event.DecisionReject
		return []event.Data{asked, answer}
	}
	return nil
}

// anyTeamHistory is a team of three, one of them in a nested team, who work side by side.
func anyTeamHistory(t *testing.T, r *rapid.T) *teamHistory {
	t.Helper()
	nested := event.TeamDefinition{Name: "desk", Coordinator: "Coder", Members: []event.MemberDefinition{{Name: "Coder"}}}
	root := newTeamHistory(t, "team-1", event.TeamDefinition{
		Name: "paper", Coordinator: "Lead", Members: []event.MemberDefinition{{Name: "Lead"}, {Name: "Writer"}, {Name: "desk", Team: &nested}},
	})
	place, err := root.state.Locate("desk")
	require.NoError(t, err)
	inner := &teamHistory{
		t: t, log: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: place.ID}, state: &teamwork.State{},
		parent: root, node: "desk", own: map[string]*eventOfLogs{},
	}
	inner.append(event.TeamCreatedData{TeamID: place.ID.String(), Definition: nested})
	agents := map[string]*teamHistory{"Lead": root, "Writer": root, "Coder": inner}
	names := []string{"Lead", "Writer", "Coder"}
	left := map[string][]event.Data{}
	for _, name := range names {
		left[name] = []event.Data{event.MemberCreatedData{MemberID: name}}
		for n := range rapid.IntRange(0, 3).Draw(r, "runs") {
			left[name] = append(left[name], turns(r, fmt.Sprint(name, n))...)
		}
	}
	for len(names) > 0 {
		i := rapid.IntRange(0, len(names)-1).Draw(r, "who")
		name := names[i]
		agents[name].says(name, left[name][0])
		if left[name] = left[name][1:]; len(left[name]) == 0 {
			names = append(names[:i:i], names[i+1:]...)
		}
	}
	return root
}

// shown returns the messages of a socket that is opened when the log has head events, with
// those of what comes then; at says how many events the log had at each.
func (l *teamHistory) shown(codec *teamdialect.Codec, head int) (frames [][]byte, at []int) {
	l.t.Helper()
	view := l.views[head]
	add := func(list [][]byte, n int) {
		for _, f := range list {
			frames, at = append(frames, f), append(at, n)
		}
	}
	welcome := codec.Welcome(dialect.Link{ConnectionID: "c", Now: time.Unix(0, 0)}, "team-1", &view)
	add(welcome[:1], head)
	if view.Recent >= view.Head {
		add(welcome[1:], head)
	}
	for i, e := range l.events {
		if e.Sequence > view.Recent {
			add(codec.Encode(e), max(head, i+1))
		}
		if e.Sequence > view.Recent && e.Sequence == view.Head {
			add(welcome[1:], head)
		}
	}
	return frames, at
}

// TestAnAnswerComesOnceWhereverItIsCut: the run ends while the client is away, or continues.
func TestAnAnswerComesOnceWhereverItIsCut(t *testing.T) {
	t.Parallel()
	codec, err := teamdialect.Teams().Codec(nil)
	require.NoError(t, err)
	l := newTeamHistory(t, "team-1", event.TeamDefinition{Name: "paper", Coordinator: "Lead", Members: []event.MemberDefinition{{Name: "Lead"}, {Name: "Writer"}}})
	for _, who := range []string{"Lead", "Writer"} {
		l.says(who, event.MemberCreatedData{MemberID: who})
		l.says(who, event.MessageReceivedData{MessageID: "q", RunID: who, Content: "go"})
		l.says(who, event.RunStartedData{RunID: who})
	}
	for _, who := range []string{"Lead", "Writer"} { // the other one still works when the first has ended
		for i, part := range []string{"one ", "two"} {
			l.says(who, event.MessageDeltaData{MessageID: who + ".m", RunID: who, Text: part, Begins: i == 0})
		}
		l.says(who, event.MessageCompletedData{MessageID: who + ".m", RunID: who, Content: "one two"})
		l.says(who, event.RunCompletedData{RunID: who, MessageID: who + ".m", Content: "one two"})
	}
	sees := func(parts ...[][]byte) string {
		v := original.NewView("Lead", "Writer")
		for _, part := range parts {
			for _, f := range part {
				require.NoError(t, v.Receive(f))
			}
		}
		require.Empty(t, v.Dropped)
		return v.Sees()
	}
	steady, at := l.shown(codec, 1)
	for back := 1; back <= len(l.events); back++ {
		again, _ := l.shown(codec, back)
		for cut := range steady {
			if at[cut] <= back {
				require.Equal(t, sees(steady), sees(steady[:cut], again), "cut at frame %d, back at event %d", cut, back)
			}
		}
	}
}

// TestTheOriginalsClientMissesNothing: whenever the client of the original is cut off and
// comes back, without a word about where it stands, it shows in the end what one shows that
// was there all the time: the same texts, statuses, tools and board. So does one that comes
// when all is over. Every segment has ended, and has a text.
func TestTheOriginalsClientMissesNothing(t *testing.T) {
	t.Parallel()
	codec, err := teamdialect.Teams().Codec(nil)
	require.NoError(t, err)
	rapid.Check(t, func(r *rapid.T) {
		l := anyTeamHistory(t, r)
		all := len(l.events)
		take := func(o *original.View, frames [][]byte) {
			for _, f := range frames {
				require.NoError(r, o.Receive(f))
			}
		}
		newClient := func() *original.View { return original.NewView("Lead", "Writer", "desk") }
		steady, late, cut := newClient(), newClient(), newClient()
		frames, _ := l.shown(codec, 1)
		take(steady, frames)
		require.Empty(r, steady.Dropped)
		require.Empty(r, steady.Unfinished())

		frames, _ = l.shown(codec, all)
		take(late, frames)
		require.Equal(r, steady.Sees(), late.Sees())

		head := 1
		for range rapid.IntRange(1, 5).Draw(r, "cuts") {
			head = rapid.IntRange(head, all).Draw(r, "back")
			frames, at := l.shown(codec, head)
			n := rapid.IntRange(0, len(frames)).Draw(r, "cut")
			take(cut, frames[:n])
			if n > 0 {
				head = at[n-1]
			}
		}
		frames, _ = l.shown(codec, rapid.IntRange(head, all).Draw(r, "last"))
		take(cut, frames)
		require.Equal(r, steady.Sees(), cut.Sees())
		require.Empty(r, cut.Dropped)
	})
}
