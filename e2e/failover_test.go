package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAGatewayIsKilledInTheMiddleOfAnAnswer: a chat and a stream of AG-UI continue at another
// gateway, and have seen, in the end, exactly what an undisturbed viewer saw.
func TestAGatewayIsKilledInTheMiddleOfAnAnswer(t *testing.T) {
	t.Parallel()
	const seen = 10
	script, next := wordByWord(120, seen, 20*time.Millisecond)
	f := newFleet(t, script)
	f.serve("session,pipeline,worker,tools")
	doomed, first := f.gateway()
	_, second := f.gateway()

	viewer := client.DialOrbit(t, "ws://"+first+"/ws?deltas=true")
	viewer.Until("agent_ready")
	calm := client.DialOrbit(t, "ws://"+second+"/ws?deltas=true&after=0&session="+viewer.Session)
	viewer.Ask("speak slowly")
	viewer.Until("agent_delta")
	stream := aguiClient{t: t, addr: first}.follow(t.Context(), "/threads/"+viewer.Session)
	begun := <-stream
	for range seen - 1 {
		next()
		viewer.Until("agent_delta")
	}
	doomed.Kill()
	next()
	for { // frames that the dead gateway had sent come first
		if _, err := viewer.Next(); err != nil {
			break
		}
	}
	again := client.DialOrbit(t, fmt.Sprintf("ws://%s/ws?deltas=true&session=%s&after=%d", second, viewer.Session, viewer.LastSeq))
	again.LastSeq = viewer.LastSeq
	again.Until("agent_response")
	calm.Until("agent_response")
	require.Equal(t, transcript(calm.Frames), transcript(append(viewer.Frames, again.Frames...)))
	t.Logf("frames: %d before the kill, %d after it, %d undisturbed; 0 lost, 0 doubled, 0 reordered",
		len(transcript(viewer.Frames)), len(transcript(again.Frames)), len(transcript(calm.Frames)))
	streamResumes(t, second, viewer.Session, begun, stream)
}

// streamResumes requires that a stream of AG-UI, whose gateway has died, continues at another one and shows the whole answer.
func streamResumes(t *testing.T, addr, thread string, begun aguiFrame, stream <-chan aguiFrame) {
	t.Helper()
	require.Equal(t, wire.RunStarted, begun.Type)
	frames := []aguiFrame{begun}
	for f := range stream {
		frames = append(frames, f)
	}
	last := frames[len(frames)-1]
	require.NotEqual(t, wire.RunFinished, last.Type)
	frames = append(frames, aguiClient{t: t, addr: addr}.get("/threads/"+thread+"/runs/"+begun.RunID, "Last-Event-ID", last.id)...)
	require.Equal(t, wire.RunFinished, frames[len(frames)-1].Type)
	require.Contains(t, slices.Collect(maps.Values(said(frames))), strings.Join(words(120), ""))
}

// transcript is what the log has shown: every frame that carries a seq.
func transcript(frames []client.OrbitFrame) []string {
	var out []string
	for _, f := range frames {
		if f.Seq > 0 {
			out = append(out, f.Raw)
		}
	}
	return out
}

// TestAWorkerIsKilledInTheMiddleOfAnAnswer: another finishes the run of a chat and a step of
// another session, and the viewers get one answer.
func TestAWorkerIsKilledInTheMiddleOfAnAnswer(t *testing.T) {
	t.Parallel()
	half := scripted.Stream(scripted.Text("half an "), scripted.Hang())
	f := newFleet(t, scripted.Stages{Chat: scripted.InTurn(half, say("a whole answer")), Solve: scripted.InTurn(half, say("a whole result"))}.Script())
	f.serve("session,pipeline,tools")
	doomed := f.serve("worker")
	_, addr := f.gateway()
	viewer := client.DialOrbit(t, "ws://"+addr+"/ws?deltas=true")
	viewer.Until("agent_ready")
	viewer.Ask("speak")
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	m.Send(myagent.UserSolveTasks, map[string]any{"content": map[string]any{"tasks": tasks("a")}})
	viewer.Until("agent_delta")
	m.Until(myagent.AgentPartialAnswer)
	f.serve("worker")
	doomed.Kill()
	require.Equal(t, "a whole answer", viewer.Until("agent_response", "error").Data.Message)
	viewer.Ask("and once more")
	viewer.Until("agent_response")
	counts := map[string]int{}
	for _, frame := range viewer.Frames {
		counts[frame.Type]++
	}
	require.Equal(t, 2, counts["agent_response"], "one terminal frame a run: %s", viewer.Types())
	require.Equal(t, 2, counts["agent_thinking"])
	require.Equal(t, 2, counts["user_input"])
	require.Equal(t, 1, counts["agent_delta_discarded"])
	require.Zero(t, counts["error"])

	require.Contains(t, m.Until(myagent.AgentFinalAnswer).Text(), "a whole result")
	require.Equal(t, 1, count(m.Frames, myagent.SolverRetry))
	require.Equal(t, 1, count(m.Frames, myagent.SolverCompleted))
	require.NotContains(t, m.Names(), myagent.SolverRestarted, "that is for attempts that failed")
}

// TestAWorkerIsKilledWhileAToolRuns: a tool that may not be repeated is not run
// again, and all viewers are told that its outcome is unknown.
func TestAWorkerIsKilledWhileAToolRuns(t *testing.T) {
	t.Parallel()
	f := newFleet(t, func(x *scripted.Exchange) scripted.Reply {
		if !strings.Contains(string(x.Body), "Outcome unknown") {
			return scripted.Stream(scripted.Calls(0, scripted.Call{ID: "call_0", Name: "bank_pay", Arguments: `{"amount":5}`}))
		}
		return scripted.Stream(scripted.Text("please check your account"))
	})
	f.serve("session,pipeline,tools")
	doomed := f.serve("worker")
	_, addr := f.gateway()
	viewer := client.DialOrbit(t, "ws://"+addr+"/ws")
	viewer.Until("agent_ready")
	viewer.Ask("pay 5")
	viewer.Until("tool_executing")
	<-f.paying
	f.serve("worker")
	doomed.Kill()
	result := viewer.Until("tool_result")
	require.Contains(t, result.Data.Result, "Outcome unknown")
	require.Equal(t, "please check your account", viewer.Until("agent_response", "error").Data.Message)
	require.EqualValues(t, 1, f.pays.Load(), "paid once")
	require.Equal(t, []string{
		"agent_start", "agent_ready", "user_input", "agent_thinking", "tool_called", "tool_executing", "tool_result", "agent_response",
	}, viewer.Types())
}

// TestAGatewayDrains: on SIGTERM its clients are told to come back, and do, without
// losing anything.
func TestAGatewayDrains(t *testing.T) {
	t.Parallel()
	script, next := wordByWord(60, 1, 20*time.Millisecond)
	f := newFleet(t, script)
	f.serve("session,pipeline,worker,tools")
	leaving, first := f.gateway()
	_, second := f.gateway()
	viewer := client.DialOrbit(t, "ws://"+first+"/ws?deltas=true")
	viewer.Until("agent_ready")
	viewer.Ask("speak")
	viewer.Until("agent_delta")
	done := make(chan error, 1)
	go func() { done <- leaving.Terminate() }()
	var err error
	for err == nil {
		_, err = viewer.Next()
	}
	require.Equal(t, 1012, client.CloseCode(err), "service restart: come back; %v", err)
	next()
	require.NoError(t, <-done, "a drained gateway ends with 0")
	again := client.DialOrbit(t, fmt.Sprintf("ws://%s/ws?deltas=true&session=%s&after=%d", second, viewer.Session, viewer.LastSeq))
	again.LastSeq = viewer.LastSeq
	text := ""
	answer := again.Until("agent_response")
	for _, frame := range append(viewer.Frames, again.Frames...) {
		text += frame.Data.Text
	}
	require.Equal(t, answer.Data.Message, text)
}
