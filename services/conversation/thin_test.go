package conversation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// checkThin: a thin state says the same of each job of an unfinished run as the whole one, also one that begins with it.
func (c *chaos) checkThin(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "begins") == 0 {
		whole := storedOf(t, &c.state)
		thin, err := c.state.Thinned()
		require.NoError(t, err)
		require.Equal(t, string(whole), string(storedOf(t, &c.state)), "it is only read")
		c.thin, c.thinned = *thin, len(c.log)
	}
	for _, e := range c.log[c.thinned:] {
		require.NoError(t, c.thin.Apply(e))
		var d struct {
			RunID string `json:"run_id"`
			event.Part
		}
		require.NoError(t, e.Decode(&d))
		c.begunJobs[d.Job(d.RunID)] = d.RunID
	}
	c.thinned = len(c.log)
	for job, run := range c.begunJobs {
		if r := c.state.Run(run); r != nil && !r.Status.Terminal() {
			require.Equal(t, c.state.Job(job), c.thin.Job(job), "job %s", job)
		}
	}
}

// TestAThinStateKeepsLittle: a long chat takes no more than its newest run.
func TestAThinStateKeepsLittle(t *testing.T) {
	w := newWorld(t)
	w.state.Thin()
	w.do(command.Open, "open", command.OpenSession{})
	for i := range 20 {
		c := fmt.Sprint("c", i)
		w.do(command.SendMessage, c, command.UserMessage{Content: "ping"})
		w.append(c+"m", event.MessageCompletedData{RunID: conversation.RunID(c), MessageID: c, Content: "pong"})
		w.append(c+"e", event.RunCompletedData{RunID: conversation.RunID(c)})
		require.Len(t, w.state.Runs(), 1)
	}
}

// TestAStateThatIsThinnedKeepsLittle, and shares nothing with the state that it is from.
func TestAStateThatIsThinnedKeepsLittle(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "open", command.OpenSession{})
	for n := range 20 {
		w.chat(n, "x", "y")
	}
	thin, err := w.state.Thinned()
	require.NoError(t, err)
	require.Len(t, thin.Runs(), 1)
	require.Len(t, w.state.Runs(), 20)
	before := storedOf(t, thin)
	w.chat(20, "x", "y")
	require.Equal(t, string(before), string(storedOf(t, thin)))
}

// TestAThinStateKnowsWhatIsRestarted: people may restart a step of a plan, however large it is and however much was said after it.
func TestAThinStateKnowsWhatIsRestarted(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "open", command.OpenSession{Dialect: "myagent"})
	w.do(command.SendMessage, "plan", command.UserMessage{Content: "do", RunSpec: event.RunSpec{Mode: event.ModeSteps, Steps: []event.Step{{ID: "t1", Title: "T"}}}})
	u := w.state.Unclaimed()[0]
	w.append("claim", event.JobStartedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1, Part: u.Part})
	w.append("said", event.MessageCompletedData{RunID: u.RunID, MessageID: "r", Attempt: 1, Content: strings.Repeat("x", 60<<10), Part: u.Part})
	w.do(command.SettleJob, "settle", command.JobRef{RunID: u.RunID, JobID: u.Part.JobID})
	for n := range 3 {
		w.chat(n, "x", "y")
	}
	w.do(command.RestartStep, "again", command.StepRef{StepID: "t1"})
	job := w.state.Unclaimed()[0]

	var thin conversation.State
	thin.Thin()
	for _, e := range w.log {
		require.NoError(t, thin.Apply(e))
	}
	require.Len(t, thin.Runs(), 3, "the plan, the newest chat, and the restarted step")
	require.Equal(t, job, thin.Job(job.ID))
	later, err := w.state.Thinned()
	require.NoError(t, err)
	require.Len(t, later.Runs(), 2, "the newest chat, and the restarted step with its plan")
	require.Equal(t, job, later.Job(job.ID))
}
