package e2e_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

// TestTheSDKHoldsSessions: a program chats, has a question planned, answers what is asked
// about the plan, looks after its sessions, and has a team do something. So does the planner
// of the examples.
func TestTheSDKHoldsSessions(t *testing.T) {
	t.Parallel()
	p := one.forTenant(t)
	t.Run("sessions", func(t *testing.T) { sdkSessions(t, p) })
	t.Run("a team", func(t *testing.T) { sdkTeam(t, p) })
	t.Run("the planner of the examples", func(t *testing.T) { examplePlanner(t, p) })
}

func sdkSessions(t *testing.T, p place) {
	t.Helper()
	ctx := sdkContext(t)
	w, err := waggle.Open(ctx, "ws://"+p.addr+"/ws", waggle.Options{Token: p.key, Language: "en_US"})
	require.NoError(t, err)

	chat := w.Chat(waggle.SessionOptions{})
	defer chat.Close()
	answer, err := chat.Ask(ctx, question, nil)
	require.NoError(t, err)
	require.Contains(t, answer.Text, "notes.md")

	confirm := true
	plan := w.Plan(waggle.SessionOptions{ConfirmPlan: &confirm})
	defer plan.Close()
	asked := 0
	answer, err = plan.Ask(ctx, question, func(q waggle.Question) waggle.Reply {
		asked++
		return waggle.Reply{Approve: true, Steps: q.Steps}
	})
	require.NoError(t, err)
	require.Equal(t, 1, asked)
	require.Equal(t, "success", answer.Status)
	require.Contains(t, answer.Text, "notes.md")
	_, err = plan.Ask(ctx, question, func(waggle.Question) waggle.Reply { return waggle.Reply{Feedback: "not now"} })
	require.NoError(t, err)

	// Another program continues after what this one has seen.
	id, seq := plan.ID(), plan.Seq()
	plan.Close()
	again := w.Plan(waggle.SessionOptions{ID: id, After: seq})
	defer again.Close()
	_, err = again.Ask(ctx, question, func(waggle.Question) waggle.Reply { return waggle.Reply{Approve: true} })
	require.NoError(t, err)

	process.Eventually(t, "the list has both, which follows the logs", func() bool {
		all, err := w.Sessions(ctx)
		require.NoError(t, err)
		return len(all) == 2
	})
	detail, err := w.ShowSession(ctx, id)
	require.NoError(t, err)
	require.Len(t, detail.Runs, 3)
	_, err = w.ExportSession(ctx, id)
	require.NoError(t, err)
	_, err = w.DeleteSession(ctx, chat.ID())
	require.NoError(t, err)
	_, err = w.ShowSession(ctx, "nothing")
	require.True(t, waggle.IsCode(err, fault.SessionNotFound), "%v", err)
}

// sdkTeam makes a team, gives it something to do and sees that it is done.
func sdkTeam(t *testing.T, p place) {
	t.Helper()
	ctx := sdkContext(t)
	w, err := waggle.Open(ctx, "ws://"+p.addr, waggle.Options{Token: p.key})
	require.NoError(t, err)
	var d waggle.TeamDefinition
	require.NoError(t, json.Unmarshal([]byte(`{"name":"pair","coordinator":"Lead","members":[{"name":"Lead","role":"leads"}]}`), &d))
	v, err := w.CreateTeam(ctx, api.NewTeam{TeamDefinition: d})
	require.NoError(t, err)
	team := w.Team(v.TeamID, waggle.TeamOptions{All: true})
	defer team.Close()
	message, err := team.Send(question, "")
	require.NoError(t, err)
	for accepted, ran, idle := false, false, false; !accepted || !idle; { // the answer has no place among the events
		f, err := team.Next(ctx)
		require.NoError(t, err)
		accepted = accepted || f.Type == "MESSAGE_ACCEPTED" && f.Payload.MessageID == message
		if f.Type == "TEAM_STATUS" {
			ran = ran || f.Payload.NewStatus == "RUNNING"
			idle = ran && f.Payload.NewStatus == "IDLE"
		}
	}
	require.NoError(t, w.DeleteTeam(ctx, v.TeamID))
}

func examplePlanner(t *testing.T, p place) {
	t.Helper()
	program := exec.CommandContext(sdkContext(t), "go", "run", "./examples/planner", question)
	program.Dir = "../sdk/go"
	program.Env = append(program.Environ(), p.env()...)
	out, err := program.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "notes.md")
}
