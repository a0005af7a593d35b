package planchat

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal/terminaltest"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent/myagenttest"
)

// TestQuestionsOfARunAreShownAndAnswered: each call with its whole arguments, one after the other, and what an agent asks.
func TestQuestionsOfARunAreShownAndAnswered(t *testing.T) {
	input, typed := io.Pipe()
	notes := terminaltest.NewWatched("decided elsewhere (ann): approve")
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) {
		n := begin(p, true)
		answers := func(line, step, content string) {
			_, err := io.WriteString(typed, line)
			require.NoError(p.T, err)
			in := p.Read()
			require.Equal(p.T, step, in.StepID)
			require.JSONEq(p.T, content, string(in.Content))
		}
		ask := func(step string, meta myagent.ConfirmMeta, content string) {
			meta.Context = ofRun
			n++
			p.Send(myagent.Frame{Event: myagent.AgentUserConfirm, Seq: n, StepID: &step, Content: content, Metadata: meta})
		}
		answers("y\n", confirm, `{"approved":true}`)
		decided(p, n, "approve")
		for _, step := range []string{"one", "two", "three"} {
			ask(step, myagent.ConfirmMeta{Scope: "tool", ToolName: "pay", ToolArgs: json.RawMessage(`{"to":"` + step + `"}`)}, "May it?")
		}
		n++
		p.Send(myagent.Frame{Event: myagent.SystemNotice, Seq: n, Metadata: myagent.NoticeMeta{
			Work: myagent.Work{Context: ofRun}, Action: myagent.ActionUserConfirm, StepID: "two", Decision: "approve", By: "ann",
		}})
		<-notes.Seen()
		answers("perhaps\ny\n", "one", `{"approved":true}`)
		answers("n too much\n", "three", `{"approved":false,"feedback":"too much"}`)
		ask("agent", myagent.ConfirmMeta{Scope: "task"}, "Which colour?")
		answers("y is blue\n", "agent", `{"approved":true,"feedback":"y is blue"}`)
		ask("budget", myagent.ConfirmMeta{Scope: "budget"}, "As much again?")
		answers("n\n", "budget", `{"approved":false}`)
		finish(p, n+1, "done", "success")
	})
	yes := true
	opt := Options{Options: sdk.Options{URL: url, ConfirmPlan: &yes}, Text: "do it"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, Talk(ctx, opt, chat.Piped(input), terminal.NewScreen(io.Discard, notes)))
	require.NoError(t, typed.Close())
	shown := notes.String()
	for _, want := range []string{
		"May pay be called with {\"to\":\"one\"}?\ny, or n WHY?\n", "May pay be called with {\"to\":\"three\"}?\n",
		"Which colour?\nYour answer?\n", "As much again?\ny, or n WHY?\n",
	} {
		require.Contains(t, shown, want)
	}
	require.NotContains(t, shown, `{"to":"two"}`, "it was decided before it was shown")
}
