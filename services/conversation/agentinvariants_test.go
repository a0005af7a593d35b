package conversation_test

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// watched is what check knows of the events that it has looked at.
type watched struct {
	upTo      int
	seen      map[string]bool
	questions []event.InputRequestedData
	byCall    map[string]event.InputRequestedData
	decisions map[string]string // by call
	ends      map[string]int    // by run
	todos     map[string]bool
	closed    bool
}

// check holds after every step, whatever came before.
func (m *member) check(t *rapid.T) {
	if m.seen == nil {
		m.seen, m.byCall, m.decisions = map[string]bool{}, map[string]event.InputRequestedData{}, map[string]string{}
		m.ends, m.todos = map[string]int{}, map[string]bool{}
	}
	for _, e := range m.log[m.upTo:] {
		require.False(t, m.seen[e.ID], "event id %s is used twice", e.ID)
		m.seen[e.ID] = true
		m.look(t, e)
	}
	m.upTo = len(m.log)
	active := 0
	for _, r := range m.state.Runs() {
		if r.Status == conversation.Running {
			active++
		}
	}
	require.LessOrEqual(t, active, 1, "one run at a time")
	if m.pending == nil && active == 0 {
		require.Zero(t, m.state.Waiting(), "a waiting run has its turn when none is on")
	}
	if m.auto {
		require.Empty(t, m.questions, "nobody is asked about what runs by itself")
	}
}

func (m *member) look(t *rapid.T, e event.Event) {
	var d struct {
		RunID  string `json:"run_id"`
		CallID string `json:"call_id"`
		Digest string `json:"digest"`
		Tool   string `json:"tool"`
	}
	require.NoError(t, e.Decode(&d))
	if d.RunID != "" {
		require.Zero(t, m.ends[d.RunID], "%s after the end of its run", e.Type)
	}
	if e.Type.Terminal() {
		m.ends[d.RunID]++
	}
	switch e.Type {
	case event.InputRequested:
		q, err := event.As[event.InputRequestedData](e)
		require.NoError(t, err)
		require.NotContains(t, m.byCall, d.CallID, "a call is asked about once")
		m.questions, m.byCall[d.CallID] = append(m.questions, q), q
	case event.InputAnswered:
		a, err := event.As[event.InputAnsweredData](e)
		require.NoError(t, err)
		require.NotContains(t, m.decisions, d.CallID, "a question has one answer")
		require.Equal(t, m.byCall[d.CallID].Tool, a.Tool)
		m.decisions[d.CallID] = a.Decision
	case event.ToolCalled:
		if !m.auto && !conversation.TeamTool(d.Tool) {
			require.Equal(t, event.DecisionApprove, m.decisions[d.CallID], "%s runs without approval", d.Tool)
			require.Equal(t, m.byCall[d.CallID].Digest, d.Digest, "the approval is of another call")
		}
	case event.TodosUpdated:
		require.NotContains(t, m.todos, d.CallID, "a call changes the list once")
		m.todos[d.CallID] = true
	case event.MessageReceived:
		require.False(t, m.closed, "a message was accepted after the end")
	case event.MemberClosed:
		require.False(t, m.closed)
		m.closed = true
	default:
	}
	if e.Type == event.ToolCalled || e.Type == event.ToolStarted || e.Type == event.ToolCompleted {
		require.NotEqual(t, event.DecisionReject, m.decisions[d.CallID], "a denied call runs")
	}
}
