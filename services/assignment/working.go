package assignment

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// Values of task.refused's field for the refused command.
const (
	whatResult = "result"
	whatError  = "error"
	whatStatus = "status"
)

// Suffixes of the ids of events by which an agent ends a task. A fold tells the ends apart by them.
const (
	byResult = ".result"
	byReport = ".reported-failed"
)

// reportFailed is the status with which agents say that they could not do the task.
const reportFailed = "failed"

// working decides on what the task's agent says.
type working struct{ *State }

// report takes the agent's status. That it failed ends the task.
func (h working) report(c command.Command, d command.TaskReport, env Env) (effect, error) {
	if d.Status == Delivered && !h.awaits(d) {
		return effect{}, nil // and nothing on the occasion: it must not mean the assignment that comes of it
	}
	why := h.fence(d.AgentID)
	eventID := c.ID + ".reported"
	switch {
	case h.once[eventID], h.once[c.ID+byReport]:
		return h.goOn(env)
	case h.followsUp(d.AgentID):
		return h.goOn(env)
	case why != nil, h.once[c.ID+".refused"]:
		return h.turnAway(c, d.AgentID, whatStatus, orNotOwned(why), env)
	case d.Status == reportFailed:
		return fact(c.ID+byReport, h.ending(StatusFailed, fault.TaskFailed, d.Error))
	}
	return fact(eventID, event.TaskReportedData{TaskHead: h.head, Status: d.Status, Progress: d.Progress, Connection: cmp.Or(d.Connection, connectionOf(c))})
}

// orNotOwned is the reason of a refusal that was recorded before the agent got the
// task after all.
func orNotOwned(why *fault.Fault) *fault.Fault {
	if why == nil {
		return fault.New(fault.TaskNotOwned)
	}
	return why
}

// result ends the task, if it comes from the holder.
func (h working) result(c command.Command, d command.TaskResult, env Env) (effect, error) {
	what := whatResult
	if d.Failed {
		what = whatError
	}
	why := h.fence(d.AgentID)
	switch {
	case h.once[c.ID+byResult]:
		return h.goOn(env)
	case why != nil, h.once[c.ID+".refused"]:
		return h.turnAway(c, d.AgentID, what, orNotOwned(why), env)
	}
	end := event.TaskFinishedData{TaskHead: h.head, Status: StatusCompleted, Details: d.Details, CreatedAt: h.Created}
	if d.Failed {
		code, own := coded(d.Code)
		end = h.ending(StatusFailed, code, d.Error)
		if end.Details = d.Details; len(d.Details) == 0 {
			end.Details = own
		}
	}
	end.Result, end.ResultRef = d.Result, d.ResultRef
	return fact(c.ID+byResult, end)
}

// coded returns the code of the catalogue for an agent's error code, and the agent's own code as
// details if it differs.
func coded(word string) (fault.Code, json.RawMessage) {
	code := fault.Code(word)
	switch {
	case word == "":
		return fault.TaskFailed, nil
	case fault.Lookup(code).Code == code:
		return code, nil
	}
	own, err := json.Marshal(map[string]string{"code": word})
	if err != nil { // a string can be encoded
		return fault.TaskFailed, nil
	}
	return fault.TaskFailed, own
}

func (h working) notify(c command.Command, d command.TaskNotification, env Env) (effect, error) {
	eventID := c.ID + ".notified"
	if h.once[eventID] {
		return h.goOn(env)
	}
	if why := h.fence(d.AgentID); why != nil {
		return refuse(c, why)
	}
	return fact(eventID, event.TaskNotifiedData{
		TaskHead: h.head, NotificationType: d.NotificationType, Level: d.Level, Message: d.Message, MessageRef: d.MessageRef,
		Data: d.Data, DataRef: d.DataRef, Connection: connectionOf(c),
	})
}

// ask puts a question of the agent to the client. Its id is that of the agent's
// frame, if that has one: the answer refers to it.
func (h working) ask(c command.Command, d command.TaskQuestion, env Env) (effect, error) {
	eventID := c.ID + ".asked"
	if h.once[eventID] {
		return h.goOn(env)
	}
	why := h.fence(d.AgentID)
	switch {
	case why == nil && h.overdue(env):
		return h.goOn(env) // the overdue question expires first; then the state decides on this one
	case why == nil && h.asking():
		why = fault.Newf(fault.QueueFull, "Another question of this task is open. Wait for its answer, then ask again.")
	}
	if why != nil {
		return refuse(c, why)
	}
	asked := event.TaskAskedData{
		TaskHead: h.head, InputID: d.RequestID, MessageType: d.MessageType, Message: d.Message, MessageRef: d.MessageRef, Options: d.Options,
		TimeoutMS: millis(d.TimeoutMS).Milliseconds(), Connection: connectionOf(c),
	}
	if asked.InputID == "" {
		asked.InputID = derived("input_", c)
	}
	if asked.TimeoutMS == 0 {
		asked.TimeoutMS = env.Rules.AskTimeout.Milliseconds()
	}
	return fact(eventID, asked)
}

// release takes the task from a lost agent, if the command's attempt is the current one.
func (h working) release(_ command.Command, d command.AgentGone, env Env) (effect, error) {
	if h.holder == "" || d.AgentID != h.holder || d.Attempt != h.head.Attempt {
		return h.goOn(env)
	}
	if d.Reason == "" {
		d.Reason = reasonLost
	}
	return effect{Decision: decision.Of(h.released(d.Reason))}, nil
}

// turnAway records that an agent without a say reported on the task, once, and tells it.
func (h working) turnAway(c command.Command, agentID, what string, why *fault.Fault, env Env) (effect, error) {
	eventID := c.ID + ".refused"
	if h.Created.IsZero() {
		return refuse(c, why)
	}
	direct := event.Data(refusal(c, why))
	if what != whatStatus && h.trails(agentID) && (h.trailing == "" || h.trailing == eventID) {
		direct = nil // the result that goes with the failure which the agent has just reported
	}
	if h.once[eventID] {
		return effect{Decision: decision.Decision{Facts: h.advance(env), Direct: direct}}, nil
	}
	data := event.TaskRefusedData{TaskHead: h.head, By: agentID, What: what, Code: string(why.Code)}
	return effect{Decision: decision.Decision{Facts: []decision.Fact{{ID: eventID, Data: data}}, Direct: direct}, own: true}, nil
}

// followsUp reports whether a status only repeats the end that the agent has made.
func (h working) followsUp(agentID string) bool {
	return h.Done() && agentID == h.head.AgentID && (strings.HasSuffix(h.endID, byReport) || strings.HasSuffix(h.endID, byResult))
}

// awaits reports whether the confirmation is about the assignment that needs one.
func (h working) awaits(d command.TaskReport) bool {
	u := h.Undelivered()
	return u != nil && u.AgentID == d.AgentID && (d.Attempt == 0 || d.Attempt == u.Attempt)
}

// connectionOf returns the connection of an agent's report, empty if it is not
// known.
func connectionOf(c command.Command) string {
	_, connection, err := subject.ParseReplyTo(c.ReplyTo)
	if err != nil {
		return ""
	}
	return connection.String()
}
