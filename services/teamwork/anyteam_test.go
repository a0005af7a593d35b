package teamwork_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// anyTeam drives a team with members that work, fail, are stopped and end, and whose
// events reach the team's log late, again, and by services that die between two events.
type anyTeam struct {
	*world
	said []command.Command // commands that were handled, to be delivered again
	next int
}

func (a *anyTeam) id(kind string) string {
	a.next++
	return fmt.Sprintf("%s%d", kind, a.next)
}

// handle delivers a command; a service may die after the first of its events.
func (a *anyTeam) handle(r *rapid.T, c command.Command) {
	a.said = append(a.said, c)
	for round := 0; round < 100; round++ {
		d, err := a.state.Decide(c, a.clock)
		require.NoError(r, err)
		if len(d.Facts) == 0 {
			return
		}
		if rapid.IntRange(0, 9).Draw(r, "dies") == 0 {
			a.append(d.Facts[:1])
			a.restart(r)
			continue
		}
		a.append(d.Facts)
	}
	require.Fail(r, "a command has no end")
}

// restart folds the log anew, once whole and once from a snapshot at any seq. Both states are
// equal, byte for byte.
func (a *anyTeam) restart(r *rapid.T) {
	before := a.state.View()
	whole := &teamwork.State{}
	at := rapid.IntRange(1, len(a.events)).Draw(r, "snapshot")
	var kept []byte
	for i, e := range a.events {
		require.NoError(r, whole.Apply(e))
		if i+1 == at {
			kept = snapshotOf(r, whole)
		}
	}
	short, err := teamwork.Restore(kept)
	require.NoError(r, err)
	require.Equal(r, string(kept), string(snapshotOf(r, short)))
	for _, e := range a.events[at:] {
		require.NoError(r, short.Apply(e))
	}
	require.Equal(r, string(snapshotOf(r, whole)), string(snapshotOf(r, short)))
	require.Equal(r, whole.Advance(), short.Advance())
	require.Equal(r, whole.View(), short.View())
	require.Equal(r, before, whole.View())
	a.state = rapid.SampledFrom([]*teamwork.State{whole, short}).Draw(r, "state")
}

func snapshotOf(t tester, s *teamwork.State) []byte {
	raw, err := s.Snapshot()
	require.NoError(t, err)
	return raw
}

func (a *anyTeam) actions() map[string]func(*rapid.T) {
	names := []string{"Lead", "Coder", "", "Nobody"}
	return map[string]func(*rapid.T){
		"message": func(r *rapid.T) {
			to := rapid.SampledFrom(names).Draw(r, "to")
			a.handle(r, a.command(command.SendMessage, a.id("m"), to, command.UserMessage{Content: "x"}))
		},
		"pause":  func(r *rapid.T) { a.handle(r, a.command(command.PauseTeam, a.id("p"), "", nil)) },
		"resume": func(r *rapid.T) { a.handle(r, a.command(command.ResumeTeam, a.id("u"), "", nil)) },
		"stop": func(r *rapid.T) {
			a.handle(r, a.command(command.Cancel, a.id("s"), rapid.SampledFrom(names).Draw(r, "whom"), command.CancelRun{All: true}))
		},
		"act": func(r *rapid.T) {
			call := act(rapid.SampledFrom([]string{"Lead", "Coder"}).Draw(r, "who"), a.id("c"), command.ToolSendMessage,
				map[string]any{"recipient_name": rapid.SampledFrom(names).Draw(r, "to"), "content": "x"})
			switch rapid.IntRange(0, 2).Draw(r, "tool") {
			case 1:
				call.Tool = command.ToolCreateTasks
				call.Arguments = []byte(fmt.Sprintf(`{"tasks":[{"task_name":%q,"assignee_name":"Coder"},{"task_name":%q,"dependencies":[%q]}]}`, call.CallID, call.CallID+"b", call.CallID))
			case 2:
				call.Tool = command.ToolUpdateTask
				call.Arguments = []byte(fmt.Sprintf(`{"task_id":"task_%04d","new_status":%q}`, rapid.IntRange(1, 4).Draw(r, "task"),
					rapid.SampledFrom([]string{"completed", "failed", "in_progress", "blocked", "not_started"}).Draw(r, "status")))
			}
			a.handle(r, a.command(command.ActTeam, a.id("a"), "", call))
		},
		"again": func(r *rapid.T) {
			if len(a.said) == 0 {
				r.Skip("this step needs an earlier command")
			}
			a.again(r, rapid.SampledFrom(a.said).Draw(r, "command"))
		},
		"serve":   func(*rapid.T) { a.serve() },
		"works":   a.works,
		"relay":   a.relays,
		"restart": a.restart,
		"":        a.check,
	}
}

// again: a command that was handled changes nothing when it comes again.
func (a *anyTeam) again(r *rapid.T, c command.Command) {
	switch c.Verb { // a command without an effect may have one now
	case command.PauseTeam, command.ResumeTeam, command.SendMessage, command.ActTeam, command.Cancel:
		d, err := a.state.Decide(c, a.clock)
		require.NoError(r, err)
		for _, e := range a.events {
			if !strings.HasPrefix(e.ID, c.ID+".") {
				continue
			}
			for _, f := range d.Facts {
				require.False(r, strings.HasPrefix(f.ID, c.ID+"."), "%s had its effect before", c.Verb)
			}
		}
	}
}

// works lets a member continue with what it has.
func (a *anyTeam) works(r *rapid.T) {
	has := a.busy()
	if len(has) == 0 {
		r.Skip("this step needs a member with work")
	}
	name := rapid.SampledFrom(has).Draw(r, "member")
	run := a.open(name)[0]
	switch rapid.IntRange(0, 5).Draw(r, "does") {
	case 0:
		a.happens(name, event.RunStartedData{RunID: run})
	case 1:
		a.happens(name, event.MessageDeltaData{RunID: run, Text: "x"})
	case 2:
		a.happens(name, event.RunFailedData{RunID: run, Message: "bad"})
	case 3:
		a.happens(name, event.RunCancelledData{RunID: run})
	default:
		a.happens(name, event.RunCompletedData{RunID: run})
	}
}

// busy are the members that have something to do.
func (a *anyTeam) busy() []string {
	var out []string
	for _, s := range a.state.Follow() {
		if len(a.open(s.Name)) > 0 {
			out = append(out, s.Name)
		}
	}
	return out
}

// open are the runs in a member's log that have not ended.
func (a *anyTeam) open(name string) []string {
	var out []string
	ended := map[string]bool{}
	for _, e := range a.members[name] {
		var d struct {
			RunID string `json:"run_id"`
		}
		_ = e.Decode(&d)
		switch {
		case e.Type == event.MessageReceived:
			out = append(out, d.RunID)
		case e.Type.Terminal():
			ended[d.RunID] = true
		}
	}
	var still []string
	for _, run := range out {
		if !ended[run] {
			still = append(still, run)
		}
	}
	return still
}

// relays shows the team a stretch of a member's log; the multiplexer may die in it.
func (a *anyTeam) relays(r *rapid.T) {
	follow := a.state.Follow()
	if len(follow) == 0 {
		r.Skip("this step needs a member with a log")
	}
	s := rapid.SampledFrom(follow).Draw(r, "member")
	all := a.members[s.Name]
	from := rapid.IntRange(0, min(int(s.Seq), len(all))).Draw(r, "from")
	news := all[from:rapid.IntRange(from, len(all)).Draw(r, "to")]
	for {
		facts, err := a.state.Relay(s.Name, news)
		require.NoError(r, err)
		if len(facts) == 0 {
			return
		}
		if rapid.IntRange(0, 19).Draw(r, "dies") == 0 {
			a.append(facts[:1])
			a.restart(r)
			return
		}
		a.append(facts)
	}
}

// check holds whatever happens.
func (a *anyTeam) check(r *rapid.T) {
	next := map[string]uint64{}
	for _, e := range a.events {
		if e.Type != event.TeamMemberEvent {
			continue
		}
		d, err := event.As[event.TeamMemberEventData](e)
		require.NoError(r, err)
		next[d.MemberName]++
		require.Equal(r, next[d.MemberName], d.Seq, "every event once, in the member's order")
		require.Equal(r, string(a.members[d.MemberName][d.Seq-1].Raw), string(d.Event))
	}
	if len(a.state.Advance()) > 0 {
		return // a service died between two facts; its successor appends the rest
	}
	working := len(a.state.Pending()) > 0
	for _, s := range a.state.Follow() {
		seen := anyTeam{world: &world{t: a.t, members: map[string][]teamwork.Incoming{s.Name: a.members[s.Name][:min(int(s.Seq), len(a.members[s.Name]))]}}}
		working = working || len(seen.open(s.Name)) > 0
	}
	if status := a.state.View().Status; status != event.TeamStarting {
		require.Equal(r, working, status == event.TeamRunning, "the status %s is not true", status)
	}
}

func TestAnyTeamKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := &anyTeam{world: newWorld(r, pair())}
		r.Repeat(a.actions())
		a.settles(r)
	})
}

// settles lets everybody finish: then every message was handed on once, or dropped, and
// the team is idle.
func (a *anyTeam) settles(r *rapid.T) {
	a.handle(r, a.command(command.ResumeTeam, a.id("u"), "", nil))
	for round := 0; !a.state.Settled() || round < 3; round++ {
		require.Less(r, round, 1000, "the team never comes to rest")
		a.serve()
		for _, s := range a.state.Follow() {
			for _, run := range a.open(s.Name) {
				a.happens(s.Name, event.RunCompletedData{RunID: run})
			}
			a.relay(s.Name)
		}
		a.handle(r, a.command(command.WakeTeam, a.id("w"), "", nil))
	}
	accepted, got := map[string]bool{}, map[string]int{}
	for _, e := range a.events {
		switch inner := event.Unwrap(e); inner.Type {
		case event.TeamMessage:
			d, err := event.As[event.TeamMessageData](inner)
			require.NoError(r, err)
			accepted[d.MessageID] = true
		case event.TeamMessageDropped:
			d, err := event.As[event.TeamMessageDroppedData](inner)
			require.NoError(r, err)
			got[d.MessageID]++
		case event.MessageReceived:
			d, err := event.As[event.MessageReceivedData](inner)
			require.NoError(r, err)
			got[d.MessageID]++
		}
	}
	for m := range accepted {
		require.Equal(r, 1, got[m], "message %s", m)
	}
	require.Contains(r, []string{event.TeamIdle, event.TeamFailed}, a.state.View().Status)
}
