package assignment

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Outcomes of calls.
const (
	callSuccess = "success"
	callError   = "error"
	callUnknown = "unknown"
)

// calling decides on the tool calls of the agent.
type calling struct{ *State }

// call records the intent of a tool call. Workers carry it out.
func (h calling) call(c command.Command, d command.ToolRequest, env Env) (effect, error) {
	callID := derived("call_", c)
	if h.calls[callID] != nil {
		return h.goOn(env)
	}
	why := h.fence(d.AgentID)
	if why == nil && openOf(h.callIDs, h.callHead, h.current) >= MaxOpen {
		why = fault.Newf(fault.QueueFull, "Too many calls of this task are open. Wait for one to end, then try again.")
	}
	if why != nil {
		return refuse(c, why)
	}
	if len(d.Arguments) == 0 {
		d.Arguments = json.RawMessage("{}")
	}
	return fact(callID+".call-started", event.CallStartedData{
		TaskHead: h.head, CallID: callID, CallRequest: d.RequestID, Kind: d.Kind, Server: d.Server, ServerName: env.Tool.ServerName,
		Tool: d.Tool, Arguments: d.Arguments, ArgumentsRef: d.ArgumentsRef, Idempotent: env.Tool.Idempotent, TimeoutMS: millis(d.TimeoutMS).Milliseconds(),
		Connection: connectionOf(c),
	})
}

// callNotified records a provider's notice about an open call of the agent that has the task.
func (h calling) callNotified(c command.Command, d event.CallNotifiedData, env Env) (effect, error) {
	eventID := c.ID + ".call-notified"
	l := h.calls[d.CallID]
	switch {
	case h.once[eventID]:
		return h.goOn(env)
	case h.Done():
		return refuse(c, fault.New(fault.TaskFinished))
	case l == nil || l.intent == nil || !h.current(l.intent.TaskHead):
		return refuse(c, fault.Newf(fault.NotFound, "This call is not open."))
	case l.told >= MaxNotes:
		return refuse(c, fault.New(fault.RateLimited))
	}
	d.TaskHead = l.intent.TaskHead
	return fact(eventID, d)
}

// callEnded records the outcome of a call once, also after the end of the task, because the call's
// effect remains. The fields that describe the call come from its intent.
func (h calling) callEnded(_ command.Command, d event.CallFinishedData, env Env) (effect, error) {
	l := h.calls[d.CallID]
	if l == nil || l.intent == nil {
		return h.goOn(env)
	}
	if d.Status != callSuccess && d.Status != callError && d.Status != callUnknown {
		return effect{}, fault.Newf(fault.InvalidField, "A call cannot end as %q.", d.Status).At("status")
	}
	in := l.intent
	d.TaskHead, d.CallRequest, d.Kind, d.Server, d.Tool = in.TaskHead, in.CallRequest, in.Kind, in.Server, in.Tool
	if d.ServerName == "" {
		d.ServerName = in.ServerName
	}
	return fact(d.CallID+".call-finished", d)
}
