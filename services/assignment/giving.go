package assignment

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// giving decides on the commands of who gives the task.
type giving struct{ *State }

func (h giving) create(c command.Command, d command.NewTask, env Env) (effect, error) {
	eventID := c.ID + ".created"
	switch {
	case h.once[eventID]:
		return h.goOn(env)
	case !h.Created.IsZero():
		return refuse(c, fault.Newf(fault.InvalidField, "A task with this id already exists. Use another id.").At("task_id"))
	}
	if d.TaskID == "" {
		d.TaskID = c.Key.String()
	}
	if len(d.Data) == 0 {
		d.Data = json.RawMessage("null")
	}
	queue, timeout := millis(d.QueueMS), millis(d.TimeoutMS)
	if queue == 0 {
		queue = env.Rules.QueueTimeout
	}
	if timeout == 0 {
		timeout = env.Rules.TaskTimeout
	}
	created := event.TaskCreatedData{
		TaskHead: event.TaskHead{TaskID: d.TaskID, RequestID: d.RequestID, ClientID: d.ClientID, ParentID: d.ParentID},
		WantedID: d.AgentID, WantedName: d.AgentName, Capabilities: d.Capabilities, TaskType: d.TaskType, Data: d.Data, DataRef: d.DataRef,
		Caller: d.Caller, AskerID: d.AskerID, Depth: d.Depth, RootID: d.RootID, Chain: d.Chain, QueueMS: queue.Milliseconds(), TimeoutMS: timeout.Milliseconds(),
		Session: d.Session, Kind: string(d.Kind), JobID: d.JobID, RunID: d.RunID, Principal: cmp.Or(c.Principal, d.Owner),
		RetryOf: d.RetryOf,
	}
	created.ExpectedID, created.ExpectedName = expected(created, env.Agents)
	return fact(eventID, created)
}

// foreign reports whether the task belongs to another client. Services send no client id.
func (h giving) foreign(clientID string) bool {
	return h.Created.IsZero() || (clientID != "" && clientID != h.head.ClientID)
}

// message records a message of the client to the agent. It answers the open question, if any.
func (h giving) message(c command.Command, d command.TaskMessage, env Env) (effect, error) {
	eventID := c.ID + ".messaged"
	q := h.question
	if d.Given != nil && !h.gave(c, d) {
		return refuse(c, fault.New(fault.Forbidden))
	}
	switch {
	case h.once[eventID]:
		return h.said(c, d, env)
	case h.foreign(d.ClientID):
		return refuse(c, Unknown())
	case h.Done():
		return refuse(c, fault.New(fault.TaskFinished))
	case h.asking() && !h.mayAnswer(c, env.Rules):
		return refuse(c, fault.Newf(fault.Forbidden, "Only the task's owner or an operator may answer this question."))
	case !q.meant(d):
		return refuse(c, fault.Newf(fault.InputNotFound, "The question is no longer open. Nothing was changed."))
	case !h.asking() && q != nil && answers(d):
		return h.tooLate(c, d, q)
	}
	told := event.TaskMessagedData{
		TaskHead: h.head, MessageID: c.ID, MessageType: d.MessageType, Message: d.Message, MessageRef: d.MessageRef, From: d.ClientID,
	}
	if h.asking() {
		told.InputID, told.Given = q.id, d.Given
		if d.ClientID == "" {
			told.By = c.Principal
		}
	}
	return fact(eventID, told)
}

// answers reports whether the message is an answer, and nothing else.
func answers(d command.TaskMessage) bool {
	return d.MessageType == command.TypeInputResponse || d.InputID != "" || d.Asked > 0
}

// gave reports whether the person has given this answer, in the log of the job that the task is. A command without a proof
// has passed the check of signatures, which wants one where people sign.
func (h giving) gave(c command.Command, d command.TaskMessage) bool {
	if c.Origin == nil {
		return true
	}
	var a command.AnswerQuestion
	if json.Unmarshal(c.Origin.Data, &a) != nil || !within(h.task.Session, c.Origin.Key) {
		return false
	}
	told, err := a.ToAgent()
	return err == nil && a.InputID == d.Given.InputID && bytes.Equal(event.Canonical(told), event.Canonical(d.Message))
}

// within reports whether the log is the one with the key, or that of a member of the team with the key, at any depth.
func within(log, key string) bool {
	e, err := id.ParseEntity(log)
	for ok := err == nil; ok; e, ok = id.TeamOf(e) {
		if e.String() == key {
			return true
		}
	}
	return false
}

// said decides about a message that was recorded before. It answers a sender that wants it to.
func (h giving) said(c command.Command, d command.TaskMessage, env Env) (effect, error) {
	out, err := h.goOn(env)
	if c.Again != "" {
		out.Direct = event.TaskMessagedData{TaskHead: h.head, MessageID: c.ID, MessageType: d.MessageType, Message: d.Message, MessageRef: d.MessageRef, From: d.ClientID}
	}
	return out, err
}

// tooLate refuses an answer to a question that is closed.
func (h giving) tooLate(c command.Command, d command.TaskMessage, q *question) (effect, error) {
	f := fault.New(fault.InputAnswered)
	if q.answered == nil {
		f = fault.New(fault.InputExpired)
	}
	data := refusal(c, f)
	data.InputID = q.id
	if q.answered != nil {
		data.AnsweredBy, data.Decision = cmp.Or(q.answered.From, q.answered.By), event.DecisionAnswer
		if g := q.answered.Given; g != nil {
			data.AnsweredOn, data.Decision = g.ClientID, g.Decision
		}
	}
	if d.Given != nil {
		data.InputID = d.Given.InputID
	}
	return effect{Decision: decision.Decision{Direct: data}}, nil
}

// cancel ends the task, held or not.
func (h giving) cancel(c command.Command, d command.CancelTaskData, _ Env) (effect, error) {
	eventID := c.ID + ".cancelled"
	switch {
	case h.once[eventID]:
		return effect{Decision: decision.Decision{Direct: h.cancelled(c)}}, nil
	case h.foreign(d.ClientID):
		return refuse(c, Unknown())
	case h.Done():
		return refuse(c, fault.New(fault.TaskFinished))
	}
	text := "The task was cancelled."
	if d.Reason != "" {
		text = "The task was cancelled: " + d.Reason
	}
	end := h.ending(StatusCancelled, fault.RunCancelled, text)
	return effect{Decision: decision.Decision{Facts: []decision.Fact{{ID: eventID, Data: end}}, Direct: h.cancelled(c)}, own: true}, nil
}
