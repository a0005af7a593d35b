package narrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func messageReceived(d event.MessageReceivedData) Narration {
	return Narration{Kind: Message, Text: d.Content, Run: d.RunID, ID: d.MessageID}
}

func messageRefused(d event.MessageRefusedData) Narration {
	n := failed("", d.Code, d.Message)
	n.ID = d.MessageID
	return n
}

// messageCompleted is silent for a message that only calls tools.
func messageCompleted(d event.MessageCompletedData) Narration {
	if d.Content == "" {
		return Narration{}
	}
	return Narration{Kind: Note, Text: d.Content, Detail: true}.of(d.RunID, d.ExecutionID)
}

// reasoningCompleted is silent for a reasoning that the provider does not show. The message's text does not have it.
func reasoningCompleted(d event.ReasoningCompletedData) Narration {
	if d.Content == "" {
		return Narration{}
	}
	return Narration{Kind: Note, Lead: "The model has thought: ", Text: d.Content, Detail: true}.of(d.RunID, d.ExecutionID)
}

func runStarted(d event.RunStartedData) Narration {
	return Narration{Kind: Note, Text: "The run has started", Detail: true}.of(d.RunID, d.ExecutionID)
}

func runCompleted(d event.RunCompletedData) Narration {
	return Narration{Kind: Answer, Text: d.Content}.of(d.RunID, d.ExecutionID)
}

// runFailed contains the answer that the run has all the same.
func runFailed(d event.RunFailedData) Narration {
	n := end("", d.Code, d.Message).of(d.RunID, d.ExecutionID)
	if d.Answer != "" {
		n.Text += "\n" + d.Answer
	}
	return n
}

func runCancelled(d event.RunCancelledData) Narration {
	n := end("", string(fault.RunCancelled), "").of(d.RunID, d.ExecutionID)
	if d.Reason != "" {
		n.Text += " (reason: " + d.Reason + ")"
	}
	return n
}

// jobFailed is silent while another attempt follows.
func jobFailed(d event.JobFailedData) Narration {
	if d.Retryable && d.Try < d.MaxTries {
		return Narration{}
	}
	return failed("The job has failed: ", d.Code, d.Message).of(d.RunID, d.ExecutionID)
}

// requestFailed explains the wait: why the model is asked again, and when.
func requestFailed(d event.RequestFailedData) Narration {
	return Narration{Kind: Note, Text: d.Text()}.of(d.RunID, d.ExecutionID)
}

// notice is a detail unless it warns, such as of an answer that is not complete, or explains why no answer comes.
func notice(d event.NoticeData) Narration {
	return Narration{
		Kind: Note, Text: First(d.Message, d.Action, d.Code), Run: d.RunID,
		Detail: d.Level != levelWarning && d.Code != event.NoWorker && d.Code != event.WorkerBack,
	}
}

// levelWarning is the level of notices that people need to see.
const levelWarning = "warning"

func reportedError(d event.ErrorData) Narration {
	n := failed("", d.Code, d.Message)
	n.Run = d.RunID
	return n
}

func toolFailed(d event.ToolFailedData) Narration {
	return failed("The tool "+d.Tool+" has failed: ", First(d.Code, string(fault.ToolFailed)), d.Message).of(d.RunID, d.ExecutionID)
}

func toolUnknown(d event.ToolUnknownData) Narration {
	return failed("The outcome of the tool "+d.Tool+" is unknown: ", string(fault.ToolLost), d.Message).of(d.RunID, d.ExecutionID)
}

func planCompleted(d event.PlanCompletedData) Narration {
	return Narration{Kind: Note, Text: planText("Plan", d.Steps, d.Summary)}.of(d.RunID, d.ExecutionID)
}

// planText lists the steps of a plan.
func planText(head string, steps []event.Step, summary string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (tasks: %d)", head, len(steps))
	if summary != "" {
		b.WriteString(": " + summary)
	}
	for i, s := range steps {
		fmt.Fprintf(&b, "\n%d. %s", i+1, First(s.Title, s.ID))
	}
	return b.String()
}

func planInvalid(d event.PlanInvalidData) Narration {
	return failed("", First(d.Code, string(fault.PlanInvalid)), d.Message).of(d.RunID, d.ExecutionID)
}

func planCancelled(d event.PlanCancelledData) Narration {
	return Narration{Kind: Note, Text: "The plan will not be carried out: " + d.Reason}.of(d.RunID, d.ExecutionID)
}

func inputRequested(d event.InputRequestedData) Narration {
	n := Narration{Kind: Question, Ask: Ask{ID: d.InputID, Scope: d.Scope, TimeoutSeconds: d.TimeoutSeconds}}.of(d.RunID, d.ExecutionID)
	switch d.Scope {
	case event.ScopeBudget:
		n.Text = d.Summary
	case event.ScopeTool:
		n.Ask.Tool, n.Ask.Arguments = d.Tool, d.Arguments
		n.Text = "May the tool " + d.Tool + " be called?"
		if d.Description != "" {
			n.Text += "\n" + d.Description
		}
	case event.ScopeAgent:
		n = agentAsks(d.InputID, d.Message, d.Options, d.TimeoutSeconds).of(d.RunID, d.ExecutionID)
		n.By = First(d.AgentName, d.AgentID)
	case event.ScopeClientTool:
		n = Narration{Kind: Note, Text: ClientTool(d)}.of(d.RunID, d.ExecutionID) // only that client has the result
	default:
		n.Text = planText("The plan needs confirmation", d.Steps, d.Summary)
	}
	return n
}

// agentAsks is a question of an agent of the swarm.
func agentAsks(inputID string, message, choices json.RawMessage, seconds int) Narration {
	n := Narration{Kind: Question, Text: First(Plain(message), "The agent asks.")}
	n.Ask = Ask{ID: inputID, Scope: ScopeTask, Options: options(choices), TimeoutSeconds: seconds}
	if n.Ask.Options != nil {
		n.Text += "\nOptions: " + string(n.Ask.Options)
	}
	return n
}

// ClientTool says which call of its own tool a client has to carry out.
func ClientTool(d event.InputRequestedData) string {
	text := "The run waits for the client that offers the tool " + d.Tool + " to carry it out"
	if len(d.Arguments) > 0 {
		text += " with " + shortened(d.Arguments)
	}
	return text + "."
}

// shortened returns the arguments of a call in a text for people.
func shortened(arguments json.RawMessage) string {
	return cut(string(bytes.ToValidUTF8(arguments, []byte("\ufffd"))), maxArguments)
}

// maxArguments bounds the arguments of a call in a text for people, in bytes.
const maxArguments = 500

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "..."
}

func inputAnswered(d event.InputAnsweredData) Narration {
	text := "The question " + d.InputID + " was answered: " + d.Decision
	if d.By != "" {
		text += " by " + d.By
	}
	if d.Feedback != "" {
		text += " (" + d.Feedback + ")"
	}
	return Narration{Kind: Note, Text: text, Closes: d.InputID}.of(d.RunID, d.ExecutionID)
}

// inputExpired reports a question that takes no answer any more.
func inputExpired(d event.InputExpiredData) Narration {
	if d.Withdrawn {
		return Narration{Kind: Note, Text: Withdrawn(d), Closes: d.InputID}.of(d.RunID, d.ExecutionID)
	}
	return expired(d.InputID).of(d.RunID, d.ExecutionID)
}

// Withdrawn says that an agent does not wait for an answer any more.
func Withdrawn(d event.InputExpiredData) string {
	return "The agent does not wait for the answer to the question " + d.InputID + " any more."
}

// expired reports a question without an answer.
func expired(question string) Narration {
	n := failed("", string(fault.InputExpired), "The question "+question+" was not answered in time.")
	n.Closes = question
	return n
}

func stepStarted(d event.StepStartedData) Narration {
	return Narration{Kind: Note, Text: "Working on: " + First(d.Step.Title, d.Step.ID)}.of(d.RunID, d.ExecutionID)
}

func stepCompleted(d event.StepCompletedData) Narration {
	return Narration{Kind: Note, Text: "Done: " + First(d.Title, d.StepID) + "\n" + d.Output}.of(d.RunID, d.ExecutionID)
}

func stepFailed(d event.StepFailedData) Narration {
	return failed("The task "+First(d.Title, d.StepID)+" has failed: ", d.Code, d.Message).of(d.RunID, d.ExecutionID)
}

func stepCancelled(d event.StepCancelledData) Narration {
	return Narration{Kind: Note, Text: "Cancelled: " + First(d.Title, d.StepID) + " (" + d.Reason + ")"}.of(d.RunID, d.ExecutionID)
}

func aggregateCompleted(d event.AggregateCompletedData) Narration {
	return Narration{Kind: Note, Text: "The result of all tasks:\n" + d.Result}.of(d.RunID, d.ExecutionID)
}

// options returns the options of a question, absent if any answer will do.
func options(raw json.RawMessage) json.RawMessage {
	raw = bytes.ToValidUTF8(raw, []byte("\ufffd"))
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}
