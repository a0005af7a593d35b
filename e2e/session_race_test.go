package e2e_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// quick is a model that plans two tasks and solves them at once.
func quick() scripted.Script {
	return scripted.Stages{
		Plan:  scripted.Always(scripted.Plan(tasks("a", "b")...)),
		Solve: func(x *scripted.Exchange) scripted.Reply { return say("did " + x.Task) },
	}.Script()
}

// TestAHundredDecideAtOnce, or fewer by day, over two gateways. One decision counts, and all
// others are told whose.
func TestAHundredDecideAtOnce(t *testing.T) {
	t.Parallel()
	deciders := many(24, 100)
	p, cast := apart.forTenant(t, quick())
	yes := true
	owner := client.OpenMyAgent(t, sdk.Options{URL: "ws://" + p.addr + "/ws/session", Token: p.key, ConfirmPlan: &yes})
	owner.Message("go "+cast.cue, nil)
	question := owner.Until("the question", func(f sdk.Frame) bool { return f.Event == myagent.AgentUserConfirm })

	all := make([]*client.MyAgent, deciders)
	for i := range all {
		addr := []string{p.addr, p.other}[i%2]
		all[i] = client.OpenMyAgent(t, sdk.Options{
			URL: "ws://" + addr + "/ws/session", Token: p.key, Session: owner.Session(), ClientID: fmt.Sprintf("device_%d", i),
		})
	}
	for _, d := range all {
		d.UntilSeq(question.Seq)
		d.Until("the end of the replay", func(f sdk.Frame) bool { return f.Meta().Action == myagent.ActionReplay })
	}
	var start, decided sync.WaitGroup
	start.Add(1)
	for i, d := range all {
		decided.Go(func() {
			start.Wait()
			d.Tell(map[string]any{
				"event": myagent.UserResponse, "step_id": question.StepID,
				"content":  map[string]any{"approved": i%3 != 0, "feedback": fmt.Sprintf("says device %d", i)},
				"metadata": map[string]any{"client_id": fmt.Sprintf("device_%d", i)},
			})
		})
	}
	start.Done()
	decided.Wait()

	counted := owner.Until("the decision", func(f sdk.Frame) bool { return f.Meta().Action == myagent.ActionUserConfirm }).Meta()
	told := 0
	for i, d := range all {
		winner := counted.ClientID == fmt.Sprintf("device_%d", i)
		f := d.Until("what became of its decision", func(f sdk.Frame) bool {
			return winner && f.Meta().Action == myagent.ActionUserConfirm ||
				!winner && f.Seq == 0 && f.Event == myagent.AgentError && f.Meta().Context.StepID == question.StepID
		})
		if !winner {
			told++
			require.Equal(t, counted.Decision, f.Meta().Context.Decision)
			require.Equal(t, counted.By, f.Meta().Context.AnsweredBy, "%s", f.Raw)
		}
	}
	owner.Until("the answer", func(f sdk.Frame) bool { return f.Event == myagent.AgentFinalAnswer })
	require.Len(t, inLog[event.InputAnsweredData](t, p, owner.Session()), 1)
	require.Equal(t, deciders-1, told)
	t.Logf("%d decisions at once over two gateways: %s by %s counted, %d were told so", deciders, counted.Decision, counted.ClientID, told)
}

// inLog returns the data of a session's events of a type.
func inLog[T event.Data](t *testing.T, p place, session string) []T {
	t.Helper()
	return all[T](t, history(t, p, session))
}

// TestTwoBrowsersAndAPhone: on two gateways, one of them on a bad line, and one that
// comes when all is over: all have seen the same, byte for byte.
func TestTwoBrowsersAndAPhone(t *testing.T) {
	t.Parallel()
	p, cast := apart.forTenant(t, scripted.Stages{
		Plan: scripted.Always(scripted.Plan(tasks("a", "b", "c")...)),
		Solve: func(*scripted.Exchange) scripted.Reply {
			return scripted.Stream(scripted.Every(3*time.Millisecond, words(40)...))
		},
		Aggregate: scripted.Always(scripted.Stream(scripted.Every(3*time.Millisecond, words(80)...))),
	}.Script())
	first, second := p.addr, p.other
	url := func(addr string) string { return "ws://" + addr + "/ws/session" }
	yes := true
	browser := client.OpenMyAgent(t, sdk.Options{URL: url(first), Token: p.key, ClientID: "browser_1", ConfirmPlan: &yes})
	browser.Until("the session", func(f sdk.Frame) bool { return f.Event == myagent.AgentSessionCreated })
	join := func(addr, name string) *client.MyAgent {
		return client.OpenMyAgent(t, sdk.Options{URL: url(addr), Token: p.key, Session: browser.Session(), ClientID: name})
	}
	other, phone := join(second, "browser_2"), join(second, "phone")
	browser.Message("go "+cast.cue, nil)
	question := phone.Until("the question", func(f sdk.Frame) bool { return f.Event == myagent.AgentUserConfirm })
	phone.Respond(question.StepID, map[string]any{"approved": true})
	broken := 0
	for over := false; broken < 5 && !over; { // a slow machine has fewer, longer parts of texts
		seq := phone.Seq()
		phone.Break()
		broken++
		f := phone.Until("more of the run", func(f sdk.Frame) bool { return f.Seq >= seq+10 || f.Event == myagent.AgentFinalAnswer })
		over = f.Event == myagent.AgentFinalAnswer
	}
	end := other.Until("the answer", func(f sdk.Frame) bool { return f.Event == myagent.AgentFinalAnswer })
	late := join(first, "latecomer")
	for _, d := range []*client.MyAgent{browser, other, phone, late} {
		d.UntilSeq(end.Seq)
		_, gaps := d.Losses()
		require.Empty(t, gaps)
	}
	want := browser.Raw()[:end.Seq]
	for name, d := range map[string]*client.MyAgent{"browser 2": other, "phone": phone, "latecomer": late} {
		require.Equal(t, want, d.Raw()[:end.Seq], name)
	}
	t.Logf("%d events, identical on three devices and for a latecomer; the phone's line broke %d times", end.Seq, broken)
}
