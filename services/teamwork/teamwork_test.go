package teamwork_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/teamwork"
)

func TestATeamTellsTheTruth(t *testing.T) {
	w := newWorld(t, pair())
	require.Equal(t, event.TeamStarting, w.state.View().Status)
	w.serve()
	w.relay("Lead")
	require.Equal(t, event.TeamIdle, w.state.View().Status)
	require.True(t, w.state.Settled())

	w.do(command.SendMessage, "m1", "", command.UserMessage{Content: "hi"})
	require.Equal(t, event.TeamRunning, w.state.View().Status, "from the moment the message is accepted")
	require.Equal(t, w.events[len(w.events)-2].Sequence-1, w.state.From(), "what is on begins with the message")
	w.serve()
	w.relay("Lead")
	w.run("Lead", "run-m1", event.RunCompletedData{RunID: "run-m1", Content: "hello"})
	require.Equal(t, []string{event.TeamIdle, event.TeamRunning, event.TeamIdle}, w.statuses())

	w.do(command.SendMessage, "m2", "Coder", command.UserMessage{Content: "work"})
	require.Contains(t, w.types(0), event.TeamMemberStarted, "members start when they are needed")
	w.serve()
	w.serve()
	w.relay("Coder")
	w.run("Coder", "run-m2", event.RunFailedData{RunID: "run-m2", Message: "out of memory"})
	require.Equal(t, event.TeamFailed, w.state.View().Status)
	require.Equal(t, "Coder: out of memory", w.state.View().Error)
	require.Equal(t, w.state.Seq(), w.state.From())

	w.do(command.SendMessage, "m3", "Coder", command.UserMessage{Content: "again"})
	require.Equal(t, event.TeamFailed, w.statuses()[len(w.statuses())-2], "the error was shown until then")
	require.Equal(t, event.TeamRunning, w.state.View().Status)
}

// TestAMessageKeepsWhatItsClientSays beside the text: later requests of the client find it in the log.
func TestAMessageKeepsWhatItsClientSays(t *testing.T) {
	w := started(t, pair())
	extra := json.RawMessage(`{"agui":{"run_id":"r1"}}`)
	w.do(command.SendMessage, "m1", "", command.UserMessage{Content: "one", RunSpec: event.RunSpec{Extra: extra}})
	kept := false
	for _, e := range w.events {
		if d, err := event.As[event.TeamMessageData](e); e.Type == event.TeamMessage && err == nil && d.MessageID == "m1" {
			require.JSONEq(t, string(extra), string(d.Extra))
			kept = true
		}
	}
	require.True(t, kept)
}

func TestAPausedTeamHoldsItsMessages(t *testing.T) {
	w := started(t, pair())
	w.do(command.SendMessage, "m1", "", command.UserMessage{Content: "one"})
	w.serve()
	w.relay("Lead")
	w.do(command.PauseTeam, "p1", "", nil)
	require.Equal(t, event.TeamRunning, w.state.View().Status, "a member works")
	w.do(command.SendMessage, "m2", "", command.UserMessage{Content: "two"})
	require.Empty(t, w.state.Pending())
	w.run("Lead", "run-m1", event.RunCompletedData{RunID: "run-m1"})
	require.Equal(t, event.TeamPaused, w.state.View().Status)
	require.True(t, w.state.Settled())
	w.do(command.ResumeTeam, "p2", "", nil)
	require.Len(t, w.state.Pending(), 1)
	require.Equal(t, event.TeamRunning, w.state.View().Status)

	w.serve()
	w.relay("Lead")
	w.run("Lead", "run-m2", event.RunCompletedData{RunID: "run-m2"})

	w.do(command.PauseTeam, "p3", "", nil)
	w.do(command.SendMessage, "m3", "", command.UserMessage{Content: "three"})
	w.do(command.Cancel, "s1", "Lead", command.CancelRun{All: true})
	require.Contains(t, w.types(0), event.TeamMessageDropped)
	w.do(command.ResumeTeam, "p4", "", nil)
	require.Empty(t, w.state.Pending())
	require.Equal(t, event.TeamIdle, w.state.View().Status)
}

func TestNestedTeamsArePausedWithTheTeam(t *testing.T) {
	w := started(t, three())
	w.do(command.PauseTeam, "p0", "", nil)
	w.do(command.ResumeTeam, "r0", "", nil)
	list, _ := w.state.Unhalted()
	require.Empty(t, list, "who has no log has nothing to be told")
	w.do(command.SendMessage, "m1", "backend", command.UserMessage{Content: "work"})
	w.happens("backend", event.TeamCreatedData{TeamID: "x"})
	w.relay("backend")
	w.do(command.PauseTeam, "p1", "", nil)
	list, first := w.state.Unhalted()
	require.Len(t, list, 1)
	w.happens("backend", event.TeamPausedData{CommandID: "c"})
	w.relay("backend")
	list, _ = w.state.Unhalted()
	require.Empty(t, list)
	w.do(command.ResumeTeam, "r1", "", nil)
	list, second := w.state.Unhalted()
	require.Len(t, list, 1)
	require.Greater(t, second, first)
	w.happens("backend", event.TeamResumedData{CommandID: "d"})
	w.happens("backend", event.TeamPausedData{CommandID: "by itself"})
	w.relay("backend")
	list, _ = w.state.Unhalted()
	require.Empty(t, list, "a nested team may be paused by itself")
}

func TestATeamShutsDown(t *testing.T) {
	w := started(t, pair())
	w.do(command.SendMessage, "m1", "", command.UserMessage{Content: "one"})
	w.serve()
	w.relay("Lead")
	w.do(command.SendMessage, "m2", "Coder", command.UserMessage{Content: "never"})
	w.do(command.CloseTeam, "c1", "", command.CloseSession{})
	require.Equal(t, event.TeamShuttingDown, w.state.View().Status)
	require.Equal(t, fault.TeamClosed, fault.Code(refused(t, w.do(command.SendMessage, "m3", "", command.UserMessage{Content: "late"})).Code))
	for _, s := range w.state.Unclosed() {
		w.serve()
		w.happens(s.Name, event.MemberClosedData{Reason: "user_request"})
		w.relay(s.Name)
	}
	require.True(t, w.state.Closed())
	last := w.events[len(w.events)-1]
	require.Equal(t, event.TeamClosed, last.Type)
}

func TestMembersAreFound(t *testing.T) {
	w := started(t, three())
	for name, route := range map[string]string{
		"": "Lead", "Writer": "Writer", "backend": "backend", "backend/Boss": "backend/Boss", "Boss": "backend/Boss",
		"backend/deep/Coder": "backend/deep/Coder", "Coder": "backend/deep/Coder",
	} {
		p, err := w.state.Locate(name)
		require.NoError(t, err, name)
		require.Equal(t, route, p.Route)
		byID, err := w.state.Locate(p.ID.String())
		require.NoError(t, err)
		require.Equal(t, p, byID)
	}
	for _, bad := range []string{"Nobody", "backend/Nobody", "/", "lead"} {
		require.Equal(t, string(fault.MemberNotFound), refused(t, w.do(command.SendMessage, "x"+bad, bad, command.UserMessage{Content: "?"})).Code)
	}
	require.Len(t, w.state.View().Members, 6)
}

func TestAMessageForANestedTeamIsPendingUntilItShowsIt(t *testing.T) {
	w := started(t, three())
	w.do(command.SendMessage, "m1", "backend/deep/Coder", command.UserMessage{Content: "deep work"})
	require.Equal(t, "deep/Coder", w.state.Pending()[0].Route)
	def, parent, err := w.state.Nested("backend")
	require.NoError(t, err)
	require.Equal(t, "backend", parent.Route)
	require.Contains(t, parent.Colleagues, event.Colleague{Name: "Lead", Kind: event.MemberAgent})

	w.happens("backend", event.TeamCreatedData{TeamID: "x", Definition: def, Parent: &parent})
	w.happens("backend", event.TeamStatusData{NewStatus: event.TeamIdle, OldStatus: event.TeamStarting})
	w.relay("backend")
	require.Equal(t, event.TeamRunning, w.state.View().Status)
	w.happens("backend", event.TeamMessageData{MessageID: "m1", Member: "deep", Route: "Coder"})
	w.relay("backend")
	require.Empty(t, w.state.Pending())
	require.Equal(t, event.TeamRunning, w.state.View().Status, "between its message and its own word the nested team counts as working")
	w.happens("backend", event.TeamStatusData{NewStatus: event.TeamRunning, OldStatus: event.TeamIdle})
	w.happens("backend", event.TeamStatusData{NewStatus: event.TeamIdle, OldStatus: event.TeamRunning})
	w.relay("backend")
	require.Equal(t, []string{event.TeamIdle, event.TeamRunning, event.TeamIdle}, w.statuses())
}

func TestQuestionsAreFoundAtAnyDepth(t *testing.T) {
	w := started(t, three())
	w.do(command.SendMessage, "m1", "backend", command.UserMessage{Content: "work"})
	place, err := w.state.Locate("backend/Boss")
	require.NoError(t, err)
	asks := event.InputRequestedData{InputID: "approve_c1", Scope: event.ScopeTool, CallID: "c1", Tool: "pay"}
	raw, err := json.Marshal(event.Event{Type: event.InputRequested, Data: must(t, asks)})
	require.NoError(t, err)
	w.happens("backend", event.TeamCreatedData{TeamID: "x"})
	w.happens("backend", event.TeamMemberEventData{MemberName: "Boss", MemberID: place.ID.String(), Seq: 4, Event: raw})
	w.relay("backend")
	for _, name := range []string{"c1", "approve_c1"} {
		agent, input, ok := w.state.Question(name)
		require.True(t, ok)
		require.Equal(t, place.ID, agent)
		require.Equal(t, "approve_c1", input)
	}
	require.Nil(t, w.do(command.Answer, "r1", "Boss", command.AnswerQuestion{CallID: "c1", Approved: true}))
	require.Equal(t, string(fault.InputNotFound), refused(t, w.do(command.Answer, "r2", "Writer", command.AnswerQuestion{CallID: "c1"})).Code)
	require.Equal(t, string(fault.InputNotFound), refused(t, w.do(command.Answer, "r3", "", command.AnswerQuestion{CallID: "c9"})).Code)
}

func must(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

func TestRelayedEventsKeepEveryByte(t *testing.T) {
	w := started(t, pair())
	w.happens("Lead", event.NoticeData{Level: "info", Code: "x", Message: `<b>&"☃` + "\u2028"})
	w.relay("Lead")
	last := w.events[len(w.events)-1]
	d, err := event.As[event.TeamMemberEventData](last)
	require.NoError(t, err)
	require.Equal(t, string(w.members["Lead"][1].Raw), string(d.Event))
	require.Equal(t, uint64(2), d.Seq)
}

func TestAGapIsNoticed(t *testing.T) {
	w := started(t, pair())
	w.happens("Lead", event.RunStartedData{RunID: "r"})
	w.happens("Lead", event.RunStartedData{RunID: "r"})
	late := w.members["Lead"][2:]
	_, err := w.state.Relay("Lead", late)
	require.ErrorIs(t, err, teamwork.ErrGap)
	late[0].Expired = true
	facts, err := w.state.Relay("Lead", late)
	require.NoError(t, err)
	require.Len(t, facts, 1)
	merged := w.members["Lead"][1:2]
	merged[0].From = 1
	_, err = w.state.Relay("Lead", merged)
	require.ErrorIs(t, err, teamwork.ErrGap)
}

func TestTheBoard(t *testing.T) {
	w := started(t, pair())
	tasks := map[string]any{"tasks": []map[string]any{
		{"task_name": "design", "assignee_name": "Lead", "description": "think"},
		{"task_name": "build", "assignee_name": "Coder", "description": "type", "dependencies": []string{"design"}},
		{"id": "t9", "description": "the short form"},
	}}
	got := acted(t, w.do(command.ActTeam, "a1", "", act("Lead", "c1", command.ToolCreateTasks, tasks)))
	require.Contains(t, got.Result, "task_0002 build (for Coder)")
	board := w.state.View().Board
	require.Equal(t, []string{"task_0001"}, board[1].Dependencies)
	require.Equal(t, []string{event.BoardQueued, event.BoardNotStarted, event.BoardQueued}, []string{board[0].Status, board[1].Status, board[2].Status})
	require.Len(t, w.state.Pending(), 2, "who can begin is told")
	require.Equal(t, event.SenderSystem, w.state.Pending()[0].Sender.Kind)

	before := len(w.events)
	require.Equal(t, got, w.do(command.ActTeam, "a1-again", "", act("Lead", "c1", command.ToolCreateTasks, tasks)), "the same call once")
	require.Len(t, w.events, before)

	w.do(command.ActTeam, "a2", "", act("Lead", "c2", command.ToolUpdateTask, map[string]any{"task_id": "task_0001", "new_status": "failed"}))
	require.Equal(t, event.BoardBlocked, w.state.View().Board[1].Status)
	w.do(command.ActTeam, "a3", "", act("Lead", "c3", command.ToolUpdateTask, map[string]any{"task_name": "design", "new_status": "completed"}))
	require.Equal(t, event.BoardQueued, w.state.View().Board[1].Status)
	require.Len(t, w.state.Pending(), 3)

	more := map[string]any{"tasks": []map[string]any{{"task_name": "ship", "description": "go", "dependencies": []string{"build"}}}}
	before = len(w.events)
	w.do(command.ActTeam, "a4", "", act("Coder", "c4", command.ToolCreateTasks, more))
	require.Equal(t, []event.Type{event.BoardCreated, event.BoardUpdated, event.BoardUpdated, event.BoardUpdated}, w.types(before),
		"the whole board, then the statuses that it had")
	list := acted(t, w.do(command.ActTeam, "a5", "", act("Lead", "c5", command.ToolListTasks, nil)))
	require.Contains(t, list.Result, `"task_name":"ship"`)
}

func TestBadCallsAreRefusedWithTheReason(t *testing.T) {
	w := started(t, pair())
	for name, c := range map[string]struct {
		tool string
		args any
		code fault.Code
	}{
		"no such tool":      {"fly", nil, fault.ToolNotFound},
		"no recipient":      {command.ToolSendMessage, map[string]any{"content": "x"}, fault.ToolBadInput},
		"unknown recipient": {command.ToolSendMessage, map[string]any{"recipient_name": "Bob", "content": "x"}, fault.MemberNotFound},
		"no tasks":          {command.ToolCreateTasks, map[string]any{}, fault.ToolBadInput},
		"a circle": {command.ToolCreateTasks, map[string]any{"tasks": []map[string]any{
			{"task_name": "a", "dependencies": []string{"b"}}, {"task_name": "b", "dependencies": []string{"a"}},
		}}, fault.ToolBadInput},
		"itself":        {command.ToolCreateTasks, map[string]any{"tasks": []map[string]any{{"task_name": "a", "dependencies": []string{"a"}}}}, fault.ToolBadInput},
		"twice":         {command.ToolCreateTasks, map[string]any{"tasks": []map[string]any{{"task_name": "a"}, {"task_name": "a"}}}, fault.ToolBadInput},
		"a stranger":    {command.ToolCreateTasks, map[string]any{"tasks": []map[string]any{{"task_name": "a", "assignee_name": "Bob"}}}, fault.ToolBadInput},
		"no such task":  {command.ToolUpdateTask, map[string]any{"task_id": "task_0001", "new_status": "failed"}, fault.ToolBadInput},
		"not an object": {command.ToolUpdateTask, []int{1}, fault.ToolBadInput},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(w.events)
			got := acted(t, w.do(command.ActTeam, "a-"+name, "", act("Lead", "c-"+name, c.tool, c.args)))
			require.Equal(t, string(c.code), got.Code)
			require.NotEmpty(t, got.Message)
			require.Len(t, w.events, before)
		})
	}
}

func TestACallForTheTeamAboveIsForwarded(t *testing.T) {
	parent := &event.TeamParent{TeamID: "team_1", Node: "backend", Root: "team_1", Route: "backend", Colleagues: []event.Colleague{{Name: "Lead", Kind: "agent"}, {Name: "Coder", Kind: "agent"}}}
	w := newWorldAt(t, id.EntityFromExternal("team_1-t0"), pair(), parent)
	created, err := w.state.Agent("Coder")
	require.NoError(t, err)
	require.Equal(t, "backend/Coder", created.Route)
	require.Equal(t, []event.Colleague{{Name: "Lead", Kind: "agent"}}, created.Colleagues, "who has the same name here comes first")

	to, ok := w.state.Forward(act("Lead", "c1", command.ToolSendMessage, map[string]any{"recipient_name": "Writer", "content": "x"}))
	require.True(t, ok)
	require.Equal(t, *parent, to)
	_, ok = w.state.Forward(act("Lead", "c1", command.ToolSendMessage, map[string]any{"recipient_name": "Coder", "content": "x"}))
	require.False(t, ok)

	update := act("Lead", "c2", command.ToolUpdateTask, map[string]any{"task_id": "task_0001", "new_status": event.BoardCompleted})
	to, ok = w.state.Forward(update)
	require.True(t, ok, "a task that this team was given is on the board of the team above")
	require.Equal(t, *parent, to)
	acted(t, w.do(command.ActTeam, "a1", "", act("Lead", "c1", command.ToolCreateTasks, map[string]any{
		"tasks": []any{map[string]any{"task_name": "own", "description": "x"}},
	})))
	_, ok = w.state.Forward(update)
	require.False(t, ok, "its own board comes first")
}

// A service that dies between a message and the status that follows from it: whatever
// comes next, the status comes first.
func TestWhatIsDueComesFirst(t *testing.T) {
	w := started(t, pair())
	d, err := w.state.Decide(w.command(command.SendMessage, "m1", "", command.UserMessage{Content: "one"}), began)
	require.NoError(t, err)
	w.append(d.Facts)
	before := len(w.events)
	require.Nil(t, w.do(command.SendMessage, "m2", "", command.UserMessage{Content: "two"}))
	require.Equal(t, []event.Type{event.TeamStatus, event.TeamMessage}, w.types(before))
	got := acted(t, w.do(command.ActTeam, "a1", "", act("Lead", "c1", command.ToolSendMessage, map[string]any{"recipient_name": "Coder", "content": "x"})))
	require.Equal(t, "Message sent to Coder.", got.Result)
}
