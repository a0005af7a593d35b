package assignment_test

import (
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/assignment"
)

// checked is what check knows of the events that it has looked at, worked out from
// the events alone.
type checked struct {
	upTo     int
	ends     int
	ids      map[string]bool
	requests map[string]bool
	holder   string
	attempt  int
	asking   bool            // a question is open
	calls    map[string]bool // true while open
	children map[string]bool
	lastEnd  event.TaskFinishedData
}

// check holds after every step, whatever came before.
func (c *chaos) check(t *rapid.T) {
	if c.ids == nil {
		c.ids, c.calls, c.children = map[string]bool{}, map[string]bool{}, map[string]bool{}
		c.requests = map[string]bool{}
	}
	for ; c.upTo < len(c.log); c.upTo++ {
		e := c.log[c.upTo]
		require.False(t, c.ids[e.ID], "event id %s is used twice", e.ID)
		c.ids[e.ID] = true
		require.False(t, e.Request != "" && c.requests[e.Request], "%s is carried out twice", e.Request)
		c.requests[e.Request] = true
		require.Equal(t, c.upTo == 0, e.Type == event.TaskCreated, "a log begins with its task, once")
		if c.ends > 0 {
			require.Contains(t, []event.Type{event.TaskRefused, event.ChildFinished, event.CallFinished}, e.Type, "after the end")
		}
		c.followHolder(t, e)
		c.followQuestion(t, e)
		c.followBelow(t, e)
	}
	c.checkState(t)
}

// followHolder checks which agent holds the task, and that events of other agents have no effect.
func (c *chaos) followHolder(t *rapid.T, e event.Event) {
	var h event.TaskHead
	require.NoError(t, e.Decode(&h))
	require.Equal(t, "t1", h.TaskID)
	require.Equal(t, "c1", h.ClientID)
	switch e.Type {
	case event.TaskAssigned:
		given, asked := decode[event.TaskAssignedData](t, e), c.state.Task()
		require.Equal(t, asked.DataRef, given.DataRef, "what is stored of the task goes to its agent")
		require.JSONEq(t, string(asked.Data), string(given.Data))
		require.Empty(t, c.holder, "one agent at a time")
		require.Equal(t, c.attempt+1, h.Attempt, "attempts count up")
		require.LessOrEqual(t, h.Attempt, c.rules.Tries)
		a := c.agent(h.AgentID)
		require.True(t, a.Online && !a.Full && a.Status != command.StatusMaintenance, "only an agent that takes tasks is given one")
		c.holder, c.attempt = h.AgentID, h.Attempt
	case event.TaskReleased:
		c.ours(t, e, h)
		c.holder = ""
	case event.TaskReported, event.TaskNotified, event.TaskAsked, event.ChildCreated, event.CallStarted, event.CallNotified:
		c.ours(t, e, h)
	case event.TaskRefused:
		d := decode[event.TaskRefusedData](t, e)
		require.True(t, c.ends > 0 || c.holder == "" || d.By != c.holder, "who has the task is heard")
		c.notBoth(t, strings.TrimSuffix(e.ID, ".refused"))
	case event.TaskFinished:
		c.lastEnd = decode[event.TaskFinishedData](t, e)
		c.notBoth(t, strings.TrimSuffix(strings.TrimSuffix(e.ID, ".result"), ".reported-failed"))
		require.Equal(t, c.lastEnd.ResultRef, c.state.View().ResultRef)
		if c.lastEnd.Status == assignment.StatusCompleted {
			c.ours(t, e, h)
		} else {
			require.NotEmpty(t, c.lastEnd.Code)
			require.NotEmpty(t, c.lastEnd.Error)
		}
		c.ends++
		c.holder = ""
	default:
	}
}

// notBoth checks that what a command said was either taken or refused.
func (c *chaos) notBoth(t *rapid.T, commandID string) {
	taken := c.ids[commandID+".result"] || c.ids[commandID+".reported-failed"]
	require.False(t, taken && c.ids[commandID+".refused"], "%s is taken or refused", commandID)
}

func (c *chaos) ours(t *rapid.T, e event.Event, h event.TaskHead) {
	require.NotEmpty(t, c.holder, "%s: somebody has the task", e.Type)
	require.Equal(t, c.holder, h.AgentID, "%s comes from who has the task", e.Type)
	require.Equal(t, c.attempt, h.Attempt, "%s belongs to the newest attempt", e.Type)
}

func (c *chaos) followQuestion(t *rapid.T, e event.Event) {
	switch e.Type {
	case event.TaskAsked:
		require.False(t, c.asking, "one question at a time")
		c.asking = true
	case event.TaskMessaged:
		answers := decode[event.TaskMessagedData](t, e).InputID != ""
		require.Equal(t, c.asking, answers, "a message is the answer while a question is open, and else none")
		c.asking = false
	case event.TaskAskExpired:
		require.True(t, c.asking, "only an open question expires")
		c.asking = false
	case event.TaskReleased, event.TaskFinished:
		c.asking = false
	default:
	}
}

// followBelow checks that calls and children have their intent first and one outcome.
func (c *chaos) followBelow(t *rapid.T, e event.Event) {
	switch e.Type {
	case event.CallStarted:
		c.begin(t, c.calls, decode[event.CallStartedData](t, e).CallID)
	case event.CallNotified:
		require.True(t, c.calls[decode[event.CallNotifiedData](t, e).CallID])
	case event.CallFinished:
		d := decode[event.CallFinishedData](t, e)
		require.True(t, c.calls[d.CallID], "one outcome")
		require.Equal(t, "f", d.Tool)
		c.calls[d.CallID] = false
	case event.ChildCreated:
		c.begin(t, c.children, decode[event.ChildCreatedData](t, e).ChildID)
	case event.ChildFinished:
		d := decode[event.ChildFinishedData](t, e)
		require.True(t, c.children[d.ChildID], "one outcome")
		c.children[d.ChildID] = false
	default:
	}
}

func (c *chaos) begin(t *rapid.T, all map[string]bool, key string) {
	_, known := all[key]
	require.False(t, known, "%s is begun once", key)
	all[key] = true
}

// checkState compares the fold with what was worked out here.
func (c *chaos) checkState(t *rapid.T) {
	s := &c.state
	if len(c.log) == 0 {
		require.Empty(t, s.Status())
		return
	}
	require.LessOrEqual(t, c.ends, 1, "one end")
	require.Equal(t, c.ends == 1, s.Done())
	require.Equal(t, c.holder, s.Holder())
	require.Equal(t, c.attempt, s.Head().Attempt)
	require.Equal(t, c.asking, s.Question() != "")
	require.Equal(t, count(c.children), len(s.Children()))
	require.LessOrEqual(t, len(s.Pending()), count(c.calls))
	require.Equal(t, s.Done(), s.Due(c.env()).IsZero(), "an open task is never forgotten")
	switch {
	case s.Done():
		require.Equal(t, c.lastEnd.Status, s.Status())
	case c.asking:
		require.Equal(t, assignment.StatusWaitingInput, s.Status())
	case c.holder != "":
		require.Equal(t, assignment.StatusRunning, s.Status())
	default:
		require.Contains(t, []string{assignment.StatusCreated, assignment.StatusQueued}, s.Status())
	}
	if c.pending == nil && !s.Done() {
		require.NotEqual(t, assignment.StatusCreated, s.Status(), "a task that nobody can take yet is queued")
	}
	if c.holder != "" {
		require.Equal(t, !c.spoke(), s.Undelivered() != nil, "who was not heard of is given the task again")
	}
}

// spoke reports whether the agent that has the task was heard of.
func (c *chaos) spoke() bool {
	for i := len(c.log) - 1; c.log[i].Type != event.TaskAssigned; i-- {
		switch c.log[i].Type {
		case event.TaskReported, event.TaskNotified, event.TaskAsked, event.ChildCreated, event.CallStarted:
			return true
		default:
		}
	}
	return false
}

func count(all map[string]bool) int {
	n := 0
	for _, open := range all {
		if open {
			n++
		}
	}
	return n
}
