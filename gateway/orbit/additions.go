package orbit

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// additions are the frames of sessions for which the original protocol has no form.
var additions = frames{
	event.InputRequested: with(inputRequested),
	event.Notice:         with(notice),
	event.RequestFailed:  with(requestFailed),

	event.MessageReceived: silent, // run.started has its text
	event.CommandRefused:  silent, // Fail has its frame
}

func silent(event.Event) ([]byte, error) { return nil, nil }

// neutral returns the frame of an event in its neutral form: thoughts of the agent inform
// and ask. An error without an execution id ends no run.
func neutral(e event.Event) ([]byte, error) {
	n, err := narrate.Of(e)
	if err != nil || n.Detail {
		return nil, err
	}
	switch n.Kind {
	case narrate.Note:
		return frame(wire.AgentThinking, n.Execution, e, wire.ThoughtData{Message: n.Whole()})
	case narrate.Message:
		return frame(wire.UserInput, n.Execution, e, wire.MessageData{Message: n.Whole()})
	case narrate.Question:
		return ask(e, questionOf(n, wire.Question{}))
	case narrate.Answer:
		return frame(wire.AgentResponse, n.Execution, e, wire.ResponseData{Message: n.Whole(), ExecutionCompleted: true})
	case narrate.Failure:
		return errorFrame(e, "", n.Code, n.Whole())
	case narrate.Silent:
	}
	return nil, nil
}

// notice shows a notice that people need to see: about workers, to one connection, or a warning, such as that an answer is
// not complete. All others change nothing in a chat.
func notice(e event.Event, d event.NoticeData) ([]byte, error) {
	n, err := narrate.Of(e)
	if err != nil || n.Detail {
		return nil, err
	}
	return frame(wire.AgentThinking, "", e, wire.ThoughtData{Message: n.Text, Code: d.Code})
}

// requestFailed says why the model is asked again, and when which one.
func requestFailed(e event.Event, d event.RequestFailedData) ([]byte, error) {
	return frame(wire.AgentThinking, d.ExecutionID, e, wire.ThoughtData{Message: d.Text(), Code: d.Code})
}

// question is one to people, with its text.
type question struct {
	wire.Question
	execution, text string
}

// questionOf returns the question of a narration.
func questionOf(n narrate.Narration, q wire.Question) question {
	q.ID, q.Scope, q.Options, q.TimeoutSeconds = n.Ask.ID, n.Ask.Scope, n.Ask.Options, n.Ask.TimeoutSeconds
	return question{q, n.Execution, n.Whole()}
}

// asked returns the question that an event asks, with the arguments of a tool as an object, and their beginning in the text; false
// if another client has its answer.
func asked(e event.Event, d event.InputRequestedData) (q question, ok bool, err error) {
	if d.Scope == event.ScopeClientTool {
		return q, false, nil
	}
	n, err := narrate.Of(e)
	if err != nil || d.Scope != event.ScopeTool {
		return questionOf(n, wire.Question{}), true, err
	}
	args, err := arguments(d.Arguments)
	if err != nil {
		return q, false, err
	}
	n.Ask.Arguments = nil // the text says them
	n.Text = "May the tool " + d.Tool + " be called with " + preview(string(args)) + "?"
	if d.Description != "" {
		n.Text += "\n" + d.Description
	}
	return questionOf(n, wire.Question{Tool: d.Tool, Arguments: args}), true, nil
}

// ask asks a question and explains how to answer it.
func ask(e event.Event, q question) ([]byte, error) {
	id, err := json.Marshal(q.ID)
	if err != nil {
		return nil, fmt.Errorf("encode the id of a question: %w", err)
	}
	how := `{"type":"answer","question_id":` + string(id) + `,"approved":true}`
	if q.Scope == narrate.ScopeTask {
		q.text += "\nTo answer, send " + strings.TrimSuffix(how, "}") + `,"feedback":"<your answer>"}.`
	} else {
		q.text += "\nTo allow it, send " + how + "; to refuse, the same with false. In a session of your own, a message yes or no does it, too."
	}
	return frame(wire.AgentThinking, q.execution, e, wire.ThoughtData{Message: q.text, Question: &q.Question})
}

func inputRequested(e event.Event, d event.InputRequestedData) ([]byte, error) {
	q, ok, err := asked(e, d)
	if err != nil || !ok {
		return orNeutral(e, err)
	}
	return ask(e, q)
}

func orNeutral(e event.Event, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return neutral(e)
}
