package flows

import "github.com/waggle-dev/waggle/proto-schemas/myagent"

func solving() []Flow {
	solve := func(metadata map[string]any, titles ...string) func(s *Scene) {
		return func(s *Scene) {
			m := s.Open(nil)
			m.Solve(metadata, titles...)
			m.Await(answer)
		}
	}
	return []Flow{
		{Name: "solve_one", About: "One task without planning: its result needs no aggregation.", Demo: true, Play: solve(nil, "what is 2+3?")},
		{Name: "solve_parallel", About: "Three tasks side by side.", Demo: true, Concurrent: true, Play: solve(
			map[string]any{"parallelizable": true, "max_concurrent": 3, "timeout_seconds": 300}, "what is 2+3?", "what is 7*6?", "list the files",
		)},
		{Name: "solve_serial", About: "Three tasks that are not to be solved side by side.", Demo: true, Play: solve(
			map[string]any{"parallelizable": false, "max_concurrent": 3}, "what is 2+3?", "what is 7*6?", "what is 1+1?",
		)},
		{Name: "solve_diamond", About: "One task, two that need it, one that needs both.", Demo: true, Concurrent: true, Play: solve(
			nil, "what is 2+3?", "what is 7*6? < task_1", "what is 1+1? < task_1", "what is 10-1? < task_2 task_3",
		)},
		{Name: "solve_finish_order", About: "Of two tasks side by side the second one is done first.", Concurrent: true, Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "hold solve_finish_order", "say two")
			m.Await("solver.completed@task_2", "solver.progress", "agent.partial_answer@task_1")
			s.Release("solve_finish_order")
			m.Await(answer)
		}},
		{Name: "solve_dialects", About: "Tasks as other clients write them: a number as id, name and objective, members of their own; and one task instead of a list.", Demo: true, Play: func(s *Scene) {
			m := s.Open(nil)
			m.Raw(`{"event":"user.solve_tasks","session_id":"` + s.session + `","content":{"question":"a sum","tasks":[` +
				`{"id":1,"name":"what is 2+3?","notes":"a note","context":{"a":[1]}},` +
				`{"id":2,"objective":"what is 7*6?","dependencies":[1],"priority":2,"estimated_tokens":20,"estimated_time_seconds":3}]}}`)
			m.Await(answer)
			m.Raw(`{"event":"user.solve_tasks","session_id":"` + s.session + `","content":{"tasks":{"id":"only","title":"what is 1+1?"}}}`)
			m.Await(answer)
		}},
		{Name: "solve_cycle", About: "The tasks depend on each other, then on one that is not there.", Demo: true, Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "what is 2+3? < task_2", "what is 7*6? < task_1")
			m.Await(myagent.PlanCoercionError, myagent.AgentError)
			m.Solve(nil, "what is 2+3? < unknown")
			m.Await(myagent.PlanCoercionError, myagent.AgentError)
		}},
		{Name: "tool", About: "A task calls two tools at once; another task a tool that fails.", Demo: true, Play: solve(nil, "list the files and read notes.md", "read missing.md < task_1")},
	}
}

func failures() []Flow {
	return []Flow{
		{Name: "task_retried", About: "An attempt at a task breaks off in the middle; the second one is good.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "fail 1 task_retried")
			m.Await(answer)
		}},
		{Name: "task_failed", About: "A task fails for good, and what depends on it is cancelled. The rest goes on: partial success.", Concurrent: true, Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "say one", "fail 9 task_failed", "say three < task_2", "say four < task_3")
			m.Await(answer)
		}},
		{Name: "task_refused", About: "The model says that the request is bad: that is not tried again.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "refuse")
			m.Await(answer)
		}},
		{Name: "all_failed", About: "No task of a planned run succeeds.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Ask("refuse; then say two", nil)
			m.Await(answer)
		}},
	}
}

func control() []Flow {
	return []Flow{
		{Name: "cancel_task", About: "One of two tasks is cancelled while it is solved. Then one that is not there.", Concurrent: true, Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "hold cancel_task", "hold cancel_task_other", "say three < task_1")
			m.Await("agent.partial_answer@task_1", "agent.partial_answer@task_2")
			m.On(myagent.UserCancelTask, "task_1", map[string]any{"reason": "user_feedback"})
			m.Await("system.notice cancel_task", "solver.cancelled@task_1", "solver.cancelled@task_3", "solver.progress", "solver.progress")
			m.On(myagent.UserCancelTask, "task_1", nil)
			m.Await("system.notice cancel_task")
			m.On(myagent.UserCancelTask, "unknown", nil)
			m.Await("system.notice cancel_task")
			s.Release("cancel_task_other")
			m.Await(answer)
		}},
		{Name: "cancel_all_tasks", About: "Every task is cancelled by itself.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "hold cancel_all_tasks")
			m.awaitPiece(myagent.AgentPartialAnswer)
			m.On(myagent.UserCancelTask, "task_1", nil)
			m.Await("system.notice cancel_task", answer)
		}},
		{Name: "restart_running", About: "A task is restarted while it is solved.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "hold restart_running")
			m.awaitPiece(myagent.AgentPartialAnswer)
			m.On(myagent.UserRestartTask, "task_1", map[string]any{"reason": "quality_improvement", "clear_previous_result": true, "max_attempts": 3})
			m.Await("system.notice restart_task", "solver.restarted")
			m.awaitPiece(myagent.AgentPartialAnswer)
			s.Release("restart_running")
			m.Await(answer)
		}},
		{Name: "restart_done", About: "In an active run, a completed task is restarted, and with it the tasks that depend on it.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(nil, "say one", "hold restart_done < task_1")
			m.awaitHeld("task_2")
			m.On(myagent.UserRestartTask, "task_1", nil)
			m.Await("system.notice restart_task", "solver.restarted@task_1", "solver.completed@task_1")
			m.awaitHeld("task_2")
			s.Release("restart_done")
			m.Await(answer)
		}},
		{Name: "restart_completed", About: "After the end of a run one of its tasks is restarted: the task, what depends on it and the answer are made again.", Demo: true, Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(map[string]any{"parallelizable": false}, "what is 2+3?", "what is 7*6? < task_1", "what is 1+1?")
			m.Await(answer)
			m.On(myagent.UserRestartTask, "task_1", map[string]any{"reason": "user_request"})
			m.Await("system.notice restart_task", answer)
			m.On(myagent.UserRestartTask, "unknown", nil)
			m.Await("system.notice restart_task")
		}},
		{Name: "restart_failed", About: "A task that has failed for good is restarted after the end, and succeeds.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Solve(map[string]any{"parallelizable": false}, "say one", "fail 3 restart_failed", "say three < task_2")
			m.Await(answer)
			m.On(myagent.UserRestartTask, "task_2", map[string]any{"reason": "retry"})
			m.Await("system.notice restart_task", answer)
		}},
	}
}

// awaitHeld waits for a piece of the text of a task.
func (m *Socket) awaitHeld(task string) {
	m.s.t.Helper()
	m.Await("agent.partial_answer@" + task)
}

var quit = map[string]any{"content": "User requested cancellation", "metadata": map[string]any{"reason": "takes_too_long"}}

func stops() []Flow {
	return []Flow{
		{Name: "cancel_planning", About: "All is cancelled while the plan is made. The session goes on with a new message.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Ask("hold plan cancel_planning; say one", nil)
			m.awaitPiece(myagent.AgentThinking)
			m.Send(myagent.UserCancel, quit)
			m.Await(ended)
			m.Ask("say more", nil)
			m.Await(answer)
		}},
		{Name: "cancel_confirming", About: "All is cancelled while the plan waits to be confirmed.", Demo: true, Play: func(s *Scene) {
			m, step := asked(s)
			m.Send(myagent.UserCancel, map[string]any{"content": "User requested cancellation"})
			m.Await(ended)
			m.Respond(step, map[string]any{"approved": true})
			m.Await(myagent.ErrorValidation)
		}},
		{Name: "cancel_solving", About: "All is cancelled while a task is solved: one is done, one half done, one waits.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Ask("say one; then hold cancel_solving; then say three", nil)
			m.awaitHeld("task_2")
			m.Send(myagent.UserCancel, quit)
			m.Await(ended)
			m.Ask("say more", nil)
			m.Await(answer)
		}},
		{Name: "cancel_aggregating", About: "All is cancelled while the answer is written.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Ask("hold answer cancel_aggregating; say one", nil)
			m.Await(myagent.AggregateStart)
			m.awaitPiece(myagent.AgentPartialAnswer)
			m.Send(myagent.UserCancel, quit)
			m.Await(ended)
			m.Ask("say more", nil)
			m.Await(answer)
		}},
		{Name: "cancel_idle", About: "A cancel without an active run.", Demo: true, Play: func(s *Scene) {
			m := s.Open(nil)
			m.Send(myagent.UserCancel, map[string]any{"content": "bye"})
			m.Await(ended)
			m.Ask("what is 2+3?", nil)
			m.Await(answer)
			m.Send(myagent.UserCancel, map[string]any{"content": "bye"})
			m.Await(ended)
		}},
	}
}

func busy() []Flow {
	second := func(policy string, of map[string]any) func(m *Socket) {
		return func(m *Socket) {
			if of == nil {
				of = map[string]any{"on_busy": policy}
			}
			m.Ask("say two", of)
		}
	}
	return []Flow{
		{Name: "busy_reject", About: "A second message during a run, which is rejected by default.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Ask("hold busy_reject", nil)
			m.awaitPiece(myagent.AgentPartialAnswer)
			second("", map[string]any{})(m)
			m.Await(myagent.AgentError)
			s.Release("busy_reject")
			m.Await(answer)
		}},
		{Name: "busy_enqueue", About: "A second message waits its turn, as the session says.", Play: func(s *Scene) {
			m := s.Open(map[string]any{"on_busy": "enqueue"})
			m.Ask("hold busy_enqueue", nil)
			m.awaitPiece(myagent.AgentPartialAnswer)
			second("", map[string]any{})(m)
			m.Await(myagent.UserMessage)
			s.Release("busy_enqueue")
			m.Await(answer, answer)
		}},
		{Name: "busy_interrupt", About: "A second message takes the place of the first, as it says itself.", Play: func(s *Scene) {
			m := s.Open(nil)
			m.Ask("hold busy_interrupt", nil)
			m.awaitPiece(myagent.AgentPartialAnswer)
			second("interrupt", nil)(m)
			m.Await(answer)
		}},
	}
}
