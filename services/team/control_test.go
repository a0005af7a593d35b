package team_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/team"
)

func TestStoppingReachesWhoIsMeant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cast.plays(leave)
	r.start("one", team.Config{})
	l := r.found(deep())
	for i, to := range []string{"", "Writer", "backend/deep/Digger", "backend/Tester"} {
		r.message(l, fmt.Sprint("m", i), to, "work")
	}
	r.untilInner(l, event.RunStarted, 4)
	cancelled := func(n int) string {
		entries := r.untilInner(l, event.RunCancelled, n)
		return event.Unwrap(entries[len(entries)-1].Event).Via.Route
	}
	r.command(l, cmd.Cancel, "s1", "Writer", cmd.CancelRun{}, "")
	require.Equal(t, "Writer", cancelled(1))
	r.command(l, cmd.Cancel, "s2", agentOf(t, l, "backend", "deep", "Digger").Entity.String(), cmd.CancelRun{}, "")
	require.Equal(t, "backend/deep/Digger", cancelled(2))
	r.command(l, cmd.Cancel, "s3", "", cmd.CancelRun{}, "")
	r.settled(l, 4)
	r.exact(l)

	direct := r.directTo("c1")
	r.command(l, cmd.Cancel, "s4", "nobody", cmd.CancelRun{}, "c1")
	require.Equal(t, string(fault.MemberNotFound), hears[event.CommandRefusedData](t, direct).Code)
}

// act calls a tool of a team as a member's worker does.
func (r *rig) act(l subject.Log, commandID, callID, member string, agent subject.Log, tool string, args any) {
	r.T.Helper()
	r.command(l, cmd.ActTeam, commandID, "", cmd.TeamAct{
		Member: member, AgentID: agent.Entity.String(), RunID: "run", CallID: callID, Tool: tool, Arguments: servicetest.JSON(r.T, args),
	}, "worker")
}

func TestACallOfATeamsToolHappensOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", team.Config{})
	r.start("two", team.Config{})
	l := r.found(deep())
	r.message(l, "m1", "backend", "start")
	r.settled(l, 1)
	direct := r.directTo("worker")
	inner, coder := nestedOf(t, l, "backend"), agentOf(t, l, "backend", "Coder")
	type letter struct {
		To      string `json:"recipient_name"`
		Content string `json:"content"`
	}
	answers := map[string]map[string]bool{}
	for again := range 3 {
		for _, call := range []struct {
			id, tool string
			args     any
		}{
			{"call_1", cmd.ToolSendMessage, letter{"Tester", "test it"}},
			{"call_2", cmd.ToolSendMessage, letter{"Writer", "for a member of the team above"}},
			{"call_3", cmd.ToolSendMessage, letter{"nobody", "hm"}},
			{"call_4", cmd.ToolCreateTasks, map[string]any{"tasks": []map[string]any{{"task_name": "a", "assignee_name": "Tester", "description": "d"}}}},
		} {
			r.act(inner, fmt.Sprint("act", call.id, again), call.id, "Coder", coder, call.tool, call.args)
			d := hears[event.TeamActedData](t, direct)
			require.Equal(t, call.id, d.CallID)
			if answers[call.id] == nil {
				answers[call.id] = map[string]bool{}
			}
			answers[call.id][d.Code+d.Result] = true
		}
	}
	for call, some := range answers {
		require.Len(t, some, 1, "%s: every repeat has the same answer: %v", call, some)
	}
	require.Contains(t, answers["call_3"], string(fault.MemberNotFound))
	r.settled(l, 4)
	r.exact(l)
	require.Len(t, r.cast.commands(cmd.SendMessage), 4, "start, the letters to Tester and Writer, the task")
	r.received(agentOf(t, l, "Writer"), "for a member of the team above", event.SenderAgent)
	r.received(agentOf(t, l, "backend", "Tester"), "test it", event.SenderAgent)
}

// received checks that an agent got a message.
func (r *rig) received(l subject.Log, content, sender string) {
	r.T.Helper()
	for _, e := range r.Stored(l) {
		if d, err := event.As[event.MessageReceivedData](e.Event); err == nil && e.Type == event.MessageReceived && d.Content == content {
			require.NotNil(r.T, d.Sender)
			require.Equal(r.T, sender, d.Sender.Kind)
			return
		}
	}
	require.Fail(r.T, "it did not get the message", "%s: %s", l, content)
}

func TestOneAnswerCountsAndTheOthersLearnWhose(t *testing.T) {
	t.Parallel()
	const racers = 20
	r := newRig(t)
	r.cast.plays(leave)
	shared := team.Config{Access: access.Policy{Default: access.Settings{See: access.Tenant}}}
	r.start("one", shared)
	r.start("two", shared)
	l := r.found(deep())
	r.message(l, "m1", "backend/deep/Digger", "dig")
	r.untilInner(l, event.RunStarted, 1)
	digger := agentOf(t, l, "backend", "deep", "Digger")
	a := r.cast.actor(digger)
	require.NoError(t, a.put(r.Ctx, "asks", event.InputRequestedData{
		InputID: "approve_call_1", RunID: "run_m1", Scope: event.ScopeTool, CallID: "call_1", Tool: "dig",
	}))
	r.untilInner(l, event.InputRequested, 1)
	var all []<-chan event.Event
	for i := range racers {
		all = append(all, r.directTo(fmt.Sprint("c", i)))
	}
	var racing sync.WaitGroup
	errs := make(chan error, racers)
	for i := range racers {
		c := cmd.Command{
			ID: fmt.Sprint("answer", i), Service: cmd.Team, Verb: cmd.Answer, Tenant: tenant, Key: l.Entity, Principal: fmt.Sprint("p", i),
			ReplyTo: subject.ReplyTo(gateway, id.MustName(fmt.Sprint("c", i))),
			Data:    servicetest.JSON(t, cmd.AnswerQuestion{CallID: "call_1", Approved: true}),
			Member:  []string{digger.Entity.String(), "backend/deep/Digger", "Digger"}[i%3],
		}
		racing.Go(func() { errs <- r.Send.Send(r.Ctx, c) })
	}
	racing.Wait()
	for range racers {
		require.NoError(t, <-errs)
	}
	entries := r.untilInner(l, event.InputAnswered, 1)
	d, err := event.As[event.InputAnsweredData](event.Unwrap(entries[len(entries)-1].Event))
	require.NoError(t, err)
	for i, direct := range all {
		if fmt.Sprint("p", i) == d.By {
			continue
		}
		got := hears[event.CommandRefusedData](t, direct)
		require.Equal(t, string(fault.InputAnswered), got.Code)
		require.Equal(t, d.By, got.AnsweredBy)
	}
	r.command(l, cmd.Answer, "none", "", cmd.AnswerQuestion{CallID: "call_9", Approved: true}, "c0")
	require.Equal(t, string(fault.InputNotFound), hears[event.CommandRefusedData](t, all[0]).Code)
}

func TestAttaching(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cast.plays(leave)
	r.start("one", team.Config{})
	l := r.found(deep())
	ask := func(k id.Kind, e id.Entity, in id.Tenant) (cmd.TeamAttachReply, error) {
		var out cmd.TeamAttachReply
		err := rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.AttachTeam, cmd.TeamAttachRequest{Tenant: in, Principal: "alice", Kind: k, ID: e}, &out)
		return out, err
	}
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	r.message(l, "m1", "backend", "go")
	r.untilInner(l, event.RunStarted, 1)
	coder := agentOf(t, l, "backend", "Coder")
	for _, c := range []struct {
		kind id.Kind
		id   id.Entity
		in   id.Tenant
		code fault.Code
	}{
		{id.KindTeam, l.Entity, other, fault.TeamNotFound},
		{id.KindTeam, id.EntityFromExternal("team_0000000000000000"), tenant, fault.TeamNotFound},
		{id.KindMember, coder.Entity, other, fault.AgentNotFound},
		{id.KindMember, agentOf(t, l, "Writer").Entity, tenant, fault.AgentNotFound},
		{id.KindMember, l.Entity, tenant, fault.AgentNotFound},
	} {
		_, err := ask(c.kind, c.id, c.in)
		isFault(t, err, c.code)
	}
	v, err := ask(id.KindTeam, l.Entity, tenant)
	require.NoError(t, err)
	require.Equal(t, "outer", v.Name)
	require.Equal(t, event.TeamRunning, v.Status)
	require.Less(t, v.From, v.Head)
	v, err = ask(id.KindMember, coder.Entity, tenant)
	require.NoError(t, err)
	require.Equal(t, "middle", v.Name)
	require.NotNil(t, v.Agent)
	require.Equal(t, "Coder", v.Agent.Name)
	require.EqualValues(t, 1, v.From, "after member.created")
	require.EqualValues(t, 3, v.Head)
	r.command(l, cmd.Cancel, "s", "", cmd.CancelRun{}, "")
	r.settled(l, 1)
	v, err = ask(id.KindMember, coder.Entity, tenant)
	require.NoError(t, err)
	require.Equal(t, v.Head, v.From)
}

func TestTheServiceKeepsTheContractOfLifecycle(t *testing.T) {
	r := newRig(t)
	n := 0
	lifecycletest.Exercise(t, func() lifecycle.Component {
		n++
		s, err := team.New(team.Config{}, r.Deps(fmt.Sprint("i", n)))
		require.NoError(t, err)
		return s
	})
}

func TestADefinitionThatIsWrongIsNamed(t *testing.T) {
	_, err := team.New(team.Config{Teams: []event.TeamDefinition{{Name: "bad"}}}, ledger.Deps{})
	isFault(t, err, fault.TeamInvalid)
	require.ErrorContains(t, err, `"bad"`)
}
