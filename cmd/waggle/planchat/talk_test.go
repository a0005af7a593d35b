package planchat

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent/myagenttest"
)

var (
	plan = []myagent.Task{
		{ID: "a", Title: "Look\x1b[2J around", EstimatedSeconds: 5},
		{ID: "b", Title: "内容生成", Dependencies: []string{"a"}},
		{ID: "c", Title: "Write", Dependencies: []string{"a", "b"}},
	}
	ofRun   = myagent.Context{RunID: "r"}
	ofWork  = myagent.Work{Context: ofRun, Stage: stageAggregation}
	confirm = "plan_confirm_1"
)

// script plays a run up to the question and returns the peer's next seq.
func begin(p *myagenttest.Peer, session bool) uint64 {
	if session {
		hello := p.Create()
		require.NotNil(p.T, hello.Metadata.ConfirmPlan)
	}
	in := p.Read()
	require.Equal(p.T, myagent.UserMessage, in.Event)
	p.Send(myagent.Frame{Event: myagent.UserMessage, Seq: 2, Metadata: myagent.EchoMeta{Context: ofRun, MessageID: in.Metadata.MessageID}})
	p.Send(myagent.Frame{Event: myagent.PlanStart, Seq: 3, Metadata: myagent.PlanStartMeta{Context: ofRun}})
	p.Send(myagent.Frame{
		Event: myagent.PlanCompleted, Seq: 4, Content: myagent.Tasks{Tasks: plan},
		Metadata: myagent.PlanCompletedMeta{Context: ofRun, TaskCount: 3, Summary: "Three steps"},
	})
	p.Send(myagent.Frame{
		Event: myagent.AgentUserConfirm, Seq: 5, StepID: &confirm, Metadata: myagent.ConfirmMeta{Context: ofRun, Tasks: plan},
	})
	return 6
}

func decided(p *myagenttest.Peer, seq uint64, decision string) {
	p.Send(myagent.Frame{Event: myagent.SystemNotice, Seq: seq, Metadata: myagent.NoticeMeta{
		Work: myagent.Work{Context: ofRun}, Action: myagent.ActionUserConfirm, StepID: confirm, Decision: decision, By: "alice",
	}})
}

func finish(p *myagenttest.Peer, seq uint64, text, status string) {
	p.Send(myagent.Frame{
		Event: myagent.AgentFinalAnswer, Seq: seq, Content: text,
		Metadata: myagent.FinalAnswerMeta{Context: ofRun, Status: status},
	})
	p.Until()
}

func talkTo(t testing.TB, url, text, input string, stream bool, interrupts <-chan os.Signal) (out, notes string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	yes := true
	var answers, remarks bytes.Buffer
	opt := Options{Options: sdk.Options{URL: url, ConfirmPlan: &yes}, Text: text, Stream: stream, Interrupts: interrupts}
	err = Talk(ctx, opt, chat.Piped(strings.NewReader(input)), terminal.NewScreen(&answers, &remarks))
	return answers.String(), remarks.String(), err
}

func TestAPlanIsShownConfirmedAndCarriedOut(t *testing.T) {
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) {
		n := begin(p, true)
		in := p.Read()
		require.Equal(p.T, myagent.UserResponse, in.Event)
		require.Equal(p.T, confirm, in.StepID)
		require.JSONEq(p.T, `{"approved":true}`, string(in.Content))
		decided(p, n, "approve")
		p.Send(myagent.Frame{
			Event: myagent.SolverStart, Seq: n + 1, Content: myagent.SolverStartContent{Task: plan[0]},
			Metadata: myagent.SolverStartMeta{Context: ofRun, TaskID: "a"},
		})
		p.Send(myagent.Frame{
			Event: myagent.SolverRestarted, Seq: n + 2, Content: myagent.SolverRestartedContent{TaskID: "a"},
			Metadata: myagent.SolverRestartedMeta{Context: ofRun, Attempt: 2, MaxAttempts: 3},
		})
		p.Send(myagent.Frame{
			Event: myagent.SolverCompleted, Seq: n + 3, Metadata: myagent.SolverCompletedMeta{Context: ofRun, TaskID: "a", ExecutionMS: 1500},
		})
		p.Send(myagent.Frame{
			Event: myagent.SolverStepFailed, Seq: n + 4, Content: myagent.StepFailedContent{ErrorMessage: "no luck"},
			Metadata: myagent.StepFailedMeta{Context: ofRun, TaskID: "b"},
		})
		p.Send(myagent.Frame{
			Event: myagent.SolverCancelled, Seq: n + 5, Content: myagent.TaskRef{TaskID: "c"},
			Metadata: myagent.SolverCancelledMeta{Context: ofRun, Reason: "dependency_failed"},
		})
		for i, piece := range []string{"Half ", "done\x1b[2J"} {
			p.Send(myagent.Frame{
				Event: myagent.AgentPartialAnswer, Seq: n + 6 + uint64(i), Content: piece,
				Metadata: myagent.PartialAnswerMeta{Work: ofWork, MessageID: "m"},
			})
		}
		finish(p, n+8, "Half done\x1b[2J", "partial_success")
	})
	out, notes, err := talkTo(t, url, "do it", "what?\ny\n", true, nil)
	require.NoError(t, err)
	require.Equal(t, "Half done\n", out, "the text that was streamed is not shown again")
	require.Equal(t, []string{
		"Plan: Three steps",
		"  #  Step         After  Estimate",
		"  1  Look around         5 s",
		"  2  内容生成     1",
		"  3  Write        1, 2",
		"Carry it out? y, n WHY, drop 2 3, title 2 NEW ONE",
		"y                approve and proceed", "n WHY            reject, with the reason if you like",
		"drop 2 3         take tasks out", "title 2 NEW ONE  give a task another title",
		"▸ 1 Look around", "↻ 1 Look around attempt 2 of 3", "✓ 1 Look around 1.5 s",
		"✗ 2 内容生成 no luck", "– 3 Write cancelled: dependency_failed",
	}, strings.Split(strings.TrimSpace(notes), "\n"))
}

func TestAPlanIsChanged(t *testing.T) {
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) {
		n := begin(p, true)
		require.JSONEq(p.T, `{"confirmed":true,"tasks":[
			{"id":"a","title":"Look twice","dependencies":[],"estimated_time_seconds":5},
			{"id":"c","title":"Write","dependencies":["a"]}]}`, string(p.Read().Content))
		p.Send(myagent.Frame{
			Event: myagent.PlanCoercionError, Seq: n, Metadata: myagent.CoercionMeta{Context: ofRun, ErrorMessage: "nonsense", ConfirmStepID: confirm},
		})
		require.JSONEq(p.T, `{"approved":false,"feedback":"too long"}`, string(p.Read().Content))
		decided(p, n+1, "reject")
		finish(p, n+2, "Rejected.", "rejected")
	})
	out, notes, err := talkTo(t, url, "do it", "drop 2\ntitle 1 Look twice\ndrop 7\ny\nn too long\n", false, nil)
	require.NoError(t, err)
	require.Equal(t, "Rejected.\n", out)
	require.Contains(t, notes, `step "7" does not exist; use a number from 1 to 2`)
	require.Contains(t, notes, "the plan cannot be used: nonsense")
}

func TestAnotherClientDecides(t *testing.T) {
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) {
		n := begin(p, true)
		decided(p, n, "approve")
		finish(p, n+1, "Done.", "success")
	})
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	var answers, remarks bytes.Buffer
	opt := Options{Options: sdk.Options{URL: url, ConfirmPlan: new(bool)}, Text: "do it"}
	err = Talk(t.Context(), opt, chat.Piped(r), terminal.NewScreen(&answers, &remarks))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, "Done.\n", answers.String())
	require.Contains(t, remarks.String(), "decided elsewhere (alice): approve")
}

func TestWithoutADecisionThePlanWaits(t *testing.T) {
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) { begin(p, true); p.Until() })
	_, _, err := talkTo(t, url, "do it", "", false, nil)
	require.ErrorIs(t, err, chat.ErrNoAnswer)
	require.ErrorContains(t, err, "the plan is waiting for a decision in session s1")
}

func TestAConversationGoesOnAfterALostConnection(t *testing.T) {
	url := myagenttest.Serve(t,
		func(p *myagenttest.Peer) {
			n := begin(p, true)
			p.Read()
			decided(p, n, "approve")
			p.Leave(1012)
		},
		func(p *myagenttest.Peer) {
			require.JSONEq(p.T, `{"last_seq":6}`, string(p.Read().Content))
			p.Replayed()
			p.Send(myagent.Frame{
				Event: myagent.AgentFinalAnswer, Seq: 7, Content: "Done.", Metadata: myagent.FinalAnswerMeta{Context: ofRun, Status: "success"},
			})
			in := p.Read()
			require.JSONEq(p.T, `"and again"`, string(in.Content))
			p.Send(myagent.Frame{Event: myagent.AgentError, Seq: 8, Content: "busy", Metadata: map[string]any{"message_id": in.Metadata.MessageID, "error_code": "SESSION_BUSY"}})
			p.Until()
		})
	out, notes, err := talkTo(t, url, "", "do it\ny\n/session\nand again\n", false, nil)
	require.ErrorIs(t, err, chat.ErrNoAnswer)
	require.Equal(t, "Done.\ns1\n", out)
	require.Contains(t, notes, "✗ busy [SESSION_BUSY]")
}

func TestAnInterruptStopsTheRun(t *testing.T) {
	interrupts := make(chan os.Signal)
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) {
		n := begin(p, true)
		p.Read()
		decided(p, n, "approve")
		interrupts <- os.Interrupt
		require.Equal(p.T, myagent.UserCancel, p.Read().Event)
		p.Send(myagent.Frame{Event: myagent.AgentInterrupted, Seq: n + 1, Metadata: myagent.InterruptedMeta{Context: ofRun}})
		p.Until()
	})
	_, notes, err := talkTo(t, url, "do it", "y\n", false, interrupts)
	require.ErrorIs(t, err, chat.ErrNoAnswer)
	require.Contains(t, notes, "stopped")
}

// The client may have given up before the first message is sent.
func TestAMessageAfterTheEndOfTheConnectionSaysWhy(t *testing.T) {
	client := sdk.New(sdk.Options{URL: "ws://127.0.0.1:1/ws/session"})
	talk := &talk{opt: Options{Text: "hello"}, client: client, screen: terminal.NewScreen(&bytes.Buffer{}, &bytes.Buffer{}), over: t.Context().Done()}
	require.Error(t, client.Run(t.Context(), talk))
	require.ErrorContains(t, talk.hold(), "no server answers at ws://127.0.0.1:1/ws/session")
}
