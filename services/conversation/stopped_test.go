package conversation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
)

// speaks is a chat whose model has said the pieces of a message.
func (w *world) speaks(message string, pieces ...string) (run string) {
	run = conversation.RunID(message)
	w.do(command.SendMessage, message, command.UserMessage{Content: message, RunSpec: event.RunSpec{Mode: event.ModeChat}})
	w.append(message+".claim", event.JobStartedData{RunID: run, Attempt: 1, Worker: "w1"})
	w.append(message+".m", event.MessageStartedData{RunID: run, MessageID: message + ".a", Attempt: 1, Waits: true})
	for n, piece := range pieces {
		w.append(message+".d"+string(rune('0'+n)), event.MessageDeltaData{RunID: run, MessageID: message + ".a", Attempt: 1, Text: piece, Begins: n == 0})
	}
	return run
}

// The text that people have read stays when its run is ended, however it is ended, and the model is told.
func TestAStoppedAnswerStays(t *testing.T) {
	for name, end := range map[string]func(w *world, run string){
		"cancelled": func(w *world, _ string) { w.do(command.Cancel, "stop", command.CancelRun{}) },
		"closed":    func(w *world, _ string) { w.do(command.Close, "stop", command.CloseSession{}) },
		"given up": func(w *world, run string) {
			w.do(command.AbandonJob, "dead", command.AbandonedJob{JobRef: command.JobRef{RunID: run}, Code: string(fault.AttemptsOver)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.do(command.Open, "open", command.OpenSession{Dialect: "orbit"})
			run := w.speaks("one", "once ", "upon")
			before := len(w.log)
			end(w, run)
			said, err := event.As[event.MessageCompletedData](w.log[before])
			require.NoError(t, err)
			require.Equal(t, event.MessageCompleted, w.log[before].Type)
			require.Equal(t, event.MessageCompletedData{
				MessageID: "one.a", RunID: run, ExecutionID: w.state.Run(run).ExecutionID, Attempt: 1, Role: event.RoleAssistant,
				Content: "once upon", StopReason: event.StopStopped,
			}, said)
			require.True(t, w.state.Run(run).Status.Terminal())
			require.Equal(t, conversation.ActionNone, w.state.Next(run).Kind)
			if w.state.Closed {
				return
			}
			w.do(command.SendMessage, "two", command.UserMessage{Content: "go on", RunSpec: event.RunSpec{Mode: event.ModeChat}})
			got := w.state.Brief(conversation.RunID("two"), 1<<20).History
			require.Len(t, got, 3)
			require.Equal(t, event.RoleAssistant, got[1].Role)
			require.Contains(t, got[1].Content, "once upon\n\n[Stopped here")
		})
	}
}

// A message of which nothing was read leaves nothing.
func TestAStoppedMessageWithoutText(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "open", command.OpenSession{Dialect: "orbit"})
	w.speaks("one")
	before := len(w.log)
	w.do(command.Cancel, "stop", command.CancelRun{})
	require.Equal(t, event.MessageDiscarded, w.log[before].Type)
	w.do(command.SendMessage, "two", command.UserMessage{Content: "go on", RunSpec: event.RunSpec{Mode: event.ModeChat}})
	require.Len(t, w.state.Brief(conversation.RunID("two"), 1<<20).History, 2)
}

// The service that stops an answer appends two events. If it dies in between, the text is not taken for the answer: a worker that comes
// later continues with the run, and a repeat of the command ends it.
func TestAStopThatDiesHalfway(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "open", command.OpenSession{Dialect: "orbit"})
	run := w.speaks("one", "once ", "upon")
	_, whole := w.try(w.command(command.Cancel, "stop", command.CancelRun{}), 1)
	require.False(t, whole)
	require.Equal(t, conversation.ActionNone, w.state.Next(run).Kind, "the worker that said it has nothing to do")
	w.append("again", event.JobStartedData{RunID: run, Attempt: 2, Worker: "w2"})
	require.Equal(t, conversation.ActionGenerate, w.state.Next(run).Kind)
	w.do(command.Cancel, "stop", command.CancelRun{})
	require.Equal(t, conversation.Cancelled, w.state.Run(run).Status)
}

// The same holds of the last part of a plan, and of a step that a person stops; a step that is begun again takes its text back.
func TestAStoppedStepKeepsItsText(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world)
		want event.Type
	}{
		"cancelled": {func(w *world) { w.do(command.CancelStep, "stop", command.StepRef{StepID: "t1"}) }, event.MessageCompleted},
		"run":       {func(w *world) { w.do(command.Cancel, "stop", command.CancelRun{}) }, event.MessageCompleted},
		"restarted": {func(w *world) { w.do(command.RestartStep, "again", command.StepRef{StepID: "t1"}) }, event.MessageDiscarded},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.do(command.Open, "open", command.OpenSession{Dialect: "orbit"})
			w.do(command.SendMessage, "one", command.UserMessage{Content: "do it", RunSpec: event.RunSpec{
				Mode: event.ModeSteps, Steps: []event.Step{{ID: "t1", Title: "draw"}},
			}})
			u := w.state.Unclaimed()[0]
			w.append("claim", event.JobStartedData{RunID: u.RunID, Attempt: 1, Worker: "w1", Part: u.Part})
			w.append("m", event.MessageStartedData{RunID: u.RunID, MessageID: "a", Attempt: 1, Part: u.Part})
			w.append("d", event.MessageDeltaData{RunID: u.RunID, MessageID: "a", Attempt: 1, Text: "half", Part: u.Part})
			before := len(w.log)
			c.end(w)
			require.Equal(t, c.want, w.log[before].Type)
		})
	}
}

// The answer of a plan that is stopped while it is written is what later runs know of it.
func TestAStoppedAnswerOfAPlan(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "open", command.OpenSession{Dialect: "orbit"})
	w.do(command.SendMessage, "one", command.UserMessage{Content: "do it", RunSpec: event.RunSpec{
		Mode: event.ModeSteps, Steps: []event.Step{{ID: "t1", Title: "draw"}, {ID: "t2", Title: "write"}},
	}})
	for len(w.state.Unclaimed()) > 0 {
		u := w.state.Unclaimed()[0]
		w.append(u.ID+".claim", event.JobStartedData{RunID: u.RunID, Attempt: 1, Worker: "w1", Part: u.Part})
		w.append(u.ID+".m", event.MessageStartedData{RunID: u.RunID, MessageID: u.ID + ".a", Attempt: 1, Part: u.Part})
		if u.Part.Stage == event.StageAggregation {
			w.append(u.ID+".d", event.MessageDeltaData{RunID: u.RunID, MessageID: u.ID + ".a", Attempt: 1, Text: "both", Part: u.Part})
			break
		}
		w.append(u.ID+".done", event.MessageCompletedData{RunID: u.RunID, MessageID: u.ID + ".a", Attempt: 1, Content: "done", Part: u.Part})
		w.do(command.CheckDeadlines, u.ID+".go", nil)
	}
	w.do(command.Cancel, "stop", command.CancelRun{})
	w.do(command.SendMessage, "two", command.UserMessage{Content: "go on", RunSpec: event.RunSpec{Mode: event.ModeChat}})
	got := w.state.Brief(conversation.RunID("two"), 1<<20).History
	require.Len(t, got, 3)
	require.Contains(t, got[1].Content, "both\n\n[Stopped here")
}
