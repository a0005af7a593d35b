package flows

import (
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// All returns every flow.
func All() []Flow {
	var all []Flow
	for _, list := range [][]Flow{
		sessions(), messages(), confirmations(), lateAnswers(), plans(), replans(), solving(), failures(), control(), stops(), busy(),
		resumption(), positions(), onlookers(), states(), mistakes(), otherMistakes(), consoles(),
	} {
		all = append(all, list...)
	}
	return all
}

// Ends of runs.
const (
	answer = myagent.AgentFinalAnswer
	ended  = myagent.AgentSessionEnd
)

var confirmed = map[string]any{"confirm_plan": true}

func sessions() []Flow {
	return []Flow{
		{
			Name: "session_zh", About: "A session is made in Chinese, which is the default, and asked something.", Demo: true,
			Play: func(s *Scene) {
				m := s.Dial("client")
				m.Create("zh_CN", nil)
				m.Ask("what is 2+3?", nil)
				m.Await(answer)
			},
		},
		{
			Name: "session_en", About: "A session is made in English, with everything that a client may say about itself.", Demo: true,
			Play: func(s *Scene) {
				m := s.Dial("browser")
				m.Send(myagent.UserCreateSession, map[string]any{
					"content": map[string]any{
						"client_id": "browser_1", "client_version": "1.0.0", "user_id": "user_1",
						"preferences": map[string]any{"language": "en_US", "theme": "dark"},
					},
					"metadata": map[string]any{"source": "web", "on_busy": "enqueue", "confirm_plan": false},
				})
				m.Await(myagent.AgentSessionCreated)
			},
		},
		{
			Name: "session_two", About: "Two sessions on one socket, each with its own seqs.", Demo: true,
			Play: func(s *Scene) {
				m := s.Open(nil)
				m.Ask("what is 2+3?", nil)
				m.Await(answer)
				m.Create("zh_CN", nil)
				m.Ask("what is 2+3?", nil)
				m.Await(answer)
			},
		},
	}
}

func messages() []Flow {
	play := func(question string) func(s *Scene) {
		return func(s *Scene) {
			m := s.Open(nil)
			m.Ask(question, map[string]any{"source": "web_console", "client_id": "client_1", "tags": []string{"urgent"}})
			m.Await(answer)
		}
	}
	return []Flow{
		{Name: "message_one", About: "A question that makes one task, solved with a tool.", Demo: true, Play: play("read notes.md")},
		{
			Name: "message_two", About: "A question that makes two tasks, the second of which needs the first.", Demo: true,
			Play: play("list the files; then read notes.md"),
		},
		{
			Name: "message_four", About: "A question that makes three tasks that stand side by side, and one that needs them all.", Demo: true,
			Concurrent: true, Play: play("what is 2+3?; what is 7*6?; list the files; finally read notes.md"),
		},
		{
			Name: "message_object", About: "The question as a member of the content, as some clients send it, with metadata.parallelizable false.", Demo: true,
			Play: func(s *Scene) {
				m := s.Open(nil)
				m.Send(myagent.UserMessage, map[string]any{
					"content":  map[string]any{"question": "what is 2+3?; what is 7*6?"},
					"metadata": map[string]any{"parallelizable": false},
				})
				m.Await(answer)
			},
		},
		{
			Name: "message_again", About: "A second question in the same session, which the planner sees the first one with.", Demo: true,
			Play: func(s *Scene) {
				m := s.Open(nil)
				m.Ask("what is 2+3?", nil)
				m.Await(answer)
				m.Ask("what is 7*6?", nil)
				m.Await(answer)
			},
		},
	}
}

// asked makes a session that confirms plans, asks for two tasks and returns the step
// of the question.
func asked(s *Scene) (*Socket, string) {
	m := s.Open(confirmed)
	m.Ask("what is 2+3?; what is 7*6?", map[string]any{"max_concurrent": 1})
	return m, m.Await(myagent.AgentUserConfirm)[0].StepID
}

func confirmations() []Flow {
	respond := func(content map[string]any) func(s *Scene) {
		return func(s *Scene) {
			m, step := asked(s)
			m.Respond(step, content)
			m.Await(answer)
		}
	}
	one := []any{map[string]any{"id": "mine", "title": "what is 1+1?"}}
	return []Flow{
		{Name: "confirm_approve", About: "The plan is approved.", Demo: true, Play: respond(map[string]any{"approved": true, "feedback": "Looks good, proceed"})},
		{Name: "confirm_approve_console", About: "The plan is approved as the console does it: confirmed, with the list of tasks unchanged.", Demo: true, Play: func(s *Scene) {
			m := s.Open(confirmed)
			m.Ask("what is 2+3?", nil)
			q := m.Await(myagent.AgentUserConfirm)[0]
			m.Respond(q.StepID, map[string]any{"confirmed": true, "tasks": sdk.As[myagent.ConfirmMeta](q.Metadata).Tasks})
			m.Await(answer)
		}},
		{Name: "confirm_modified_tasks", About: "One task is changed: modified_tasks overrides fields of the task with that id.", Demo: true, Play: respond(map[string]any{
			"approved": true, "modified_tasks": []any{map[string]any{"id": "task_2", "title": "what is 10-1?", "description": "what is 10-1?"}},
		})},
		{Name: "confirm_tasks", About: "The client replaces the list of tasks.", Demo: true, Play: respond(map[string]any{"confirmed": true, "tasks": one})},
		{Name: "confirm_modified_badly", About: "A change that leaves an invalid list of tasks, or changes an unknown task, keeps the question open. Then the plan is approved.", Demo: true, Play: func(s *Scene) {
			m, step := asked(s)
			m.Respond(step, map[string]any{"confirmed": true, "tasks": []any{map[string]any{"id": "x", "title": "X", "dependencies": []string{"unknown"}}}})
			m.Await(myagent.PlanCoercionError)
			m.Respond(step, map[string]any{"approved": true, "modified_tasks": []any{map[string]any{"id": "unknown", "title": "X"}}})
			m.Await(myagent.PlanCoercionError)
			m.Respond(step, map[string]any{"confirmed": true, "tasks": "none"})
			m.Await(myagent.PlanCoercionError)
			m.Respond(step, map[string]any{"approved": true})
			m.Await(answer)
		}},
		{Name: "confirm_reject", About: "The plan is rejected, with the reason.", Demo: true, Play: respond(map[string]any{"approved": false, "feedback": "too expensive"})},
	}
}

func lateAnswers() []Flow {
	return []Flow{
		{Name: "confirm_timeout", About: "The question expires. A late answer is refused.", Demo: true, Hasty: true, Play: func(s *Scene) {
			m, step := asked(s)
			m.Await(answer)
			m.Respond(step, map[string]any{"approved": true})
			m.Await(myagent.AgentError)
		}},
		{Name: "confirm_twice", About: "A second answer, from another device, comes too late and is told whose counted.", Demo: true, Play: func(s *Scene) {
			m, step := asked(s)
			m.Send(myagent.UserResponse, map[string]any{
				"step_id": step, "content": map[string]any{"approved": true}, "metadata": map[string]any{"client_id": "client_1", "response_time_ms": 5000},
			})
			m.Await(answer)
			phone := s.Dial("phone")
			phone.Use()
			phone.Send(myagent.UserResponse, map[string]any{
				"step_id": step, "content": map[string]any{"approved": false}, "metadata": map[string]any{"client_id": "phone_1"},
			})
			phone.Await(myagent.AgentError)
		}},
		{Name: "confirm_unknown_step", About: "Answers to unknown questions.", Demo: true, Play: func(s *Scene) {
			m, _ := asked(s)
			m.Respond("plan_confirm_1", map[string]any{"approved": true})
			m.Await(myagent.ErrorValidation)
		}},
		{Name: "confirm_per_message", About: "A session without confirmation, and one message with it.", Demo: true, Play: func(s *Scene) {
			m := s.Open(nil)
			m.Ask("what is 2+3?", confirmed)
			q := m.Await(myagent.AgentUserConfirm)[0]
			m.Respond(q.StepID, map[string]any{"approved": true})
			m.Await(answer)
		}},
	}
}

func plans() []Flow {
	ask := func(question string, metadata map[string]any, want ...string) func(s *Scene) {
		return func(s *Scene) {
			m := s.Open(nil)
			m.Ask(question, metadata)
			m.Await(want...)
		}
	}
	return []Flow{
		{Name: "plan_bad_then_good", About: "The planner's first answer is invalid, its second is a plan.", Play: ask("plan badly once; say one", nil, answer)},
		{Name: "plan_circle_then_good", About: "The tasks of the first plan depend on each other.", Play: ask("plan a circle once; say one; then say two", nil, answer)},
		{Name: "plan_bad", About: "The planner never makes a plan: after two more tries it is given up.", Play: ask("plan badly", nil, myagent.AgentError)},
		{Name: "plan_cancelled", About: "The plan is cancelled while it is made: user.cancel_plan.", Play: func(s *Scene) {
			key := "plan_cancelled"
			m := s.Open(nil)
			m.Ask("hold plan "+key+"; say one", nil)
			m.awaitPiece(myagent.AgentThinking)
			m.Send(myagent.UserCancelPlan, nil)
			m.Await(answer, "system.notice cancel_plan")
		}},
		{Name: "plan_cancelled_confirming", About: "The plan is cancelled while it waits to be confirmed.", Demo: true, Play: func(s *Scene) {
			m, _ := asked(s)
			m.Send(myagent.UserCancelPlan, nil)
			m.Await(answer, "system.notice cancel_plan")
			m.Send(myagent.UserCancelPlan, nil)
			m.Await("system.notice cancel_plan")
		}},
	}
}

func replans() []Flow {
	return []Flow{
		{Name: "replan_planning", About: "Another plan is asked for while one is made.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Ask("hold plan replan_planning; say one", nil)
			m.awaitPiece(myagent.AgentThinking)
			m.Send(myagent.UserReplan, map[string]any{"content": map[string]any{"question": "say two"}})
			m.Await(answer, "system.notice replan")
		}},
		{Name: "replan_confirming", About: "Another plan is asked for in place of the one that waits to be confirmed.", Demo: true, Play: func(s *Scene) {
			m, step := asked(s)
			m.Send(myagent.UserReplan, map[string]any{"content": map[string]any{"question": "what is 1+1?"}})
			q := m.Await(myagent.AgentUserConfirm, "system.notice replan")[0]
			m.Respond(step, map[string]any{"approved": true})
			m.Await(myagent.ErrorValidation)
			m.Respond(q.StepID, map[string]any{"approved": true})
			m.Await(answer)
		}},
		{Name: "replan_solving", About: "It is too late for another plan.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Ask("hold replan_solving", nil)
			m.awaitPiece(myagent.AgentPartialAnswer)
			m.Send(myagent.UserReplan, map[string]any{"content": map[string]any{"question": "say two"}})
			m.Await("system.notice replan")
			s.Release("replan_solving")
			m.Await(answer)
		}},
		{Name: "replan_idle", About: "Without a run, user.replan starts one: with a question of its own, or with the last one.", Demo: true, Play: func(s *Scene) {
			m := s.Open(nil)
			m.Send(myagent.UserReplan, nil)
			m.Await("system.notice replan")
			m.Send(myagent.UserReplan, map[string]any{"content": map[string]any{"question": "what is 2+3?"}})
			m.Await(answer, "system.notice replan")
			m.Send(myagent.UserReplan, nil)
			m.Await(answer, "system.notice replan")
		}},
	}
}

// awaitPiece waits for a piece of a model's text: what waits at a gate has been said
// up to it. A plan shows no deltas, only the start of its text.
func (m *Socket) awaitPiece(event string) {
	m.s.t.Helper()
	for {
		f := m.Await(event)[0]
		if f.Event == myagent.AgentPartialAnswer || f.Meta().MessageID != "" {
			return
		}
	}
}
