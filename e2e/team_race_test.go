//go:build nightly

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// approvers are those who may decide: a viewer of the team, or a device with the session
// protocol.
type approvers struct {
	teamViewers    map[string]*client.Team
	sessionViewers map[string]*client.Viewer
	team           string
}

// TestFiftyApproversDecideAtOnce: over two gateways and in two protocols, about a call of a
// member of the team and of one in a team within it. One decision counts; the others are
// told whose; the tool runs once if it was allowed, and never if it was not.
func TestFiftyApproversDecideAtOnce(t *testing.T) {
	const approvers = 50
	stamp, server := serveStampTool(t)
	keys := "auth:\n  api_keys:\n"
	for i := range approvers {
		keys += fmt.Sprintf("    - {id: person_%d, sha256: %s, tenant: default}\n", i, auth.HashKey(keyOf(i)))
	}
	f := newSplitFleet(t, stampingMembers(), splitOptions{Teams: 1, Servers: server, Shared: "tenant"})
	f.configure(keys) // the running gateways know no user yet
	guarded := [2]string{}
	for i := range guarded {
		_, guarded[i] = f.gateway()
	}
	view := f.found(agency)
	all := connectApprovers(t, view.TeamID, guarded, approvers)
	log := verify.LogOf(id.KindTeam, view.TeamID)
	member, err := id.MemberAgent(log.Entity, "Lead")
	require.NoError(t, err)
	cellar, err := id.MemberTeam(log.Entity, "cellar")
	require.NoError(t, err)
	clerk, err := id.MemberAgent(cellar, "Clerk")
	require.NoError(t, err)
	for route, agent := range map[string]id.Entity{"Lead": member, "cellar/Clerk": clerk} {
		of := subject.Log{Tenant: log.Tenant, Kind: id.KindMember, Entity: agent}
		stamped := map[string]int{event.DecisionApprove: 1, event.DecisionReject: 0}
		before := ""
		for round := range 2 { // in the second they all want the other thing
			paper := fmt.Sprintf("%s-%d", strings.ReplaceAll(route, "/", "-"), round)
			f.message(view.TeamID, route, "stamp "+paper)
			call, wanted := all.decide(t, route, round, before)
			answer := f.decided(of, call, round)
			require.Equal(t, wanted[answer.By], answer.Decision, "what counts is what %s said", answer.By)
			told := all.told(t, call, answer)
			require.Equal(t, approvers-1, told)
			require.Equal(t, stamped[answer.Decision], stamp.on(paper), "%s: %s", paper, answer.Decision)
			t.Logf("%s: %s by %s counted, %d were told so; stamped %d times", paper, answer.Decision, answer.By, told, stamp.on(paper))
			before = answer.Decision
		}
	}
}

func keyOf(i int) string { return fmt.Sprintf("%s-person-%d-of-the-agency", process.Canary, i) }

// connectApprovers connects the approvers, every other one in each protocol and at each gateway.
func connectApprovers(t *testing.T, team string, addrs [2]string, n int) *approvers {
	t.Helper()
	p := &approvers{team: team, teamViewers: map[string]*client.Team{}, sessionViewers: map[string]*client.Viewer{}}
	var first uint64
	for i := range n {
		name, addr := fmt.Sprintf("person_%d", i), addrs[i/2%2]
		if i%2 == 0 {
			p.teamViewers[name] = client.WatchTeam(t, client.TeamOptions{Addr: addr, Path: "agent-team/" + team, Key: keyOf(i), After: &first, Once: true})
		} else {
			p.sessionViewers[name] = client.MyAgentDialect().Watch(t, addr, "team/"+team, keyOf(i))
		}
	}
	return p
}

// decide lets all clients decide at once about the member's n-th call, anything but not, and
// returns its id and what each has said.
func (p *approvers) decide(t *testing.T, route string, n int, not string) (call string, said map[string]string) {
	t.Helper()
	said = map[string]string{}
	say := func(name string) (approve bool) {
		approve = not == event.DecisionReject || not == "" && rand.IntN(2) == 0
		said[name] = map[bool]string{true: event.DecisionApprove, false: event.DecisionReject}[approve]
		return approve
	}
	var start, decided sync.WaitGroup
	start.Add(1)
	for name, c := range p.teamViewers {
		seen := 0
		question := c.Until("the question", func(f client.TeamFrame) bool {
			if is("TOOL_APPROVAL_REQUESTED", route)(f) {
				seen++
			}
			return seen > n
		})
		call = question.Text("invocation_id")
		verb := map[bool]string{true: "APPROVE_TOOL", false: "DENY_TOOL"}[say(name)]
		decided.Go(func() {
			start.Wait()
			c.Say(verb, object{"invocation_id": call, "approval_token": question.Member("approval_token")})
		})
	}
	for name, d := range p.sessionViewers {
		step := "approve_" + call
		d.Until("the question", func(s client.Shown) bool { return s.Kind == myagent.AgentUserConfirm && s.MyAgent().StepID == step })
		approve := say(name)
		decided.Go(func() {
			start.Wait()
			d.Say(object{"event": myagent.UserResponse, "session_id": p.team, "step_id": step, "content": object{"approved": approve}})
		})
	}
	start.Done()
	decided.Wait()
	return call, said
}

// decided waits until the member has ended its run n and returns the answer that counted,
// which has to be the only one, with what it entails.
func (f *splitFleet) decided(agent subject.Log, call string, n int) (answer event.InputAnsweredData) {
	f.t.Helper()
	var events []event.Event
	process.Eventually(f.t, "the run ends", func() bool {
		events = eventsOf(verify.ReadLog(f.t, f.nc, agent))
		return len(all[event.RunCompletedData](f.t, events)) > n
	})
	answers := 0
	for _, a := range all[event.InputAnsweredData](f.t, events) {
		if a.CallID == call {
			answer = a
			answers++
		}
	}
	require.Equal(f.t, 1, answers, "one decision")
	calls, starts, results := 0, 0, 0
	for _, e := range events {
		var d struct {
			CallID string `json:"call_id"`
		}
		require.NoError(f.t, e.Decode(&d))
		switch {
		case d.CallID != call:
		case e.Type == event.ToolCalled:
			calls++
		case e.Type == event.ToolStarted:
			starts++
		case e.Type == event.ToolCompleted:
			results++
		}
	}
	want := 0
	if answer.Decision == event.DecisionApprove {
		want = 1
	}
	require.Equal(f.t, [3]int{want, want, want}, [3]int{calls, starts, results}, "calls, starts and results after %s", answer.Decision)
	return answer
}

// told waits until all clients but the one whose decision counted have been told whose it
// was, and returns how many that are.
func (p *approvers) told(t *testing.T, call string, answer event.InputAnsweredData) (n int) {
	t.Helper()
	for name, c := range p.teamViewers {
		if name == answer.By {
			continue
		}
		f := c.Told("whose decision counted", func(f client.TeamFrame) bool {
			return f.Type == "ERROR" && strings.Contains(f.Raw, call)
		})
		require.Equal(t, "INPUT_ANSWERED", f.Text("code"), "%s", f.Raw)
		require.Equal(t, answer.By, f.Text("answered_by"), "%s", f.Raw)
		require.Equal(t, answer.Decision, f.Text("decision"), "%s", f.Raw)
		n++
	}
	for name, d := range p.sessionViewers {
		if name == answer.By {
			continue
		}
		f := d.Until("whose decision counted", func(s client.Shown) bool {
			return s.Seq == 0 && s.Kind == myagent.AgentError && s.MyAgent().Meta().Context.StepID == "approve_"+call
		}).MyAgent()
		require.Equal(t, answer.By, f.Meta().Context.AnsweredBy, "%s", f.Raw)
		require.Equal(t, answer.Decision, f.Meta().Context.Decision, "%s", f.Raw)
		n++
	}
	return n
}
