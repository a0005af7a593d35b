package flows

import (
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

const wrong = myagent.ErrorValidation

// about is a frame with a content.
func about(v any) map[string]any { return map[string]any{"content": v} }

func mistakes() []Flow {
	return []Flow{
		{Name: "wrong_json", About: "Invalid frames, before and after the session is open.", Demo: true, Play: func(s *Scene) {
			m := s.Dial("client")
			for _, raw := range []string{
				`[1`, `[]`, `"hello"`, ``, `{"event":7}`, `{"event":"user.dance","session_id":"x"}`, `{"event":"user.message","content":"hello"}`,
				`{"event":"user.message","session_id":"a b","content":"hello"}`, `{"event":"user.message","event":"user.ack","session_id":"a"}`,
			} {
				m.Raw(raw)
				m.Await(wrong)
			}
		}},
		{Name: "wrong_message", About: "Questions that say nothing or too much.", Demo: true, Play: func(s *Scene) {
			m := s.Open(nil)
			for _, members := range []map[string]any{
				{},
				about(""), about(" \n"), about(7), about(map[string]any{"question": ""}), about(strings.Repeat("é", myagent.MaxContent+1)),
				{"content": "hello", "metadata": "web"},
				{"content": "hello", "metadata": map[string]any{"on_busy": "wait"}},
				{"content": "hello", "metadata": map[string]any{"confirm_plan": "yes"}},
				{"content": "hello", "metadata": map[string]any{"client_id": "a b"}},
				{"content": "hello", "metadata": map[string]any{"timeout_seconds": 0}},
				{"content": "hello", "metadata": map[string]any{"max_concurrent": 1.5}},
			} {
				m.Wrong(myagent.UserMessage, members, wrong)
			}
			m.Send(myagent.UserMessage, map[string]any{"content": strings.Repeat("é", myagent.MaxContent-14) + "; what is 2+3?", "metadata": confirmed})
			m.Await(myagent.AgentUserConfirm)
		}},
		{Name: "wrong_tasks", About: "Invalid lists of tasks.", Demo: true, Play: func(s *Scene) {
			m := s.Open(nil)
			task := func(id, title any) map[string]any { return map[string]any{"id": id, "title": title} }
			many := make([]any, myagent.MaxTasks+1)
			for i := range many {
				many[i] = task(fmt.Sprint("t", i), "T")
			}
			for _, tasks := range []any{
				nil, "none",
				[]any{},
				many,
				[]any{7},
				[]any{task("", "T")},
				[]any{task("a b", "T")},
				[]any{task(strings.Repeat("a", myagent.MaxID+1), "T")},
				[]any{task("a", "")},
				[]any{task("a", 7)},
				[]any{map[string]any{"id": "a", "title": "T", "dependencies": "b"}},
				[]any{map[string]any{"id": "a", "title": "T", "dependencies": []any{"b b"}}},
				[]any{map[string]any{"id": "a", "title": "T", "priority": -1}},
			} {
				m.Wrong(myagent.UserSolveTasks, about(map[string]any{"tasks": tasks}), wrong)
			}
			m.Wrong(myagent.UserSolveTasks, about(map[string]any{"tasks": []any{task("a", "T"), task("a", "U")}}), myagent.PlanCoercionError, myagent.AgentError)
		}},
	}
}

func otherMistakes() []Flow {
	return []Flow{
		{Name: "wrong_others", About: "Mistakes in the other events.", Demo: true, Play: func(s *Scene) {
			m := s.Open(nil)
			for _, f := range []struct {
				event   string
				members map[string]any
			}{
				{myagent.UserResponse, about(map[string]any{"approved": true})},
				{myagent.UserResponse, map[string]any{"step_id": "plan_confirm_1", "content": map[string]any{"approved": "yes"}}},
				{myagent.UserResponse, map[string]any{"step_id": "plan_confirm_1"}},
				{myagent.UserCancelTask, nil},
				{myagent.UserCancelTask, about(map[string]any{"task_id": "a b"})},
				{myagent.UserRestartTask, map[string]any{"content": map[string]any{"task_id": "a"}, "metadata": map[string]any{"max_attempts": 11}}},
				{myagent.UserReplan, about([]int{1})},
				{myagent.UserReconnectWithState, about(map[string]any{"last_seq": "three"})},
				{myagent.UserReconnectWithState, about(map[string]any{"last_event_id": "three"})},
				{myagent.UserReconnectWithState, map[string]any{"signed_state": "x"}},
				{myagent.UserRequestState, map[string]any{"metadata": map[string]any{"include_history": 1}}},
				{myagent.UserRequestState, map[string]any{"metadata": map[string]any{"max_history_events": 1001}}},
				{myagent.UserCreateSession, about("me")},
				{myagent.UserCreateSession, map[string]any{"metadata": map[string]any{"on_busy": "wait"}}},
			} {
				m.Wrong(f.event, f.members, wrong)
			}
		}},
	}
}
