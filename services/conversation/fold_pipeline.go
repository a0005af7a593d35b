package conversation

import (
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/plan"
)

func (s *State) onPipeline(runID string, f func(*Run, *Pipeline) error) error {
	r := s.runs[runID]
	if r == nil && s.lost.Any {
		return nil
	}
	if r == nil || r.Pipeline == nil {
		return fmt.Errorf("run %q is not a pipeline run", runID)
	}
	return f(r, r.Pipeline)
}

func (s *State) onTask(runID, taskID string, f func(*Run, *Task)) error {
	return s.onPipeline(runID, func(r *Run, p *Pipeline) error {
		t := p.Task(taskID)
		if t == nil {
			return fmt.Errorf("task %q is in no plan of run %q", taskID, runID)
		}
		f(r, t)
		return nil
	})
}

func (s *State) planStarted(e event.Event, d event.PlanStartedData) error {
	return s.onPipeline(d.RunID, func(r *Run, p *Pipeline) error {
		p.Phase, p.Plans, p.PlanID, p.Question, p.Context = Planning, d.Number, d.PlanID, d.Question, d.Context
		p.Planned, p.Tasks, p.Summary, p.Retry = false, nil, "", nil
		p.withdraw()
		if p.planStarted.IsZero() {
			p.planStarted = e.Time
		}
		p.Job = &Work{
			ID: d.JobID, RunID: d.RunID, ExecutionID: d.ExecutionID, Part: d.Part, StartedBy: e.ID, Started: e.Time, Try: d.Number, MaxTries: d.MaxTries,
		}
		s.begin(p.Job, r)
		return nil
	})
}

func (s *State) planCompleted(e event.Event, d event.PlanCompletedData) error {
	return s.onPipeline(d.RunID, func(_ *Run, p *Pipeline) error {
		p.endJob()
		p.Planned, p.Tasks, p.Summary = true, newTasks(d.Steps), d.Summary
		p.planEnded, p.retries = e.Time, 0
		s.totals.Tasks += len(d.Steps)
		return nil
	})
}

func (s *State) planInvalid(e event.Event, d event.PlanInvalidData) error {
	s.known.Add(e.ID)
	return s.onPipeline(d.RunID, func(_ *Run, p *Pipeline) error {
		if d.InputID == "" {
			p.endJob()
			p.Invalid = append(p.Invalid, d.Message)
		}
		return nil
	})
}

func (s *State) planCancelled(e event.Event, d event.PlanCancelledData) error {
	s.known.Add(e.ID)
	return s.onPipeline(d.RunID, func(_ *Run, p *Pipeline) error {
		p.endJob()
		p.withdraw()
		p.Planned, p.Retry, p.Invalid, p.retries = false, nil, nil, 0
		if d.Reason != reasonReplan {
			p.Dropped = d.Reason
		}
		if d.Feedback != "" {
			p.Feedback = append(p.Feedback, d.Feedback)
		}
		return nil
	})
}

// endJob ends the plan or aggregate that is being made.
func (p *Pipeline) endJob() {
	if p.Job != nil {
		p.Job.Ended = true
	}
}

// withdraw closes the open question.
func (p *Pipeline) withdraw() {
	if p.Input != nil {
		p.Input.Over = true
	}
}

func (s *State) inputRequested(e event.Event, d event.InputRequestedData) error {
	if d.Scope == event.ScopeTool || d.Scope == event.ScopeClientTool {
		return s.toolAsked(e, d)
	}
	if d.Scope == event.ScopeBudget {
		return s.budgetAsked(e, d)
	}
	if d.Scope == event.ScopeAgent {
		return s.agentAsked(e, d)
	}
	return s.onPipeline(d.RunID, func(_ *Run, p *Pipeline) error {
		p.Phase = Confirming
		p.Input = &Input{ID: d.InputID, RunID: d.RunID, Asked: e.Time, PlanID: d.PlanID, Timeout: time.Duration(d.TimeoutSeconds) * time.Second}
		s.inputs[d.InputID] = p.Input
		return nil
	})
}

func (s *State) inputAnswered(_ event.Event, d event.InputAnsweredData) error {
	in := s.inputs[d.InputID]
	if in != nil && in.CallID != "" {
		return s.toolAnswered(in, d)
	}
	if in != nil && (in.Budget || in.Asking != nil) {
		if !in.Over {
			d.Message = nil // the agent has it
			in.Answered, in.Over = &d, true
		}
		return nil
	}
	return s.onPipeline(d.RunID, func(_ *Run, p *Pipeline) error {
		if in == nil {
			return fmt.Errorf("question %q was never asked", d.InputID)
		}
		if in.Over {
			return nil
		}
		in.Answered, in.Over = &d, true
		if d.Decision == event.DecisionModify {
			p.Tasks = newTasks(d.Steps)
		}
		return nil
	})
}

func (s *State) inputExpired(_ event.Event, d event.InputExpiredData) error {
	if in := s.inputs[d.InputID]; in != nil {
		in.Over, in.Expired = true, !d.Withdrawn
	}
	return nil
}

func (s *State) taskStarted(e event.Event, d event.StepStartedData) error {
	return s.onTask(d.RunID, d.StepID, func(r *Run, t *Task) {
		p := r.Pipeline
		p.Phase = Solving
		if p.solveStarted.IsZero() {
			p.solveStarted = e.Time
		}
		t.State, t.Attempt, t.Started, t.Retry = plan.Running, d.Attempt, e.Time, nil
		t.Work = &Work{
			ID: d.JobID, RunID: d.RunID, ExecutionID: d.ExecutionID, Part: d.Part, StartedBy: e.ID, Started: e.Time, Try: d.Attempt, MaxTries: d.MaxTries,
		}
		s.begin(t.Work, r)
	})
}

func (t *Task) settle(to plan.State) {
	t.State, t.Retry, t.Counted = to, nil, false
	if t.Work != nil {
		t.Work.Ended = true
	}
}

func (s *State) taskCompleted(e event.Event, d event.StepCompletedData) error {
	return s.onTask(d.RunID, d.StepID, func(r *Run, t *Task) {
		t.settle(plan.Done)
		t.Output, t.MessageID, t.Error = d.Output, d.MessageID, ""
		r.Pipeline.solveEnded = e.Time
	})
}

func (s *State) taskFailed(e event.Event, d event.StepFailedData) error {
	return s.onTask(d.RunID, d.StepID, func(r *Run, t *Task) {
		t.settle(plan.Failed)
		t.Error = d.Message
		r.Pipeline.solveEnded = e.Time
	})
}

func (s *State) taskCancelled(e event.Event, d event.StepCancelledData) error {
	s.known.Add(e.ID)
	return s.onTask(d.RunID, d.StepID, func(r *Run, t *Task) {
		t.settle(plan.Cancelled)
		t.Error = "cancelled: " + d.Reason
		r.Pipeline.solveEnded = e.Time
	})
}

// taskRestarted puts a task back to where it waits for its turn.
func (s *State) taskRestarted(e event.Event, d event.StepRestartedData) error {
	s.known.Add(e.ID)
	return s.onTask(d.RunID, d.StepID, func(r *Run, t *Task) {
		p := r.Pipeline
		if p.Phase == Aggregating {
			p.endJob()
			p.Retry = nil
		}
		p.Phase = Solving
		t.settle(plan.Waiting)
		t.Restarts++
		t.Output = ""
		if d.Reason != restartAfterError {
			t.Max = d.MaxAttempts
			r.failing = time.Time{} // people want it tried again
		}
	})
}

func (s *State) retryScheduled(e event.Event, d event.RetryScheduledData) error {
	retry := &Retry{Since: e.Time, Due: e.Time.Add(time.Duration(d.RetryAfterMS) * time.Millisecond), Error: d.Message}
	if d.Stage == event.StageSolving {
		return s.onTask(d.RunID, d.StepID, func(_ *Run, t *Task) {
			t.settle(plan.Waiting)
			t.Retry = retry
		})
	}
	return s.onPipeline(d.RunID, func(_ *Run, p *Pipeline) error {
		p.endJob()
		p.Retry = retry
		p.retries++
		return nil
	})
}

func (s *State) runProgressed(_ event.Event, d event.RunProgressedData) error {
	return s.onTask(d.RunID, d.StepID, func(_ *Run, t *Task) { t.Counted = t.Final() })
}

func (s *State) aggregateStarted(e event.Event, d event.AggregateStartedData) error {
	return s.onPipeline(d.RunID, func(r *Run, p *Pipeline) error {
		p.Phase, p.Retry, p.Combined = Aggregating, nil, false
		p.Aggregate++
		p.aggregateStarted = e.Time
		p.Job = &Work{
			ID: d.JobID, RunID: d.RunID, ExecutionID: d.ExecutionID, Part: d.Part, StartedBy: e.ID, Started: e.Time, Try: p.Aggregate, MaxTries: d.MaxTries,
		}
		s.begin(p.Job, r)
		return nil
	})
}

func (s *State) aggregateCompleted(e event.Event, d event.AggregateCompletedData) error {
	return s.onPipeline(d.RunID, func(_ *Run, p *Pipeline) error {
		p.endJob()
		p.Result, p.ResultID, p.aggregateEnded, p.Combined = d.Result, d.MessageID, e.Time, true
		return nil
	})
}

func (s *State) errorTold(_ event.Event, d event.ErrorData) error {
	if r := s.runs[d.RunID]; r != nil && r.Pipeline != nil {
		r.Pipeline.Reported = true
	}
	return nil
}

func (s *State) pipelineCompleted(_ event.Event, d event.PipelineCompletedData) error {
	return s.onPipeline(d.RunID, func(_ *Run, p *Pipeline) error {
		p.Status = d.Status
		return nil
	})
}
