package pipeline_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/payload"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// replicas starts one of each service, and returns how to stop both at once.
func (r *rig) replicas(name string) (stop func()) {
	r.T.Helper()
	tasks, err := task.New(task.Config{Confirm: maxWait}, r.Deps(name+"-task"), struct{ tools.Toolbox }{})
	require.NoError(r.T, err)
	runs := r.service(name+"-runs", pipeline.Config{})
	require.NoError(r.T, tasks.Start(r.Ctx))
	require.NoError(r.T, runs.Start(r.Ctx))
	var once sync.Once
	stop = func() { once.Do(func() { tasks.Stop(); runs.Stop() }) }
	r.T.Cleanup(stop)
	return stop
}

func taskLog(taskID string) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal(taskID)}
}

// agentSays sends a command of the agent about its task.
func (r *rig) agentSays(taskID string, verb id.Name, commandID string, data any) {
	r.T.Helper()
	r.Command(cmd.Command{ID: commandID, Service: cmd.Task, Verb: verb, Tenant: id.DefaultTenant, Key: id.EntityFromExternal(taskID), Time: time.Now()}, data)
}

// asks has the agent ask, and returns the question that the log of the job shows, the n-th.
func (r *rig) asks(l subject.Log, taskID, request string, timeout time.Duration, n int) event.InputRequestedData {
	r.T.Helper()
	r.agentSays(taskID, cmd.AskTask, taskID+"."+request, cmd.TaskQuestion{
		TaskID: taskID, AgentID: "w1", RequestID: request, Message: json.RawMessage(`"which?"`), TimeoutMS: timeout.Milliseconds(),
	})
	all := r.Until(l, event.InputRequested, n)
	var d event.InputRequestedData
	for _, e := range all {
		if e.Type == event.InputRequested {
			var err error
			d, err = event.As[event.InputRequestedData](e)
			require.NoError(r.T, err)
		}
	}
	return d
}

// told are the events of a type in a log.
func told[T event.Data](r *rig, l subject.Log) (out []T) {
	r.T.Helper()
	var zero T
	for _, e := range r.All(l) {
		if e.Type == zero.EventType() {
			d, err := event.As[T](e)
			require.NoError(r.T, err)
			out = append(out, d)
		}
	}
	return out
}

// given returns the task of the log's job once the agent has it. An agent may be told of a task twice, if the service stops before
// it notes that the agent was told: what it hears again of earlier tasks is skipped.
func (r *rig) given(l subject.Log, heard <-chan event.Event) string {
	r.T.Helper()
	r.Until(l, event.JobStarted, 1)
	jobs := r.fold(l).Delegated()
	require.Len(r.T, jobs, 1)
	for {
		if a, _ := assigned(r.T, heard); a.TaskID == jobs[0].SwarmTask {
			return a.TaskID
		}
	}
}

// interrogation is a run whose agent asks four times: it gets an answer in the session, one at the task, none in time, and
// does not wait for the last. The services stop at the event with the number, and others continue. It returns the number of events.
func interrogation(r *rig, name string, heard <-chan event.Event, stopAt int) int {
	r.T.Helper()
	stop := r.replicas(name + "a")
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
	live := make(chan *nats.Msg, 1000)
	sub, err := r.Conn.NATS().ChanSubscribe(subject.LiveEverything, live)
	require.NoError(r.T, err)
	over, stopped := make(chan struct{}), make(chan int, 1)
	go func() {
		seen := 0
		for {
			select {
			case <-live:
				if seen++; seen == stopAt {
					stop()
					stop = r.replicas(name + "b")
				}
			case <-over:
				stopped <- seen
				return
			}
		}
	}()
	r.open(l)
	r.command(l, cmd.SendMessage, name+".m1", cmd.UserMessage{Content: "weld it", RunSpec: event.RunSpec{Mode: event.ModeChat, Agent: "Weld-o-mat"}})
	taskID := r.given(l, heard)

	q := r.asks(l, taskID, "q1", time.Hour, 1)
	r.command(l, cmd.Answer, name+".a1", cmd.AnswerQuestion{InputID: q.InputID, Approved: true, Message: json.RawMessage(`"red"`), Segment: "s2"})
	r.Until(l, event.InputAnswered, 1)
	r.asks(l, taskID, "q2", time.Hour, 2)
	r.agentSays(taskID, cmd.MessageTask, name+".a2", cmd.TaskMessage{TaskID: taskID, InputID: "q2", Message: json.RawMessage(`"blue"`)})
	r.Until(l, event.InputAnswered, 2)
	r.asks(l, taskID, "q3", time.Millisecond, 3)
	r.Until(l, event.InputExpired, 1)
	r.asks(l, taskID, "q4", time.Hour, 4)
	r.result(taskID, cmd.TaskResult{Result: json.RawMessage(`"welded"`)})
	r.Until(l, event.RunCompleted, 1)
	close(over)
	n := <-stopped
	require.NoError(r.T, sub.Unsubscribe())
	stop()

	require.Len(r.T, told[event.InputRequestedData](r, l), 4, name)
	answers := told[event.InputAnsweredData](r, l)
	require.Len(r.T, answers, 2, name)
	require.Equal(r.T, []string{name + ".a1", `"red"`, "s2", "p-" + name + ".a1"}, []string{answers[0].CommandID, string(answers[0].Message), answers[0].Segment, answers[0].By})
	require.Equal(r.T, []string{name + ".a2", `"blue"`, ""}, []string{answers[1].CommandID, string(answers[1].Message), answers[1].Segment})
	ends := told[event.InputExpiredData](r, l)
	require.Len(r.T, ends, 2, name)
	require.False(r.T, ends[0].Withdrawn)
	require.True(r.T, ends[1].Withdrawn)
	require.Len(r.T, told[event.TaskMessagedData](r, taskLog(taskID)), 2, name)
	require.Len(r.T, told[event.RunCompletedData](r, l), 1, name)
	return n
}

// TestQuestionsOutliveTheirServices: whatever event is the last one that both services lived to see, each question and each
// answer is in the log of the session once.
func TestQuestionsOutliveTheirServices(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	steps := interrogation(r, "whole", r.welder(), -1)
	require.Greater(t, steps, 20)
	const lanes = 4
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			heard := r.welder()
			for at := 1 + lane; at <= steps; at += lanes {
				interrogation(r, fmt.Sprint("s", at), heard, at)
			}
		})
	}
	t.Logf("stopped after each of %d events", steps)
}

// TestAQuestionThatNothingHasFollowed: the service has died between the question and its report. Another one, which the
// command comes to again, reports it.
func TestAQuestionThatNothingHasFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	heard := r.welder()
	stop := r.replicas("a")
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("followed")}
	r.open(l)
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: "weld it", RunSpec: event.RunSpec{Mode: event.ModeChat, Agent: "Weld-o-mat"}})
	a, _ := assigned(t, heard)
	r.Until(l, event.JobStarted, 1)
	stop()
	w := r.Log.Writer(taskLog(a.TaskID), nil)
	require.NoError(t, w.Sync(r.Ctx))
	appended := false
	require.NoError(t, w.Append(r.Ctx, func() ([]event.Event, error) {
		if appended {
			return nil, nil
		}
		appended = true
		e, err := event.New(taskLog(a.TaskID), "ask.asked", "test", time.Now(), event.TaskAskedData{
			TaskHead: a.TaskHead, InputID: "q", Message: json.RawMessage(`{"question":"which?"}`), TimeoutMS: 3_600_000,
		})
		return []event.Event{e}, err
	}))
	r.replicas("b")
	r.agentSays(a.TaskID, cmd.AskTask, "ask", cmd.TaskQuestion{TaskID: a.TaskID, AgentID: "w1", RequestID: "q", Message: json.RawMessage(`{"question":"which?"}`), TimeoutMS: 3_600_000})
	all := r.Until(l, event.InputRequested, 1)
	d, err := event.As[event.InputRequestedData](all[len(all)-1])
	require.NoError(t, err)
	require.Equal(t, "which?", d.Summary)
	require.True(t, strings.HasPrefix(d.InputID, event.AgentInput))
	require.Len(t, told[event.TaskAskedData](r, taskLog(a.TaskID)), 1)
}

// TestOneAnswerToAnAgentCounts: of answers in the session and at the task at the same time, the agent gets one, and the session
// shows that one.
func TestOneAnswerToAnAgentCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	heard := r.welder()
	r.replicas("a")
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("race")}
	r.open(l)
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: "weld it", RunSpec: event.RunSpec{Mode: event.ModeChat, Agent: "Weld-o-mat"}})
	a, _ := assigned(t, heard)
	const rounds = 20
	for n := 1; n <= rounds; n++ {
		request := fmt.Sprint("q", n)
		q := r.asks(l, a.TaskID, request, time.Hour, n)
		var racers sync.WaitGroup
		for i := range 4 {
			said := json.RawMessage(fmt.Sprintf(`"%d.%d"`, n, i))
			racers.Go(func() {
				if i%2 == 0 {
					r.command(l, cmd.Answer, fmt.Sprintf("a%d.%d", n, i), cmd.AnswerQuestion{InputID: q.InputID, Approved: true, Message: said})
					return
				}
				r.agentSays(a.TaskID, cmd.MessageTask, fmt.Sprintf("a%d.%d", n, i), cmd.TaskMessage{TaskID: a.TaskID, InputID: request, Message: said})
			})
		}
		racers.Wait()
		r.Until(l, event.InputAnswered, n)
	}
	r.result(a.TaskID, cmd.TaskResult{Result: json.RawMessage(`"welded"`)})
	r.Until(l, event.RunCompleted, 1)
	given, shown := told[event.TaskMessagedData](r, taskLog(a.TaskID)), told[event.InputAnsweredData](r, l)
	require.Len(t, given, rounds)
	require.Len(t, shown, rounds)
	for i := range given {
		require.Equal(t, []string{given[i].MessageID, string(given[i].Message)}, []string{shown[i].CommandID, string(shown[i].Message)})
	}
}

// TestAMemberThatIsAnAgentAsks: the question is in the member's log, and the answer of the team's owner goes to the agent.
func TestAMemberThatIsAnAgentAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.swarm()
	r.members(r.Deps("a"))
	heard := r.welder()
	l := coder(t)
	r.create(l, event.MemberDefinition{Name: "Welder", Agent: "Weld-o-mat"})
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: "weld it"})
	a, _ := assigned(t, heard)
	q := r.asks(l, a.TaskID, "q1", time.Hour, 1)
	r.command(l, cmd.Answer, "other", cmd.AnswerQuestion{InputID: q.InputID, Approved: true, Feedback: "blue"})
	r.Command(cmd.Command{
		ID: "a1", Service: cmd.JobRef{Kind: l.Kind}.Manager(), Verb: cmd.Answer, Tenant: l.Tenant, Key: l.Entity, Time: time.Now(), Principal: "p-create",
	}, cmd.AnswerQuestion{InputID: q.InputID, Approved: true, Feedback: "red"})
	r.Until(l, event.InputAnswered, 1)
	given := told[event.TaskMessagedData](r, taskLog(a.TaskID))
	require.Len(t, given, 1)
	require.JSONEq(t, `{"approved":true,"text":"red"}`, string(given[0].Message))
	require.Equal(t, event.DecisionApprove, told[event.InputAnsweredData](r, l)[0].Decision)
}

// TestLargeQuestions are cut in the log of the job, and take answers all the same. The object that a large question is stored as
// belongs to the task.
func TestLargeQuestions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	heard := r.welder()
	r.replicas("a")
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("large")}
	r.open(l)
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: "weld it", RunSpec: event.RunSpec{Mode: event.ModeChat, Agent: "Weld-o-mat"}})
	a, _ := assigned(t, heard)
	large := `"` + strings.Repeat("é", 60<<10) + `"`
	for n, q := range []cmd.TaskQuestion{{Message: json.RawMessage(large)}, {Message: json.RawMessage(`{"text":` + large + `}`), Options: json.RawMessage(`["a"]`)}} {
		q.TaskID, q.AgentID, q.RequestID, q.TimeoutMS = a.TaskID, "w1", fmt.Sprint("q", n), 3_600_000
		if n > 0 {
			shrunk, err := payload.New(r.Conn).Shrink(r.Ctx, taskLog(a.TaskID), &q)
			require.NoError(t, err)
			require.True(t, shrunk)
			require.NotNil(t, q.MessageRef)
		}
		r.agentSays(a.TaskID, cmd.AskTask, fmt.Sprint("ask", n), q)
		r.Until(l, event.InputRequested, n+1)
		d := told[event.InputRequestedData](r, l)[n]
		require.True(t, d.Cut)
		require.Nil(t, d.Options)
		require.Equal(t, strings.Repeat("é", 1000), d.Summary)
		require.Equal(t, `"`+d.Summary+`"`, string(d.Message))
		r.command(l, cmd.Answer, fmt.Sprint("a", n), cmd.AnswerQuestion{InputID: d.InputID, Approved: true, Message: json.RawMessage(`1`)})
		r.Until(l, event.InputAnswered, n+1)
	}
}
