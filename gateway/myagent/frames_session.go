package myagent

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// capabilities are the stages that a run of this server has.
var capabilities = []string{event.StagePlanning, event.StageSolving, event.StageAggregation}

func sessionCreated(c *Codec, e event.Event, d event.SessionCreatedData) wire.Frame {
	return wire.Frame{
		Event:   wire.AgentSessionCreated,
		Content: wire.SessionCreatedContent{SessionID: sessionOf(e.Subject), CreatedAt: wire.Stamp(e.Time)},
		Metadata: wire.SessionCreatedMeta{
			ServerVersion: c.settings.ServerVersion, Capabilities: capabilities, TTLHours: c.settings.SessionTTL.Hours(),
			MaxConcurrent: c.settings.MaxConcurrentTasks, HeartbeatSeconds: c.settings.Heartbeat.Seconds(),
			ClientID: d.ClientID, Language: d.Language,
		},
		ShowContent: c.words.created,
	}
}

func sessionClosed(c *Codec, _ event.Event, d event.SessionClosedData) wire.Frame {
	text := "Session ended normally"
	if d.Reason == "timeout" {
		text = "Session ended because it was not used"
	}
	return c.sessionEnd(text, wire.SessionEndMeta{Reason: d.Reason}, d.Stats)
}

func sessionDeleted(c *Codec, _ event.Event, _ event.SessionDeletedData) wire.Frame {
	return c.sessionEnd("Session was deleted", wire.SessionEndMeta{Reason: "deleted"}, nil)
}

func sessionPaused(c *Codec, _ event.Event, d event.SessionPausedData) wire.Frame {
	return c.sessionEnd("Session stopped. A new message continues it.", wire.SessionEndMeta{Reason: d.Reason, Open: true}, &d.Stats)
}

func (c *Codec) sessionEnd(text string, m wire.SessionEndMeta, s *event.Stats) wire.Frame {
	if s != nil {
		m.Duration, m.TotalMessages, m.TotalTasks, m.Completion = &s.DurationSeconds, &s.TotalMessages, &s.TotalSteps, s.CompletionStatus
		m.Stats = &wire.Stats{Spent: spent(s.Usage), ToolCalls: s.Usage.ToolCalls}
	}
	return wire.Frame{Event: wire.AgentSessionEnd, Content: text, Metadata: m, ShowContent: c.words.ended}
}

func sessionRestored(_ *Codec, e event.Event, d event.SessionRestoredData) wire.Frame {
	m := restoredMeta(sessionOf(e.Subject), d)
	m.RestoredAt = wire.Stamp(e.Time)
	return wire.Frame{Event: wire.AgentStateRestored, Content: "The session has the state of the export", Metadata: m}
}

func restoredMeta(session string, d event.SessionRestoredData) wire.StateRestoredMeta {
	warnings := d.Warnings
	if warnings == nil {
		warnings = []string{}
	}
	return wire.StateRestoredMeta{
		Stage: d.Stage, Integrity: "verified", OriginalID: session,
		ExportedAt: wire.Stamp(d.ExportedAt), ExportedSeq: d.ExportedSeq, MessageCount: d.MessageCount, Warnings: warnings, By: d.Principal,
	}
}

// Restored returns the frame that says that a session whose state was imported is there already: nothing was changed, and no
// event says it. An import into the same installation loses nothing, and so has no warnings.
func (c *Codec) Restored(at dialect.Link, session string, d event.SessionRestoredData) []byte {
	d.Warnings = nil
	m := restoredMeta(session, d)
	m.Context, m.RestoredAt = link(at), wire.Stamp(at.Now)
	return c.linked(at, session, wire.Frame{
		Event: wire.AgentStateRestored, Content: "The session continues: it has the state of the export and all events after it", Metadata: m,
	})
}

// messageReceived shows every viewer what was asked.
func messageReceived(_ *Codec, _ event.Event, d event.MessageReceivedData) wire.Frame {
	f := wire.Frame{
		Event: wire.UserMessage, Content: d.Content,
		Metadata: wire.EchoMeta{
			Context: wire.Context{RunID: d.RunID}, MessageID: d.MessageID, By: d.Principal, ClientID: d.ClientID, Queued: d.Queued, Sender: sender(d.Sender),
			ConfirmPlan: d.ConfirmPlan, OnBusy: d.OnBusy, MaxConcurrent: d.MaxConcurrent, TimeoutSeconds: d.TimeoutSeconds,
			Extra: optionalObject(d.Extra),
		},
	}
	if d.Mode == event.ModeSteps {
		f.Event, f.Content = wire.UserSolveTasks, wire.Tasks{Tasks: tasks(d.Steps)}
	}
	return f
}

// sender names who asked, if that is not a user.
func sender(s *event.Sender) string {
	if s == nil {
		return ""
	}
	return first(s.Route, s.Name, s.ID)
}

func messageRefused(c *Codec, _ event.Event, d event.MessageRefusedData) wire.Frame {
	return c.agentError(d.Message, wire.ErrorMeta{ErrorType: d.Code, Operation: "message", MessageID: d.MessageID})
}

func agentError(c *Codec, _ event.Event, d event.ErrorData) wire.Frame {
	return c.agentError(d.Message, wire.ErrorMeta{
		Context: run(d.RunID, d.ExecutionID), ErrorType: d.Code, Stage: d.Stage, Operation: d.Operation, Recovery: d.Recovery,
	})
}

// action returns the protocol's word for a verb: its tasks are steps of a plan elsewhere.
func action(verb string) string {
	switch verb {
	case command.CancelStep.String():
		return "cancel_task"
	case command.RestartStep.String():
		return "restart_task"
	}
	return verb
}

// notice is severe only where it warns.
func notice(c *Codec, _ event.Event, d event.NoticeData) wire.Frame {
	m := wire.NoticeMeta{
		Work: wire.Work{Context: wire.Context{RunID: d.RunID}, TaskID: first(d.StepID, d.TaskID)}, Code: d.Code, OK: d.OK, Mode: d.Mode,
		Action: action(first(d.Action, d.Code)),
	}
	if d.Level == "warning" {
		m.Type, m.Severity = d.Level, mildFault
	}
	switch d.Code {
	case event.NoWorker:
		m.Action, d.Message = wire.ActionNoWorker, c.words.noWorker
	case event.WorkerBack:
		m.Action, d.Message = wire.ActionWorkerBack, c.words.workerBack
	}
	d.Message = first(c.words.notices[d.Code], c.words.notices[d.Message], d.Message)
	return c.notice(first(d.Message, c.words.other), m)
}

func stateExported(c *Codec, _ event.Event, d event.StateExportedData) wire.Frame {
	m := wire.StateExportedMeta{
		ExportedAt: wire.Stamp(d.ExportedAt), ValidUntil: wire.Stamp(d.ValidUntil),
		SessionState: asObject(d.State), SignedState: optionalObject(d.Signed),
		LastSeq: d.Seq, StateHash: d.Hash, StateSize: len(d.Signed), History: c.history(d.History),
	}
	return wire.Frame{Event: wire.AgentStateExported, Metadata: m}
}

// history turns the events of an export into frames.
func (c *Codec) history(events []json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	for _, raw := range events {
		var e event.Event
		if json.Unmarshal(raw, &e) != nil {
			continue // no event, whose seq would be missing
		}
		for _, f := range c.Encode(e) {
			out = append(out, f)
		}
	}
	return out
}
