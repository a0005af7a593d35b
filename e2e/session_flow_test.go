package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// everyone are the roles behind a gateway.
const everyone = "session,pipeline,worker,tools"

// inOrder requires that the frames hold the events in this order, others between them.
func inOrder(t *testing.T, frames []sdk.Frame, events ...string) {
	t.Helper()
	i := 0
	for _, f := range frames {
		if i < len(events) && f.Event == events[i] {
			i++
		}
	}
	require.Equal(t, len(events), i, "%s is not where it should be in %s", events[min(i, len(events)-1)], client.Names(frames))
}

// streamed returns what the partial answers of a stage add up to: the text of their
// last message.
func streamed(frames []sdk.Frame, stage string) string {
	texts, last := map[string]string{}, ""
	for _, f := range frames {
		if d := sdk.As[myagent.PartialAnswerMeta](f.Metadata); f.Event == myagent.AgentPartialAnswer && d.Stage == stage {
			texts[d.MessageID] += f.Text()
			last = d.MessageID
		}
	}
	return texts[last]
}

// TestAPlanInTheTerminal: "waggle chat --plan" shows the plan, takes a decision that
// is piped in, shows how the tasks get on, and the answer.
func TestAPlanInTheTerminal(t *testing.T) {
	t.Parallel()
	at, dir := one.forTenant(t), t.TempDir()
	talk := func(input string, args ...string) (string, error) {
		p := process.Start(t, process.Options{
			Name: "chat", Stdin: input, Env: at.env(), Args: append([]string{"chat", "--plan"}, args...),
		})
		err := p.Wait()
		return p.Output(), err
	}
	out, err := talk("y\n", question)
	require.NoError(t, err, out)
	for _, want := range []string{"Step", "After", "Carry it out?", "▸ 1 ", "✓ 1 ", "notes.md", "Welcome to your workspace"} {
		require.Contains(t, out, want)
	}
	out, err = talk("n not today\n", question)
	require.NoError(t, err, out)
	require.NotContains(t, out, "▸")
	out, err = talk("", "--yes", question)
	require.NoError(t, err, out)
	require.NotContains(t, out, "Carry it out?")
	require.Contains(t, out, "Welcome to your workspace")

	waggle := func(args ...string) string { return at.waggle(append([]string{"sessions"}, args...)...) }
	var list []string
	process.Eventually(t, "the list has all three, which follows the logs", func() bool {
		list = strings.Split(strings.TrimSpace(waggle("list")), "\n")
		return len(list) == 4
	})
	session := strings.Fields(list[1])[0]
	require.Contains(t, waggle("show", session), "completed")
	waggle("export", session, "-o", filepath.Join(dir, "state.json"))
	info, err := os.Stat(filepath.Join(dir, "state.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, session, strings.TrimSpace(waggle("import", filepath.Join(dir, "state.json"))))
	require.Contains(t, waggle("cancel", session), "asked to stop")
}

// tasks is a plan of independent tasks with these ids.
func tasks(ids ...string) []event.Step {
	out := make([]event.Step, len(ids))
	for i, id := range ids {
		out[i] = event.Step{ID: id, Title: "Task " + id}
	}
	return out
}

// say is an answer of some words.
func say(text string) scripted.Reply {
	return scripted.Stream(scripted.Text(scripted.Words(text)...), scripted.Usage(7, 5))
}

func count(frames []sdk.Frame, name string) int {
	n := 0
	for _, f := range frames {
		if f.Event == name {
			n++
		}
	}
	return n
}

// TestWhatIsWrongIsSaid: a client that sends too fast is told so, and one whose session no
// service answers for. All other mistakes are among the flows.
func TestWhatIsWrongIsSaid(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quick())
	sessions := f.serve("session")
	f.serve("pipeline,worker,tools")
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	m.Message("go", nil)
	m.Until(myagent.AgentFinalAnswer)
	for range 200 { // five times what a socket may send at once
		m.Raw(`{"event":"user.dance"}`)
	}
	m.Until(myagent.ErrorRateLimited)

	sessions.Kill()
	o := client.DialMyAgent(t, addr)
	o.Session = m.Session
	o.Send(myagent.UserRequestState, nil)
	require.Equal(t, "BUS_UNAVAILABLE", sdk.As[myagent.SystemErrorMeta](o.Until(myagent.SystemError).Metadata).ErrorType)
}

// TestAClientComesBack: in every way of the protocol, after acknowledgements, with
// nothing lost and nothing shown twice.
func TestAClientComesBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, scripted.Stages{
		Plan:  scripted.Always(scripted.Plan(tasks("a", "b")...)),
		Solve: scripted.Always(scripted.Stream(scripted.Every(2*time.Millisecond, words(150)...))),
	}.Script())
	f.configure("gateway: {heartbeat: 500ms}\n")
	f.serve(everyone)
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	session := m.Session
	m.Message("go", nil)
	m.Until(myagent.AgentFinalAnswer)
	newest := m.Seq()
	beat := m.Until(myagent.SystemHeartbeat)
	require.Equal(t, session, beat.SessionID)
	require.Equal(t, newest, *sdk.As[myagent.HeartbeatMeta](beat.Metadata).Seq)
	want := logged(m.Frames)

	again := client.DialMyAgent(t, addr)
	end := again.Attach(session, 0)
	require.Equal(t, want, logged(again.Frames), "one by one")
	require.Equal(t, len(want), *sdk.As[myagent.NoticeMeta](end.Metadata).Replayed)

	middle := newest / 2
	again = client.DialMyAgent(t, addr)
	again.Attach(session, middle)
	require.Equal(t, want[middle:], logged(again.Frames), "from the middle")

	batched := client.DialMyAgent(t, addr)
	batched.Session = session
	batched.Send(myagent.UserReconnectWithState, map[string]any{"content": map[string]any{"last_seq": 0, "batch": true}})
	batched.Replayed()
	require.Equal(t, want, listed(t, batched.Frames), "in lists")

	merged := client.DialMyAgent(t, addr)
	merged.Session = session
	merged.Send(myagent.UserReconnect, map[string]any{"content": map[string]any{"last_seq": 0, "merge": true}})
	merged.Replayed()
	require.Less(t, len(logged(merged.Frames)), len(want), "pieces of a text as one")
	require.Equal(t, streamed(m.Frames, "aggregation"), streamed(merged.Frames, "aggregation"))

	m.Send(myagent.UserAck, map[string]any{"metadata": map[string]any{"last_seq": newest - 5, "client_id": "browser_1"}})
	process.Eventually(t, "the acknowledgement is stored", func() bool {
		acked := client.DialMyAgent(t, addr)
		defer acked.Close()
		acked.Session = session
		acked.Raw(`{"event":"user.reconnect","session_id":"` + session + `","metadata":{"client_id":"browser_1"}}`)
		for {
			f, err := acked.Peek()
			require.NoError(t, err)
			if f.Seq > 0 {
				return f.Seq == newest-4
			}
		}
	})
}

// logged returns the frames of the log as they came.
func logged(frames []sdk.Frame) []string {
	var out []string
	for _, f := range frames {
		if f.Seq > 0 {
			out = append(out, string(f.Raw))
		}
	}
	return out
}

// listed returns the frames within the lists of notices.
func listed(t *testing.T, frames []sdk.Frame) []string {
	t.Helper()
	var out []string
	for _, f := range frames {
		list := sdk.As[myagent.NoticeContent](f.Content).EventList
		require.LessOrEqual(t, len(list), 200)
		for _, raw := range list {
			out = append(out, string(raw))
		}
	}
	return out
}
