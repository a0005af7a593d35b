package conversation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
)

// chaos drives pipeline runs through commands, workers, deadlines, services that die
// between two events, and commands that come again.
type chaos struct {
	*world
	checked
	sent      []command.Command
	effective []command.Command // those that changed something: the others may do so when they come again
	pending   *command.Command  // the service died while it handled it: it comes again first
	thin      conversation.State
	thinned   int               // events of the log that thin has folded
	begunJobs map[string]string // their runs
}

// TestAnyPipelineKeepsTheInvariants: whatever commands, results, timeouts, deaths and
// repeats come in whatever order, what checkPipelines says holds after every step,
// and in the end every accepted message has exactly one terminal event.
func TestAnyPipelineKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{world: newWorld(t), begunJobs: map[string]string{}}
		c.state.Keep(rapid.SampledFrom([]int{0, 1, 4000}).Draw(t, "keep"))
		c.thin.Thin()
		c.do(command.Open, "open", command.OpenSession{Dialect: "myagent"})
		t.Repeat(map[string]func(*rapid.T){
			"message": c.message,
			"respond": c.respond,
			"control": c.control,
			"work":    c.work,
			"work2":   c.work,
			"work3":   c.work,
			"time":    c.time,
			"repeat":  c.repeat,
			"":        func(t *rapid.T) { c.checkPipelines(t); c.checkThin(t) },
		})
		c.drain(t)
		checkShown(t, c.log)
	})
}

// issue handles a command, perhaps with a service that dies on the way. The command
// that it had in hand is delivered again before any other: they are in order.
func (c *chaos) issue(t *rapid.T, verb id.Name, data any) {
	commandID := fmt.Sprintf("c%d", len(c.sent))
	c.handle(t, c.command(verb, commandID, data))
}

func (c *chaos) handle(t *rapid.T, k command.Command) {
	c.redeliver()
	c.sent = append(c.sent, k)
	dies := 1 << 30
	if rapid.IntRange(0, 4).Draw(t, "dies") == 0 {
		dies = rapid.IntRange(0, 3).Draw(t, "after")
	}
	if whole := c.attempt(k, dies); !whole {
		c.pending = &k
	}
}

// redeliver handles the pending command. A worker may have ended meanwhile what it was about: it has no effect then.
func (c *chaos) redeliver() {
	if k := c.pending; k != nil {
		c.pending = nil
		c.attempt(*k, 1<<30)
	}
}

// attempt is try, and notes whether the command has changed something.
func (c *chaos) attempt(k command.Command, dies int) (whole bool) {
	n, whole := c.try(k, dies)
	if n > 0 {
		c.effective = append(c.effective, k)
	}
	return whole
}

func (c *chaos) message(t *rapid.T) {
	spec := event.RunSpec{Mode: rapid.SampledFrom([]string{event.ModePlan, event.ModeSteps, event.ModeChat}).Draw(t, "mode")}
	spec.OnBusy = rapid.SampledFrom([]string{"", event.OnBusyEnqueue, event.OnBusyInterrupt}).Draw(t, "busy")
	spec.MaxConcurrent = rapid.IntRange(0, 4).Draw(t, "concurrent")
	ask := rapid.Bool().Draw(t, "ask")
	spec.ConfirmPlan = &ask
	if spec.Mode == event.ModeSteps {
		spec.Steps = randomTasks(t)
	}
	c.issue(t, command.SendMessage, command.UserMessage{Content: "x", RunSpec: spec})
}

// randomTasks returns a list that is now and then no plan at all.
func randomTasks(t *rapid.T) []event.Step {
	var list []event.Step
	for i := range rapid.IntRange(1, 5).Draw(t, "tasks") {
		task := event.Step{ID: fmt.Sprint("t", i), Title: "T"}
		for j := range i {
			if rapid.Bool().Draw(t, "needs") {
				task.Dependencies = append(task.Dependencies, fmt.Sprint("t", j))
			}
		}
		if rapid.IntRange(0, 19).Draw(t, "wrong") == 0 {
			task.Dependencies = append(task.Dependencies, "nobody")
		}
		list = append(list, task)
	}
	return list
}

func (c *chaos) respond(t *rapid.T) {
	r := c.state.Active()
	if r == nil || r.Plan == nil || r.Plan.Asked == nil {
		return
	}
	d := command.AnswerQuestion{InputID: r.Plan.Asked.ID, Approved: rapid.IntRange(0, 3).Draw(t, "approved") > 0}
	if rapid.IntRange(0, 3).Draw(t, "edited") == 0 {
		raw, err := json.Marshal(randomTasks(t))
		require.NoError(t, err)
		d.Steps = raw
	}
	c.issue(t, command.Answer, d)
}

func (c *chaos) control(t *rapid.T) {
	ref := command.StepRef{StepID: fmt.Sprint("t", rapid.IntRange(0, 5).Draw(t, "task"))}
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		c.issue(t, command.Cancel, command.CancelRun{Pause: rapid.Bool().Draw(t, "pause")})
	case 1:
		c.issue(t, command.CancelStep, ref)
	case 2, 3:
		c.issue(t, command.RestartStep, ref)
	case 4:
		c.issue(t, command.CancelPlan, command.CancelRun{})
	case 5:
		c.issue(t, command.Replan, command.ReplanRun{Question: "other"})
	}
}

func (c *chaos) time(t *rapid.T) {
	c.now = c.now.Add(time.Duration(rapid.IntRange(1, 120_000).Draw(t, "ms")) * time.Millisecond)
	if due := c.state.Due(c.now, rules); !due.IsZero() && !due.After(c.now) {
		c.issue(t, command.CheckDeadlines, nil)
	}
}

// repeat delivers an old command once more, long after it was done.
func (c *chaos) repeat(t *rapid.T) {
	c.redeliver()
	if len(c.effective) == 0 {
		return
	}
	k := rapid.SampledFrom(c.effective).Draw(t, "which")
	n := len(c.log)
	c.try(k, 1<<30)
	for _, e := range c.log[n:] {
		switch e.Type { // a repeat may append events that were due anyway
		case event.MessageReceived, event.RunCancelled, event.InputAnswered, event.SessionPaused, event.MessageRefused:
			t.Fatalf("a repeated %s had its effect twice: %s", k.Verb, e.Type)
		default:
		}
	}
}

// work lets a worker do something about a job.
func (c *chaos) work(t *rapid.T) {
	r := c.state.Active()
	if r == nil {
		return
	}
	var live []*conversation.Job
	for _, u := range c.jobs(r) {
		if !u.Ended && u.Failure == nil {
			live = append(live, u)
		}
	}
	if len(live) == 0 {
		return
	}
	c.workOn(t, rapid.SampledFrom(live).Draw(t, "job"))
}

// jobs returns the jobs of a run, found as a worker finds them: by what began them.
func (c *chaos) jobs(r *conversation.Run) []*conversation.Job {
	var out []*conversation.Job
	for _, e := range c.log {
		var d struct {
			RunID  string `json:"run_id"`
			WorkID string `json:"job_id"`
		}
		require.NoError(c.t, e.Decode(&d))
		if u := c.state.Job((event.Part{JobID: d.WorkID}).Job(d.RunID)); u != nil && d.RunID == r.ID && !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

func (c *chaos) workOn(t *rapid.T, u *conversation.Job) {
	base := func(d event.Data) { c.append(fmt.Sprint("w", len(c.log)), d) }
	if u.Attempt == 0 || rapid.IntRange(0, 9).Draw(t, "takeover") == 0 {
		base(event.JobStartedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: u.Attempt + 1, Part: u.Part})
		return
	}
	if len(u.Open) > 0 {
		base(event.MessageDiscardedData{RunID: u.RunID, MessageID: u.Open[0], Attempt: u.Attempt, Part: u.Part})
		return
	}
	switch rapid.IntRange(0, 9).Draw(t, "does") {
	case 0:
		if u.Part.JobID != "" {
			base(event.JobFailedData{RunID: u.RunID, Attempt: u.Attempt, Code: "MODEL_FAILED", Retryable: rapid.Bool().Draw(t, "retryable"), Part: u.Part})
			c.report(t, u)
		}
	case 1:
		base(event.MessageStartedData{RunID: u.RunID, MessageID: fmt.Sprint("m", len(c.log)), Attempt: u.Attempt, Part: u.Part})
	case 2:
		c.handle(t, c.command(command.AbandonJob, u.ID+".dead", command.AbandonedJob{JobRef: command.JobRef{RunID: u.RunID, JobID: u.Part.JobID}}))
	default:
		c.finish(t, u)
	}
}

func (c *chaos) finish(t *rapid.T, u *conversation.Job) {
	text := "done"
	if u.Part.Stage == event.StagePlanning && rapid.IntRange(0, 3).Draw(t, "plans") > 0 {
		raw, err := json.Marshal(map[string]any{"tasks": randomTasks(t)})
		require.NoError(t, err)
		text = string(raw)
	}
	n := fmt.Sprint("w", len(c.log))
	if u.Part.JobID == "" {
		c.append(n, event.RunCompletedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: u.Attempt, Content: text})
	} else {
		c.append(n, event.MessageCompletedData{RunID: u.RunID, MessageID: n, Attempt: u.Attempt, Content: text, Part: u.Part})
	}
	c.report(t, u)
}

func (c *chaos) report(t *rapid.T, u *conversation.Job) {
	c.handle(t, c.command(command.SettleJob, u.ID+".ended", command.JobRef{RunID: u.RunID, JobID: u.Part.JobID}))
}

// drain lets everything come to its end: workers succeed, and time passes.
func (c *chaos) drain(t *rapid.T) {
	c.redeliver()
	for range 2000 {
		r := c.state.Active()
		if r == nil && c.state.Waiting() == 0 {
			break
		}
		c.step(r)
		c.checkPipelines(t)
	}
	require.Nil(t, c.state.Active(), "every run comes to its end")
	require.Zero(t, c.state.Waiting())
	terminal := map[string]int{}
	for _, e := range c.log {
		if e.Type.Terminal() {
			var d struct {
				RunID string `json:"run_id"`
			}
			require.NoError(t, e.Decode(&d))
			terminal[d.RunID]++
		}
	}
	for _, r := range c.state.Runs() {
		require.Equal(t, 1, terminal[r.ID], "run %s has one terminal event", r.ID)
	}
}

func (c *chaos) step(r *conversation.Run) {
	if r != nil {
		for _, u := range c.jobs(r) {
			if u.Ended || u.Failure != nil {
				continue
			}
			for _, m := range u.Open {
				c.append(fmt.Sprint("w", len(c.log)), event.MessageDiscardedData{RunID: u.RunID, MessageID: m, Attempt: u.Attempt, Part: u.Part})
			}
			if u.Part.JobID == "" {
				c.append(fmt.Sprint("w", len(c.log)), event.RunCompletedData{RunID: u.RunID, Content: "done"})
				c.ended(u)
				return
			}
			c.say(u, `{"tasks":[{"id":"t0","title":"T"}]}`)
			return
		}
	}
	c.now = c.now.Add(10 * time.Minute)
	c.do(command.CheckDeadlines, fmt.Sprint("drain", len(c.log)), nil)
}
