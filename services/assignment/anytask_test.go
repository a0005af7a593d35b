package assignment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
)

// chaos drives a task through commands of clients, agents and workers, agents that
// come and go, deadlines, services that die between two events, and commands that
// come again.
type chaos struct {
	*world
	checked
	sent      int
	effective []command.Command // those that had an effect of their own: the others may have it when they come again
	pending   *command.Command  // the service died while it handled it: it comes again first
}

// effects are the events that are a verb's own; the others follow from the state.
var effects = map[id.Name][]event.Type{
	command.CreateTask:  {event.TaskCreated},
	command.MessageTask: {event.TaskMessaged},
	command.CancelTask:  {event.TaskFinished},
	command.ReportTask:  {event.TaskReported, event.TaskRefused, event.TaskFinished},
	command.NotifyTask:  {event.TaskNotified},
	command.AskTask:     {event.TaskAsked},
	command.FinishTask:  {event.TaskFinished, event.TaskRefused},
	command.ReleaseTask: {event.TaskReleased},
	command.SpawnTask:   {event.ChildCreated},
	command.EndChild:    {event.ChildFinished},
	command.CallTool:    {event.CallStarted},
	command.NotifyCall:  {event.CallNotified},
	command.EndCall:     {event.CallFinished},
}

// TestAnyTaskKeepsTheInvariants: whatever comes in whatever order, what check says
// holds after every step, and in the end the task has exactly one end.
func TestAnyTaskKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chaos{world: newWorld(t)}
		c.rules.MaxDepth = 3
		c.agents = append(c.agents, assignment.Candidate{ID: "r1", Name: "R"}) // remembered only
		c.issue(t, command.CreateTask, c.newTask(t))
		t.Repeat(map[string]func(*rapid.T){
			"client":       c.client,
			"agent":        c.byAgent,
			"agent2":       c.byAgent,
			"agent3":       c.byAgent,
			"worker":       c.worker,
			"participants": c.participants,
			"release":      c.release,
			"time":         c.time,
			"time2":        c.time,
			"repeat":       c.repeat,
			"":             c.check,
		})
		c.drain(t)
		checkShown(t, c.log)
	})
}

func (c *chaos) newTask(t *rapid.T) command.NewTask {
	d := forA()
	d.AgentName = rapid.SampledFrom([]string{"A", "A", "A", "A", "B", "B", "B", "R", "", "nobody"}).Draw(t, "name")
	d.AgentID = rapid.SampledFrom([]string{"", "", "a2", "b1", "gone"}).Draw(t, "id")
	d.Capabilities = rapid.SampledFrom([][]string{nil, {"y"}, {"y", "z"}}).Draw(t, "capabilities")
	d.TimeoutMS = rapid.SampledFrom([]int64{0, 0, 0, 600_000, 5_000}).Draw(t, "timeout")
	d.QueueMS = rapid.SampledFrom([]int64{0, 1_000, 60_000}).Draw(t, "queue")
	d.DataRef = drawRef(t)
	d.Depth = rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 4}).Draw(t, "depth")
	return d
}

// drawRef returns a reference to data that is stored, or none.
func drawRef(t *rapid.T) *event.ObjectRef {
	return rapid.SampledFrom([]*event.ObjectRef{nil, nil, {Log: "task.t1", Digest: "d1", Size: 1}, {Log: "task.t1", Digest: "d2", Size: 2}}).Draw(t, "ref")
}

// issue handles a command, perhaps with a service that dies on the way. The command
// that it had in hand is delivered again before any other: they are in order.
func (c *chaos) issue(t *rapid.T, verb id.Name, data any) {
	c.redeliver(t)
	c.sent++
	k := c.command(verb, fmt.Sprintf("c%d", c.sent), data)
	k.Request = drawRequest(t, k)
	dies := 1 << 30
	if rapid.IntRange(0, 3).Draw(t, "dies") == 0 {
		dies = rapid.IntRange(0, 2).Draw(t, "after")
	}
	c.handle(t, k, dies)
}

func (c *chaos) handle(t *rapid.T, k command.Command, dies int) {
	before, holder := len(c.log), c.state.Holder()
	done := c.carriedOut(k)
	types, whole := c.try(k, dies)
	c.fenced(t, k, holder, before)
	if done {
		c.undone(t, k, before)
	}
	if !whole {
		c.pending = &k
	}
	if len(types) > 0 && slices.Contains(effects[k.Verb], types[0]) {
		c.effective = append(c.effective, k)
	}
	c.check(t)
}

// fenced checks that what an agent says counts only if it had the task.
func (c *chaos) fenced(t *rapid.T, k command.Command, holder string, before int) {
	var d struct {
		AgentID *string `json:"agent_id"`
	}
	require.NoError(t, k.Decode(&d))
	if d.AgentID == nil || k.Verb == command.CreateTask || k.Verb == command.ReleaseTask || *d.AgentID == holder && holder != "" {
		return
	}
	for _, e := range c.log[before:] {
		own := strings.HasPrefix(e.ID, k.ID+".") || e.Type == event.CallStarted
		require.False(t, own && e.Type != event.TaskRefused, "%s by an agent that does not have the task led to %s", k.Verb, e.Type)
	}
}

func (c *chaos) redeliver(t *rapid.T) {
	if k := c.pending; k != nil {
		c.pending = nil
		c.handle(t, *k, 1<<30)
	}
}

func (c *chaos) client(t *rapid.T) {
	from := rapid.SampledFrom([]string{"c1", "c1", "c1", "c2"}).Draw(t, "from")
	if rapid.IntRange(0, 11).Draw(t, "cancel") == 0 {
		c.issue(t, command.CancelTask, command.CancelTaskData{TaskID: "t1", ClientID: from})
		return
	}
	for range rapid.IntRange(1, 3).Draw(t, "racing") {
		c.issue(t, command.MessageTask, command.TaskMessage{
			TaskID: "t1", ClientID: from, MessageType: rapid.SampledFrom([]string{"", "input_response"}).Draw(t, "type"), Message: raw,
		})
	}
}

// byAgent lets an agent speak, mostly the one that has the task.
func (c *chaos) byAgent(t *rapid.T) {
	c.redeliver(t)
	if c.state.Done() && rapid.IntRange(0, 3).Draw(t, "silent") > 0 {
		return
	}
	who := c.state.Holder()
	if who == "" || rapid.IntRange(0, 4).Draw(t, "foreign") == 0 {
		who = rapid.SampledFrom([]string{"a1", "a2", "b1", "gone", ""}).Draw(t, "who")
	}
	request := fmt.Sprint("q", rapid.IntRange(0, 3).Draw(t, "request")) // ids of frames come again
	switch rapid.IntRange(0, 19).Draw(t, "says") {
	case 11:
		c.issue(t, command.FinishTask, command.TaskResult{TaskID: "t1", AgentID: who, Result: raw, ResultRef: drawRef(t)})
	case 12:
		c.issue(t, command.FinishTask, command.TaskResult{TaskID: "t1", AgentID: who, Failed: true, Code: "OWN", Error: "no"})
	case 0, 1, 2, 3:
		status := rapid.SampledFrom([]string{"started", "started", "running", "running", "failed", "completed", assignment.Delivered}).Draw(t, "status")
		r := command.TaskReport{TaskID: "t1", AgentID: who, Status: status}
		for _, a := range c.agents {
			if a.ID == who && status == assignment.Delivered {
				r.Connection = a.Connection
			}
		}
		c.issue(t, command.ReportTask, r)
	case 4, 5:
		c.issue(t, command.NotifyTask, command.TaskNotification{TaskID: "t1", AgentID: who, Message: raw})
	case 6, 7:
		c.issue(t, command.AskTask, command.TaskQuestion{TaskID: "t1", AgentID: who, RequestID: request, Message: raw, TimeoutMS: int64(c.sent % 3)})
	case 8, 9:
		child := fmt.Sprint("child", rapid.IntRange(0, 5).Draw(t, "child"))
		c.issue(t, command.SpawnTask, command.SpawnChild{TaskID: "t1", AgentID: who, RequestID: request, ChildID: child, TargetName: "B", Data: raw})
	default:
		c.issue(t, command.CallTool, command.ToolRequest{TaskID: "t1", AgentID: who, RequestID: request, Kind: "service", Server: "s", Tool: "f"})
	}
}

// worker reports on a call or a child, also on one that has its outcome or is unknown.
func (c *chaos) worker(t *rapid.T) {
	calls, children := []string{"unknown"}, []string{"unknown"}
	for _, e := range c.log {
		switch e.Type {
		case event.CallStarted:
			calls = append(calls, decode[event.CallStartedData](t, e).CallID)
		case event.ChildCreated:
			children = append(children, decode[event.ChildCreatedData](t, e).ChildID)
		default:
		}
	}
	callID := rapid.SampledFrom(calls).Draw(t, "call")
	switch rapid.IntRange(0, 2).Draw(t, "worker") {
	case 0:
		c.issue(t, command.NotifyCall, event.CallNotifiedData{CallID: callID, Message: "m", At: c.now})
	case 1:
		c.issue(t, command.EndCall, event.CallFinishedData{
			CallID: callID, Status: rapid.SampledFrom([]string{"success", "error", "unknown"}).Draw(t, "outcome"), Result: raw,
		})
	case 2:
		c.issue(t, command.EndChild, event.ChildFinishedData{ChildID: rapid.SampledFrom(children).Draw(t, "child"), Status: "completed"})
	}
}

// participants lets an agent come, go, or change.
func (c *chaos) participants(t *rapid.T) {
	a := &c.agents[rapid.IntRange(0, len(c.agents)-1).Draw(t, "agent")]
	switch rapid.IntRange(0, 4).Draw(t, "becomes") {
	case 0:
		a.Online, a.Away = false, true
	case 1:
		a.Online, a.Away = false, false
	case 2:
		a.Status = rapid.SampledFrom([]string{command.StatusActive, command.StatusBusy, command.StatusMaintenance}).Draw(t, "status")
		a.Full = rapid.Bool().Draw(t, "full")
	default:
		a.Online, a.Away, a.Status, a.Full, a.Since = true, false, command.StatusActive, false, c.now
		a.Joined, a.Connection = c.now, fmt.Sprint(len(c.log), c.sent)
	}
	a.Load = rapid.IntRange(0, 2).Draw(t, "load")
	if rapid.Bool().Draw(t, "told") {
		c.issue(t, command.CheckTask, nil)
	}
}

func (c *chaos) release(t *rapid.T) {
	c.redeliver(t)
	c.do(command.CheckTask, "", nil)
	h, n := c.state.Head(), len(c.log)
	late := rapid.IntRange(0, 3).Draw(t, "late") == 0
	d := command.AgentGone{TaskID: "t1", AgentID: h.AgentID, Attempt: h.Attempt}
	if late {
		d.Attempt--
	}
	d.Reason = rapid.SampledFrom([]string{"agent_lost", "not_delivered", ""}).Draw(t, "reason")
	c.issue(t, command.ReleaseTask, d)
	require.False(t, late && len(c.log) > n, "another attempt is not touched")
}

func (c *chaos) time(t *rapid.T) {
	c.now = c.now.Add(time.Duration(rapid.IntRange(1, 60_000).Draw(t, "ms")) * time.Millisecond)
	if due := c.state.Due(c.env()); !due.IsZero() && !due.After(c.now) {
		c.issue(t, command.CheckTask, nil)
	}
}

// repeat delivers an old command once more, long after it was done. When nothing is
// due by itself, nothing happens.
func (c *chaos) repeat(t *rapid.T) {
	c.redeliver(t)
	if len(c.effective) == 0 {
		return
	}
	c.do(command.CheckTask, "", nil)
	among := c.effective
	if held := c.byHolder(t); len(held) > 0 {
		among = held
	}
	k := rapid.SampledFrom(among).Draw(t, "which")
	types, _ := c.try(k, 1<<30)
	require.Empty(t, types, "a repeated %s changes nothing", k.Verb)
}

// byHolder returns what the agent that has the task reported before: perhaps when it
// did not have it.
func (c *chaos) byHolder(t *rapid.T) []command.Command {
	var out []command.Command
	for _, k := range c.effective {
		var d struct {
			AgentID string `json:"agent_id"`
		}
		require.NoError(t, k.Decode(&d))
		if (k.Verb == command.FinishTask || k.Verb == command.ReportTask) && d.AgentID == c.state.Holder() && c.state.Holder() != "" {
			out = append(out, k)
		}
	}
	return out
}

// drain lets everything come to its end: agents that are there succeed, and time passes.
func (c *chaos) drain(t *rapid.T) {
	c.redeliver(t)
	for i := range c.agents {
		c.agents[i].Away = false // places are not kept for ever
	}
	for n := 0; !c.state.Done(); n++ {
		require.Less(t, n, 100, "every task comes to its end")
		if who := c.state.Holder(); who != "" && c.agent(who).Online {
			c.do(command.FinishTask, fmt.Sprint("drain", n), command.TaskResult{TaskID: "t1", AgentID: who, Result: raw})
		} else {
			c.due()
		}
		c.check(t)
	}
	require.Equal(t, c.state.Children(), c.state.Orphans(), "what is open below a task that ended is of no use")
	for _, child := range c.state.Children() {
		c.do(command.EndChild, "drain."+child, event.ChildFinishedData{ChildID: child, Status: "cancelled"})
	}
	require.Empty(t, c.state.Children())
	require.Empty(t, c.state.Pending())
	c.check(t)
	require.Equal(t, 1, c.ends, "the task has one end")
	c.replay(t)
}

// replay folds the log anew: who comes later sees the same.
func (c *chaos) replay(t *rapid.T) {
	var again assignment.State
	for _, e := range c.log {
		require.NoError(t, again.Apply(e))
	}
	require.Equal(t, c.state, again)
}

func decode[T event.Data](t require.TestingT, e event.Event) T {
	d, err := event.As[T](e)
	require.NoError(t, err)
	return d
}
