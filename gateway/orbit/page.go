package orbit

import (
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// page are the frames for the page of the original where they are others. It shows no agent_thinking, and takes no text between
// user_input and agent_response: so a question is an agent_response, and its answer is a user_input, which has the page wait again.
var page = frames{
	event.InputRequested: with(asksOnPage),
	event.InputAnswered:  with(saidOnPage),
	event.JobSuspended:   with(waitsOnPage),
}

func asksOnPage(e event.Event, d event.InputRequestedData) ([]byte, error) {
	q, ok, err := asked(e, d)
	if err != nil || !ok {
		return orNeutral(e, err)
	}
	if q.Scope == narrate.ScopeTask {
		q.text += "\nYour next message is the answer."
	} else {
		q.text += "\nAnswer yes or no."
	}
	return frame(wire.AgentResponse, q.execution, e, wire.ResponseData{Message: q.text, Question: &q.Question})
}

// saidOnPage shows the answer as what its person has said.
func saidOnPage(e event.Event, d event.InputAnsweredData) ([]byte, error) {
	if d.Scope == event.ScopeClientTool {
		return neutral(e)
	}
	said := d.Feedback
	switch {
	case said != "":
	case d.Decision == event.DecisionReject:
		said = "no"
	case d.Decision == event.DecisionAnswer:
		said = narrate.Plain(d.Message)
	default:
		said = "yes"
	}
	return frame(wire.UserInput, d.ExecutionID, e, wire.MessageData{Message: said})
}

// waitsOnPage has the page take text where a run waits for another answer. After the first question it does already.
func waitsOnPage(e event.Event, d event.JobSuspendedData) ([]byte, error) {
	return frame(wire.AgentResponse, d.ExecutionID, e, wire.ResponseData{Message: "Waiting for your answer: yes or no."})
}
