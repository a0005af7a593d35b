package demo_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/demo"
)

// inTeam offers the tools of a team with three others in it.
func inTeam(messages ...model.Message) model.Request {
	return model.Request{
		Messages: messages, NewID: func() string { return "call" }, Now: time.Unix(0, 0),
		Tools: teamTools("Ann", "Ann Marie", "library"),
	}
}

func teamTools(others ...string) []model.ToolSpec {
	names := `{"type":"string","enum":["` + strings.Join(others, `","`) + `"]}`
	return []model.ToolSpec{
		{Name: "send_message_to", InputSchema: json.RawMessage(`{"type":"object","properties":{"recipient_name":` + names + `,"content":{"type":"string"}}}`)},
		{Name: "create_tasks", InputSchema: json.RawMessage(`{"type":"object","properties":{"tasks":{"type":"array","items":{"type":"object","properties":{"assignee_name":` + names + `}}}}}`)},
		{Name: "update_task_status", InputSchema: json.RawMessage(`{"type":"object","properties":{"new_status":{"type":"string","enum":["completed"]}}}`)},
	}
}

func user(text string) model.Message { return model.Message{Role: model.RoleUser, Content: text} }

// play lets the model work until it says a text, and returns its calls and the text.
func play(t *testing.T, req model.Request) (calls []string, said string, history []model.Message) {
	t.Helper()
	for range 10 {
		reply, err := demo.New().Generate(t.Context(), req, model.Text(func(string) error { return nil }))
		require.NoError(t, err)
		if len(reply.ToolCalls) == 0 {
			return calls, reply.Text, append(req.Messages, model.Message{Role: model.RoleAssistant, Content: reply.Text})
		}
		req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, ToolCalls: reply.ToolCalls})
		for _, c := range reply.ToolCalls {
			calls = append(calls, c.Name+" "+string(c.Arguments))
			req.Messages = append(req.Messages, model.Message{Role: model.RoleTool, ToolCallID: c.ID, Content: "done"})
		}
	}
	require.Fail(t, "it never ends")
	return nil, "", nil
}

func TestAMemberAsksOthers(t *testing.T) {
	calls, said, _ := play(t, inTeam(user("please ask Ann what is 2*3, and ask the library: what does notes.md say? What is 1+1?")))
	require.Equal(t, []string{
		`send_message_to {"content":"what is 2*3","recipient_name":"Ann"}`,
		`send_message_to {"content":"what does notes.md say","recipient_name":"library"}`,
	}, calls)
	require.Equal(t, "I have asked Ann.\n\nI have asked library.\n\n1+1 = 2", said)
	calls, _, _ = play(t, inTeam(user("ask ann marie to count to 3")))
	require.Equal(t, []string{`send_message_to {"content":"count to 3","recipient_name":"Ann Marie"}`}, calls)
	calls, said, _ = play(t, inTeam(user("ask Bob to sing")))
	require.Empty(t, calls)
	require.Contains(t, said, "I do not understand")
}

func TestAMemberAnswersOthers(t *testing.T) {
	calls, said, _ := play(t, inTeam(user("Message from Ann (role: boss):\n\nwhat is 6*7?")))
	require.Equal(t, []string{`send_message_to {"content":"Answer: 6*7 = 42","message_type":"answer","recipient_name":"Ann"}`}, calls)
	require.Equal(t, "6*7 = 42", said)
	calls, said, _ = play(t, inTeam(user("Message from Ann:\n\nAnswer: ask library what it is")))
	require.Empty(t, calls, "an answer asks for nothing")
	require.Equal(t, "Ann answers: ask library what it is", said)
}

func TestAnswersAreHandedOn(t *testing.T) {
	calls, said, history := play(t, inTeam(user("Message from Ann:\n\nask library what is 6*7")))
	require.Len(t, calls, 1)
	require.Equal(t, "I have asked library.", said)
	calls, said, _ = play(t, inTeam(append(history, user("Message from library:\n\nAnswer: 42"))...))
	require.Equal(t, []string{`send_message_to {"content":"Answer: library answers: 42","message_type":"answer","recipient_name":"Ann"}`}, calls)
	require.Equal(t, "library answers: 42", said)

	_, _, history = play(t, inTeam(user("ask library what is 6*7")))
	calls, _, _ = play(t, inTeam(append(history, user("Message from library:\n\nAnswer: 42"))...))
	require.Empty(t, calls, "a user reads it here")
}

func TestTasksOfTheBoardAreDone(t *testing.T) {
	calls, said, _ := play(t, inTeam(user("give Ann the task to count to 3")))
	require.Equal(t, []string{`create_tasks {"tasks":[{"assignee_name":"Ann","description":"count to 3","task_name":"count to 3"}]}`}, calls)
	require.Equal(t, "I have given the task to Ann.", said)
	calls, said, _ = play(t, inTeam(user("Notification from the system:\n\nThe task task_0001 (count) is yours and can be started.\n\ncount to 3\n\nSet its status with update_task_status: x.")))
	require.Equal(t, []string{`update_task_status {"new_status":"completed","task_id":"task_0001"}`}, calls)
	require.Equal(t, "1 2 3", said)
}
