package worker_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/services/tools/remote"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker"
)

func runID(messageID string) string { return conversation.RunID(messageID) }

func call(name, args string) scripted.Call {
	return scripted.Call{ID: "call_0", Name: name, Arguments: args}
}

func TestAnAnswerMadeWithTools(t *testing.T) {
	r := newRig(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(4,
			scripted.Call{ID: "call_0", Name: "workspace_list_files", Arguments: `{}`},
			scripted.Call{ID: "call_1", Name: "workspace_read_file", Arguments: `{"path":"notes.md"}`}), scripted.Usage(7, 3)),
		scripted.Stream(scripted.Text("There is ", "notes.md: ", "buy milk"), scripted.Usage(20, 5)),
		scripted.Stream(scripted.Text("again"))))
	r.worker("w1", nil)
	events := r.until(r.ask("what is there?"), event.RunCompleted)
	end := last[event.RunCompletedData](t, events)
	require.Equal(t, "There is notes.md: buy milk", end.Content)
	in, out := int64(27), int64(8)
	require.Equal(t, &event.Usage{LLMCalls: 2, ToolCalls: 2, InputTokens: &in, OutputTokens: &out}, end.Usage)
	require.Equal(t, 2, servicetest.Count(events, event.ToolCompleted))
	require.Equal(t, 2, servicetest.Count(events, event.UsageRecorded))

	text := ""
	for _, e := range events {
		if e.Type == event.MessageDelta {
			d, err := event.As[event.MessageDeltaData](e)
			require.NoError(t, err)
			text += d.Text
		}
	}
	require.Equal(t, "There is notes.md: buy milk", text, "the deltas are the answer")

	x, err := r.llm.Exchange(r.Ctx, 2)
	require.NoError(t, err)
	require.Contains(t, string(x.Body), "buy milk", "the model is shown the tool's result")
	r.until(r.ask("and again?"), event.RunCompleted)
	x, err = r.llm.Exchange(r.Ctx, 3)
	require.NoError(t, err)
	require.Contains(t, string(x.Body), "what is there?", "the second run knows the first")
}

// TestPiecesGather: the first piece of a text is an event of its own, those that come in the pause after it are one event, and the
// end of the text ends the pause.
func TestPiecesGather(t *testing.T) {
	open := make(chan struct{})
	r := newRig(t, scripted.Sequence(scripted.Stream(scripted.Text("first "), scripted.Gate(open), scripted.Text("of ", "many ", "pieces"))))
	r.worker("w1", func(c *worker.Config) { c.DeltaPause = time.Hour })
	run := r.ask("what comes?")
	r.until(run, event.MessageDelta)
	close(open)
	var texts []string
	for _, e := range r.until(run, event.RunCompleted) {
		if e.Type == event.MessageDelta {
			d, err := event.As[event.MessageDeltaData](e)
			require.NoError(t, err)
			texts = append(texts, d.Text)
		}
	}
	require.Equal(t, []string{"first ", "of many pieces"}, texts)
}

func TestMessagesWaitForTheirTurn(t *testing.T) {
	open := make(chan struct{})
	r := newRig(t, scripted.Sequence(
		scripted.Stream(scripted.Text("one"), scripted.Gate(open)), scripted.Stream(scripted.Text("two"))))
	r.worker("w1", nil)
	first := r.ask("1")
	second := r.ask("2")
	r.until(second, event.MessageReceived)
	close(open)
	events := r.until(second, event.RunCompleted)
	var order []string
	for _, e := range events {
		if e.Type == event.RunStarted || e.Type == event.RunCompleted {
			order = append(order, string(e.Type)+" "+runOf(t, e))
		}
	}
	require.Equal(t, []string{
		"run.started " + first, "run.completed " + first, "run.started " + second, "run.completed " + second,
	}, order)
}

func TestAFailingModelEndsTheRun(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Fail(http.StatusUnauthorized, "invalid_api_key", "secret-detail")))
	r.worker("w1", nil)
	events := r.until(r.ask("hello"), event.RunFailed)
	d := last[event.RunFailedData](t, events)
	require.Equal(t, string(fault.ModelKeyRefused), d.Code)
	require.NotContains(t, d.Message, "secret-detail")
	require.Equal(t, &event.ProviderError{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "secret-detail"}, d.Provider)
}

func TestToolErrorsGoToTheModel(t *testing.T) {
	r := newRig(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, call("workspace_read_file", `{"path":"../../etc/passwd"}`))),
		scripted.Stream(scripted.Calls(9, call("no_such_tool", `{}`))),
		scripted.Stream(scripted.Calls(9, call("bank_pay", `{"amount":"much"}`))),
		scripted.Stream(scripted.Text("I could not."))))
	r.worker("w1", nil)
	events := r.until(r.ask("try"), event.RunCompleted)
	var codes []string
	for _, e := range events {
		if e.Type == event.ToolFailed {
			d, err := event.As[event.ToolFailedData](e)
			require.NoError(t, err)
			codes = append(codes, d.Code)
		}
	}
	require.Equal(t, []string{string(fault.ToolFailed), string(fault.ToolNotFound), string(fault.ToolBadInput)}, codes)
	require.Zero(t, r.pays.Load())
	ids := map[string]bool{}
	for _, e := range events {
		if e.Type == event.ToolCalled {
			d, err := event.As[event.ToolCalledData](e)
			require.NoError(t, err)
			require.False(t, ids[d.CallID], "call ids are unique although the model repeats them")
			ids[d.CallID] = true
		}
	}
}

func TestRoundsAreBounded(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Calls(9, call("workspace_list_files", `{}`)))))
	r.worker("w1", func(c *worker.Config) { c.MaxRounds = 3 })
	events := r.until(r.ask("loop"), event.RunFailed)
	require.Equal(t, string(fault.TurnLimit), last[event.RunFailedData](t, events).Code)
	require.Equal(t, 3, servicetest.Count(events, event.ToolCompleted))
}

// TestTakeoverInTheMiddleOfAMessage cuts the first worker off the bus while the
// model speaks; another finishes the run.
func TestTakeoverInTheMiddleOfAMessage(t *testing.T) {
	r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N == 1 {
			return scripted.Stream(scripted.Text("half an"), scripted.Hang())
		}
		return scripted.Stream(scripted.Text("a whole answer"))
	})
	_, cut := r.worker("w1", hasty)
	run := r.ask("speak")
	r.until(run, event.MessageDelta)
	r.worker("w2", hasty)
	cut.NATS().Close()
	events := r.until(run, event.RunCompleted)
	require.Equal(t, "a whole answer", last[event.RunCompletedData](t, events).Content)
	require.Equal(t, 2, last[event.RunCompletedData](t, events).Attempt)
	require.Equal(t, 1, servicetest.Count(events, event.MessageDiscarded))
	require.Equal(t, 2, servicetest.Count(events, event.JobStarted))
}

// TestARunIsTakenUpByANewConsumer: the bus has lost count of the deliveries, with the
// consumer that kept it. The claimed run is not mistaken for one that is in good hands.
func TestARunIsTakenUpByANewConsumer(t *testing.T) {
	r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N == 1 {
			return scripted.Stream(scripted.Text("half an"), scripted.Hang())
		}
		return scripted.Stream(scripted.Text("a whole answer"))
	})
	_, cut := r.worker("w1", nil)
	run := r.ask("speak")
	r.until(run, event.MessageDelta)
	cut.NATS().Close()
	require.NoError(t, r.Conn.JS().DeleteConsumer(r.Ctx, subject.StreamCommands, cmd.Worker.String()))
	r.worker("w2", nil)
	events := r.until(run, event.RunCompleted)
	require.Equal(t, 2, last[event.RunCompletedData](t, events).Attempt)
}

// TestASecondWorkItemIsLeftAlone: a run that one work item has brought to a worker is
// not taken from it by another item.
func TestASecondWorkItemIsLeftAlone(t *testing.T) {
	open := make(chan struct{})
	r := newRig(t, scripted.Sequence(scripted.Stream(scripted.Text("one "), scripted.Gate(open), scripted.Text("answer"))))
	r.worker("w1", nil)
	run := r.ask("speak")
	r.until(run, event.MessageDelta)
	require.NoError(t, r.Send.Send(r.Ctx, cmd.Command{
		ID: "again", Service: cmd.Worker, Verb: cmd.DoJob, Tenant: r.ref.Tenant, Key: r.ref.Entity,
		Time: time.Now(), Data: []byte(`{"run_id":"` + run + `"}`),
	}))
	require.Eventually(t, func() bool {
		s, err := r.Conn.JS().Stream(r.Ctx, subject.StreamCommands)
		return err == nil && s.CachedInfo().State.Msgs == 1 // only the first is still on the queue
	}, maxWait, 20*time.Millisecond)
	close(open)
	events := r.until(run, event.RunCompleted)
	require.Equal(t, "one answer", last[event.RunCompletedData](t, events).Content)
	require.Equal(t, 1, servicetest.Count(events, event.JobStarted))
}

// TestATollIsNotPaidTwice cuts the worker off while a tool runs that may not be
// repeated: its outcome becomes unknown and the model is told.
func TestATollIsNotPaidTwice(t *testing.T) {
	r := newRig(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, call("bank_pay", `{"amount":5}`), scripted.Call{
			ID: "call_1", Name: "workspace_list_files", Arguments: `{}`,
		})),
		scripted.Stream(scripted.Text("please check your account"))))
	_, cut := r.worker("w1", hasty)
	run := r.ask("pay")
	<-r.paying
	r.until(run, event.ToolCompleted) // the other call
	r.worker("w2", hasty)
	cut.NATS().Close()
	events := r.until(run, event.RunCompleted)
	r.release <- struct{}{}
	require.EqualValues(t, 1, r.pays.Load(), "paid once")
	require.Equal(t, 1, servicetest.Count(events, event.ToolUnknown))
	x, err := r.llm.Exchange(r.Ctx, 2)
	require.NoError(t, err)
	require.True(t, strings.Contains(string(x.Body), "Outcome unknown"), "the model is told: %s", x.Body)
	require.Equal(t, 1, servicetest.Count(events, event.RunCompleted))
}

// TestALateWorkerIsRefused holds a worker up past its lease. When it comes back its
// result is refused, and the log says so.
func TestALateWorkerIsRefused(t *testing.T) {
	open := make(chan struct{})
	r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N == 1 {
			return scripted.Stream(scripted.Text("late"), scripted.Gate(open))
		}
		return scripted.Stream(scripted.Text("in time"))
	})
	r.worker("w1", nil)
	run := r.ask("who is first?")
	before := r.until(run, event.MessageDelta)
	r.claim(run, last[event.MessageDeltaData](t, before).ExecutionID, 2)
	close(open)
	events := r.until(run, event.AttemptRefused)
	d := last[event.AttemptRefusedData](t, events)
	require.Equal(t, 1, d.Attempt)
	require.Equal(t, 2, d.Current)
	require.Zero(t, servicetest.Count(events, event.RunCompleted))
}

// claim plays a second worker that takes the run and says nothing more.
func (r *rig) claim(run, exec string, attempt int) {
	r.T.Helper()
	w := r.Log.Writer(r.ref, nil)
	done := false
	require.NoError(r.T, w.Append(r.Ctx, func() ([]event.Event, error) {
		if done {
			return nil, nil
		}
		e, err := event.New(r.ref, "claim-2", "test", time.Now(), event.JobStartedData{
			RunID: run, ExecutionID: exec, Attempt: attempt, Worker: "w2", Resumed: true,
		})
		return []event.Event{e}, err
	}))
}

// TestAttemptsAreBounded: a run whose workers all die gets its terminal event.
func TestAttemptsAreBounded(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("x"), scripted.Hang())))
	run := ""
	for i := range 3 {
		s, _ := r.worker("w"+string(rune('1'+i)), nil)
		if run == "" {
			run = r.ask("kill me")
		}
		_, err := r.llm.Exchange(r.Ctx, i+1)
		require.NoError(t, err)
		s.Stop()
	}
	r.worker("w4", nil)
	events := r.until(run, event.RunFailed)
	require.Equal(t, string(fault.AttemptsOver), last[event.RunFailedData](t, events).Code)
	require.Equal(t, 3, servicetest.Count(events, event.JobStarted))
	next := r.ask("next")
	r.until(next, event.RunStarted)
}

func TestServiceIsAComponent(t *testing.T) {
	r := newRig(t, scripted.Smart())
	n := 0
	lifecycletest.Exercise(t, func() lifecycle.Component {
		n++
		s, err := worker.New(worker.Config{}, worker.Deps{
			Conn: r.Conn, Log: r.Log, Commands: r.Send, Directory: r.Dir, Tools: remote.NewClient(r.Conn),
			Model: demo.New(), Instance: id.MustName(fmt.Sprint("c", n)), Logger: zerolog.Nop(),
		})
		require.NoError(t, err)
		return s
	})
}
