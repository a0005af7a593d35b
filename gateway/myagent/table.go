package myagent

import (
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// allFrames returns the frames of the events of sessions. Other events have their neutral form.
func allFrames() frames {
	return frames{
		event.SessionCreated:     with(sessionCreated),
		event.SessionClosed:      with(sessionClosed),
		event.SessionDeleted:     with(sessionDeleted),
		event.SessionPaused:      with(sessionPaused),
		event.SessionRestored:    with(sessionRestored),
		event.MessageReceived:    with(messageReceived),
		event.MessageRefused:     with(messageRefused),
		event.MessageStarted:     with(messageStarted),
		event.MessageDelta:       with(messageDelta),
		event.MessageCompleted:   with(messageCompleted),
		event.MessageDiscarded:   with(messageDiscarded),
		event.ReasoningDelta:     with(reasoningDelta),
		event.ReasoningCompleted: with(reasoningCompleted),
		event.RunStarted:         with(runStarted),
		event.RunCompleted:       with(runCompleted),
		event.RunFailed:          with(runFailed),
		event.RunCancelled:       with(runCancelled),
		event.JobStarted:         with(turnStarted),
		event.JobFailed:          with(turnFailed),
		event.JobSuspended:       with(turnPaused),
		event.AttemptRefused:     with(attemptRefused),
		event.ToolCalled:         with(toolCalled),
		event.ToolStarted:        with(toolStarted),
		event.ToolCompleted:      with(toolCompleted),
		event.ToolFailed:         with(toolFailed),
		event.ToolUnknown:        with(toolUnknown),
		event.UsageRecorded:      with(usageRecorded),
		event.Notice:             with(notice),
		event.PlanStarted:        with(planStarted),
		event.PlanCompleted:      with(planCompleted),
		event.PlanInvalid:        with(planInvalid),
		event.PlanCancelled:      with(planCancelled),
		event.InputRequested:     with(inputRequested),
		event.InputAnswered:      with(inputAnswered),
		event.InputExpired:       with(inputExpired),
		event.StepStarted:        with(taskStarted),
		event.StepCompleted:      with(taskCompleted),
		event.StepFailed:         with(taskFailed),
		event.StepCancelled:      with(taskCancelled),
		event.StepRestarted:      with(taskRestarted),
		event.RetryScheduled:     with(retryScheduled),
		event.RequestFailed:      with(requestFailed),
		event.RunProgressed:      with(runProgressed),
		event.AggregateStarted:   with(aggregateStarted),
		event.AggregateCompleted: with(aggregateCompleted),
		event.PipelineCompleted:  with(pipelineCompleted),
		event.Error:              with(agentError),
		event.StateExported:      with(stateExported),
		event.CommandRefused:     with(commandRefused),
	}
}

// New returns the dialect of a server with the settings.
func New(s Settings) Dialect {
	all := allFrames()
	m := Dialect{}
	for _, texts := range []string{merged, none, every} {
		zh := &Codec{name: "myagent", words: &inChinese, settings: s, frames: all, texts: texts}
		en := &Codec{name: "myagent+en", words: &inEnglish, settings: s, frames: all, texts: texts}
		if texts != merged {
			zh.name, en.name = zh.name+"+"+texts, en.name+"+"+texts
		}
		zh.languages = map[string]*Codec{chinese: zh, english: en}
		en.languages = zh.languages
		m[texts] = zh.in(s.Language)
	}
	return m
}
