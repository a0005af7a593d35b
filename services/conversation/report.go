package conversation

import (
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// maxOutput bounds the result of an agent of the swarm in bytes: the event with it has at most
// 256 KiB, and the encoding as JSON may take six times the bytes.
const maxOutput = 40 << 10

// maxToAgent bounds the answer to an agent in bytes: the proof of its sender holds it whole, and the events with it stay small.
const maxToAgent = 40 << 10

// report decides on what workers, and agents of the swarm, report about their jobs.
type report struct{ handler }

// abandoned fails a job whose work item became a dead letter, or which no worker can do.
func (h report) abandoned() (decision.Decision, error) {
	var d command.AbandonedJob
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	j, ok := h.s.openJob(d.JobRef)
	if !ok {
		return h.goOn()
	}
	r := h.s.Run(d.RunID)
	entry := fault.Lookup(fault.Code(orElse(d.Code, string(fault.AttemptsOver))))
	if r.Plan != nil {
		return decision.Of(j.failed(entry, h.now, 0)), nil
	}
	return decision.Of(append(stops(j), decision.Fact{ID: h.c.ID + ".failed", Data: event.RunFailedData{
		RunID: r.ID, ExecutionID: r.ExecutionID, Attempt: j.Attempt,
		Code: string(entry.Code), Message: entry.Message, Retryable: entry.Retryable,
	}})...), nil
}

// assigned records that an agent of the swarm has the job. An agent that takes it
// over from another is the next attempt.
func (h report) assigned() (decision.Decision, error) {
	var d command.AssignedJob
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	j, ok := h.s.openJob(d.JobRef)
	if !ok || j.Attempt >= d.Attempt {
		return h.goOn()
	}
	return decision.Of(decision.Fact{ID: h.c.ID + ".taken", Data: event.JobStartedData{
		RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: d.Attempt, Worker: d.Agent, Resumed: j.Attempt > 0,
		SwarmTask: d.TaskID, Part: j.Part,
	}}), nil
}

// finished takes the result of an agent of the swarm, as a worker's last message.
func (h report) finished() (decision.Decision, error) {
	var d command.FinishedJob
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	j, ok := h.s.openJob(d.JobRef)
	if !ok {
		return h.goOn()
	}
	if _, said := j.final(); said {
		return h.goOn()
	}
	if j.Part.JobID == "" {
		return decision.Of(h.answer(d, j)...), nil
	}
	if d.Failed {
		entry := fault.Lookup(fault.Code(orElse(d.Code, string(fault.TaskFailed))))
		return decision.Of(decision.Fact{ID: h.c.ID + ".failed", Data: event.JobFailedData{
			RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: j.Attempt, Code: string(entry.Code),
			Message: orElse(d.Message, entry.Message), Retryable: d.Retryable || entry.Retryable,
			ElapsedMS: since(h.now, j.Started), Try: j.Try, MaxTries: j.MaxTries, Part: j.Part,
		}}), nil
	}
	return decision.Of(decision.Fact{ID: h.c.ID + ".done", Data: event.MessageCompletedData{
		MessageID: j.ID + ".result", RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: max(j.Attempt, 1),
		Role: event.RoleAssistant, Content: clip(d.Output, maxOutput), StopReason: "end", Silent: true, Part: j.Part,
	}}), nil
}

// answer records the answer of an agent of the swarm: as a message, which viewers see like a
// model's, or as the run's failure. Events that were appended before the service died are not
// repeated.
func (h report) answer(d command.FinishedJob, j *Job) []decision.Fact {
	if d.Failed {
		entry := fault.Lookup(fault.Code(orElse(d.Code, string(fault.TaskFailed))))
		return append(stops(j), decision.Fact{ID: j.RunID + ".failed", Data: event.RunFailedData{
			RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: j.Attempt, Code: string(entry.Code),
			Message: orElse(d.Message, entry.Message), Retryable: d.Retryable || entry.Retryable, DurationMS: since(h.now, j.Started),
		}})
	}
	message, attempt, text := j.ID+".result", max(j.Attempt, 1), clip(d.Output, maxOutput)
	var list []decision.Fact
	if !slices.Contains(j.Open, message) {
		list = append(list, decision.Fact{ID: h.c.ID + ".started", Data: event.MessageStartedData{
			MessageID: message, RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: attempt, Role: event.RoleAssistant, Waits: true,
		}})
	}
	if j.Length == 0 && text != "" {
		list = append(list, decision.Fact{ID: h.c.ID + ".said", Data: event.MessageDeltaData{
			MessageID: message, RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: attempt, Text: text, Begins: true,
		}})
	}
	return append(list, decision.Fact{ID: h.c.ID + ".done", Data: event.MessageCompletedData{
		MessageID: message, RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: attempt,
		Role: event.RoleAssistant, Content: text, StopReason: "end", Silent: text == "",
	}})
}

// asks records a question of an agent of the swarm that has a job, once. The log of the agent's task decides which answer
// counts, and when its time has passed.
func (h report) asks() (decision.Decision, error) {
	var d command.JobQuestion
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	j, ok := h.s.openJob(d.JobRef)
	if !ok || h.s.questions.byID[d.InputID] != nil || j.Attempt > d.Attempt {
		return h.goOn()
	}
	if _, said := j.final(); said {
		return h.goOn()
	}
	return decision.Of(append(h.withdraw(j), decision.Fact{ID: d.InputID + ".asked", Data: event.InputRequestedData{
		InputID: d.InputID, RunID: j.RunID, ExecutionID: j.ExecutionID, Scope: event.ScopeAgent, Summary: d.Summary, TimeoutSeconds: d.TimeoutSeconds,
		AgentQuestion: d.AgentQuestion, Part: j.Part,
	}})...), nil
}

// withdraw closes the open questions of the agent that has a job: an agent has one.
func (h report) withdraw(j *Job) (list []decision.Fact) {
	for _, q := range h.s.queue.byID[j.RunID].Questions {
		if q.Asking != nil && !q.Over && q.Asking.Job == j.ID {
			list = append(list, h.unanswered(q, true))
		}
	}
	return list
}

// unanswered closes a question of an agent that has got no answer.
func (h report) unanswered(q *Question, withdrawn bool) decision.Fact {
	return decision.Fact{ID: q.ID + ".expired", Data: event.InputExpiredData{
		InputID: q.ID, RunID: q.RunID, ExecutionID: h.s.queue.byID[q.RunID].ExecutionID, TimeoutSeconds: int(q.Timeout / time.Second),
		ElapsedMS: since(h.now, q.Asked), Scope: event.ScopeAgent, Withdrawn: withdrawn,
	}}
}

// closed records what became of a question of an agent, once.
func (h report) closed() (decision.Decision, error) {
	var d command.ClosedQuestion
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	q := h.s.questions.byID[d.InputID]
	if q == nil || q.Asking == nil || q.Over {
		return h.goOn()
	}
	if d.CommandID == "" {
		return decision.Of(h.unanswered(q, d.Withdrawn)), nil
	}
	return decision.Of(decision.Fact{ID: q.ID + ".answered", Data: event.InputAnsweredData{
		InputID: q.ID, RunID: q.RunID, ExecutionID: h.s.queue.byID[q.RunID].ExecutionID, CommandID: d.CommandID, Decision: d.Decision, Feedback: d.Feedback,
		By: d.By, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(h.now, q.Asked), Scope: event.ScopeAgent, Message: d.Message,
	}}), nil
}
