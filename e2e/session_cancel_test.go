package e2e_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestACancelStopsEverything: while a run plans, solves with tools and puts together. The
// model's request is closed, no tool starts any more, and the session continues with the
// next message.
func TestACancelStopsEverything(t *testing.T) {
	t.Parallel()
	cancels := many(3, 50)
	p, cast := apart.forTenant(t, endless())
	m := p.myagent()
	m.Create("en_US", nil)
	t.Cleanup(func() {
		if t.Failed() {
			for _, e := range history(t, p, m.Session) {
				t.Log(e.Sequence, e.Type, e.Source, string(e.Data[:min(len(e.Data), 300)]))
			}
		}
	})
	for i := range cancels {
		stage := []string{"plan", "solve", "aggregate"}[i%3]
		question := fmt.Sprintf("hang in %s, %s run %d", stage, cast.cue, i)
		m.Message(question, nil)
		x := waitingIn(t, apart.llm, stage, question)
		m.Send(myagent.UserCancel, map[string]any{"content": "enough", "metadata": map[string]any{"reason": "takes_too_long"}})
		receive(t, x.Gone(), "the end of the request of run "+strconv.Itoa(i))
		m.Until(myagent.AgentInterrupted)
		end := sdk.As[myagent.SessionEndMeta](m.Until(myagent.AgentSessionEnd).Metadata)
		require.Equal(t, "user_request", end.Reason)
		require.True(t, end.Open)
		require.NotNil(t, end.Stats)
	}
	m.Message("an ordinary question "+cast.cue, nil)
	require.Equal(t, myagent.AgentFinalAnswer, m.Until(myagent.AgentFinalAnswer, myagent.AgentError, myagent.AgentInterrupted).Event)

	events := history(t, p, m.Session)
	tools := noToolAfterTheEnd(t, events)
	for run, n := range terminals(t, events) {
		require.Equal(t, 1, n, "terminal events of %s", run)
	}
	t.Logf("%d cancels; %d tools were started, none after its run had ended", cancels, tools)
}

// endless hangs in the stage that the question names. Its tasks call tools first.
func endless() scripted.Script {
	hang := func(x *scripted.Exchange, stage string) bool {
		return strings.Contains(asked(x), "hang in "+stage)
	}
	stuck := scripted.Stream(scripted.Text("so far "), scripted.Hang())
	return scripted.Stages{
		Plan: func(x *scripted.Exchange) scripted.Reply {
			if hang(x, "plan") {
				return stuck
			}
			list := tasks("a", "b")
			for i := range list {
				list[i].Description = x.Data.Question
			}
			return scripted.Plan(list...)
		},
		Solve: func(x *scripted.Exchange) scripted.Reply {
			last := x.Prompt.Messages[len(x.Prompt.Messages)-1]
			if last.Role != "tool" {
				return scripted.Stream(scripted.Calls(0, scripted.Call{ID: fmt.Sprintf("call_%d", x.N), Name: "workspace_list_files", Arguments: `{}`}))
			}
			if hang(x, "solve") {
				return stuck
			}
			return say("done " + x.Task)
		},
		Aggregate: func(x *scripted.Exchange) scripted.Reply {
			if hang(x, "aggregate") {
				return stuck
			}
			return say("all done")
		},
	}.Script()
}

// asked returns what the run is about, without the conversation before it.
func asked(x *scripted.Exchange) string {
	if x.Data.Task != nil {
		return x.Data.Task.Description
	}
	return x.Data.Question
}

// waitingIn waits until the model is asked something in the stage of the run that answers
// the question, which it does not answer.
func waitingIn(t *testing.T, llm *scripted.Server, stage, question string) *scripted.Exchange {
	t.Helper()
	name := map[string]string{"plan": event.StagePlanning, "solve": event.StageSolving, "aggregate": event.StageAggregation}[stage]
	ctx, cancel := process.Within(process.MaxWait)
	defer cancel()
	x, err := llm.Find(ctx, func(x *scripted.Exchange) bool {
		toolDone := stage != "solve" || x.Prompt.Messages[len(x.Prompt.Messages)-1].Role == "tool"
		return x.Stage == name && toolDone && asked(x) == question
	})
	require.NoError(t, err, "%q hangs in %s", question, stage)
	return x
}

// noToolAfterTheEnd requires that no tool starts after the terminal event of its run
// and returns how many were started.
func noToolAfterTheEnd(t *testing.T, events []event.Event) int {
	t.Helper()
	over, started := map[string]bool{}, 0
	for _, e := range events {
		var d struct {
			RunID string `json:"run_id"`
		}
		require.NoError(t, e.Decode(&d))
		switch {
		case e.Type.Terminal():
			over[d.RunID] = true
		case e.Type == event.ToolStarted:
			started++
			require.False(t, over[d.RunID], "seq %d: a tool starts after the end of %s", e.Sequence, d.RunID)
		}
	}
	return started
}
