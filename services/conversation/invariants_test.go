package conversation_test

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/plan"
)

// checked is what checkPipelines knows of the events that it has looked at.
type checked struct {
	upTo          int
	seen, over    map[string]bool
	answers       map[string]int
	running, done map[string]map[string]bool // tasks by run
	uncounted     map[string]map[string]bool // tasks with an outcome that no progress has told of
}

// checkPipelines holds after every step, whatever came before.
func (c *chaos) checkPipelines(t *rapid.T) {
	if c.seen == nil {
		c.seen, c.over, c.answers = map[string]bool{}, map[string]bool{}, map[string]int{}
		c.running, c.done, c.uncounted = map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]bool{}
	}
	running, done := c.running, c.done
	for _, e := range c.log[c.upTo:] {
		require.False(t, c.seen[e.ID], "event id %s is used twice", e.ID)
		c.seen[e.ID] = true
		var d struct {
			RunID   string `json:"run_id"`
			TaskID  string `json:"step_id"`
			InputID string `json:"input_id"`
			Repairs string `json:"repairs"`
		}
		require.NoError(t, e.Decode(&d))
		if d.RunID != "" && c.over[d.RunID] {
			t.Fatalf("%s after the end of its run", e.Type)
		}
		if running[d.RunID] == nil {
			running[d.RunID], done[d.RunID], c.uncounted[d.RunID] = map[string]bool{}, map[string]bool{}, map[string]bool{}
			for task := range done[d.Repairs] {
				done[d.RunID][task] = true
			}
		}
		c.follow(t, e, d.RunID, d.TaskID, running[d.RunID], done[d.RunID])
		count(t, e, d.TaskID, c.uncounted[d.RunID])
		if e.Type == event.InputAnswered || e.Type == event.InputExpired {
			c.answers[d.InputID]++
			require.Equal(t, 1, c.answers[d.InputID], "a question has one answer")
		}
		c.over[d.RunID] = c.over[d.RunID] || e.Type.Terminal()
	}
	c.upTo = len(c.log)
	c.checkRuns(t)
}

// follow checks the order of the tasks of a run: one starts after what it depends on
// has its result, and not more at once than allowed.
func (c *chaos) follow(t *rapid.T, e event.Event, runID, taskID string, running, done map[string]bool) {
	switch e.Type {
	case event.StepStarted:
		d, err := event.As[event.StepStartedData](e)
		require.NoError(t, err)
		require.False(t, running[taskID], "a task is solved once at a time")
		for _, dep := range d.Step.Dependencies {
			require.True(t, done[dep], "%s starts before %s is done", taskID, dep)
		}
		running[taskID] = true
		limit := rules.MaxConcurrent
		if r := c.state.Run(runID); r != nil && r.Spec.MaxConcurrent > 0 { // it may be forgotten after its end
			limit = min(r.Spec.MaxConcurrent, limit)
		}
		require.LessOrEqual(t, len(running), limit, "tasks at once")
	case event.StepCompleted:
		require.True(t, running[taskID], "only what was started is completed")
		delete(running, taskID)
		done[taskID] = true
	case event.StepFailed, event.StepCancelled, event.RetryScheduled:
		delete(running, taskID)
	case event.StepRestarted:
		require.False(t, running[taskID], "what is being solved is cancelled before it is restarted")
		delete(done, taskID)
	case event.AggregateStarted:
		require.Empty(t, running, "the aggregate waits for all tasks")
	default:
	}
}

// count checks that progress tells of each outcome of a task, and of nothing else.
func count(t *rapid.T, e event.Event, taskID string, uncounted map[string]bool) {
	switch e.Type {
	case event.StepCompleted, event.StepFailed, event.StepCancelled:
		uncounted[taskID] = true
	case event.StepRestarted:
		delete(uncounted, taskID)
	case event.RunProgressed:
		require.True(t, uncounted[taskID], "progress without an outcome")
		delete(uncounted, taskID)
	case event.AggregateStarted, event.PipelineCompleted:
		require.Empty(t, uncounted, "outcomes that no progress has told of")
	default:
	}
}

func (c *chaos) checkRuns(t *rapid.T) {
	active := 0
	for _, r := range c.state.Runs() {
		if r.Status == conversation.Running {
			active++
		}
		if p := r.Plan; p != nil && r.Status.Terminal() {
			for _, task := range p.Steps {
				if r.Status == conversation.Completed && r.Outcome == "success" {
					require.Equal(t, plan.Done, task.State, "success means that every task has its result")
				}
			}
		}
	}
	require.LessOrEqual(t, active, 1, "one run at a time")
	if c.pending == nil && active == 0 {
		require.Zero(t, c.state.Waiting(), "a waiting run has its turn when none is on")
	}
	for _, u := range c.state.Unclaimed() {
		require.Equal(t, c.state.Active().ID, u.RunID)
	}
}
