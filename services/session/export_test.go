package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/session"
	"github.com/waggle-dev/waggle/services/session/seal"
)

// state is the readable state as clients read it.
type state struct {
	Stage string `json:"stage"`
	Plan  struct {
		Question string
		Status   string
		Tasks    []struct{ ID, Status, Output string }
	} `json:"plan_context"`
	Current   *string  `json:"current_task_id"`
	Completed []string `json:"completed_task_ids"`
	Agent     struct {
		Memory []struct{ Role, Content string } `json:"llm_memory"`
	} `json:"agent_state"`
}

func readable(t testing.TB, d event.StateExportedData) state {
	t.Helper()
	var s state
	require.NoError(t, json.Unmarshal(d.State, &s))
	return s
}

// pipelineRun begins a run with two tasks, one after the other, and solves the first
// as a worker does.
func (r *rig) pipelineRun(l subject.Log) {
	r.T.Helper()
	r.command(l, cmd.Pipeline, cmd.SendMessage, "solve", cmd.UserMessage{Content: "make slides", RunSpec: event.RunSpec{
		Mode: event.ModeSteps, Steps: []event.Step{{ID: "t1", Title: "one"}, {ID: "t2", Title: "two", Dependencies: []string{"t1"}}},
	}})
	events := r.Until(l, event.StepStarted, 1)
	task, err := event.As[event.StepStartedData](events[len(events)-1])
	require.NoError(r.T, err)
	part := task.Part
	r.append(
		l,
		event.JobStartedData{RunID: task.RunID, ExecutionID: task.ExecutionID, Attempt: 1, Worker: "w", Part: part},
		event.MessageStartedData{RunID: task.RunID, MessageID: "a1", Attempt: 1, Role: event.RoleAssistant, Part: part},
		event.MessageCompletedData{RunID: task.RunID, MessageID: "a1", Attempt: 1, Role: event.RoleAssistant, Content: "first result", Part: part},
	)
	r.command(l, cmd.Pipeline, cmd.SettleJob, "ended", cmd.JobRef{RunID: task.RunID, JobID: part.JobID})
	r.Until(l, event.StepCompleted, 1)
	r.untilTask(l, "t2")
}

// untilTask waits until an attempt at the task has begun.
func (r *rig) untilTask(l subject.Log, taskID string) event.StepStartedData {
	r.T.Helper()
	var got event.StepStartedData
	require.Eventually(r.T, func() bool {
		for _, e := range r.All(l) {
			if d, err := event.As[event.StepStartedData](e); err == nil && e.Type == event.StepStarted && d.StepID == taskID {
				got = d
				return true
			}
		}
		return false
	}, maxWait, 5*time.Millisecond)
	return got
}

// TestASessionMovesToAnotherCluster: the export holds the state of an active run, the import
// resumes it, and completed work is not repeated.
func TestASessionMovesToAnotherCluster(t *testing.T) {
	t.Parallel()
	here, there := newRig(t), newRig(t)
	other := bytes.Repeat([]byte("o"), seal.MinKey)
	here.start("a", session.Config{StateKeys: keys})
	there.start("a", session.Config{StateKeys: [][]byte{other, keys[0]}})
	here.startPipeline("p")
	there.startPipeline("p")
	here.open(log, event.Preferences{Language: "en_US", Extra: []byte(`{"big":9007199254740993}`)})
	here.pipelineRun(log)

	exported, err := here.export(cmd.ExportRequest{})
	require.NoError(t, err)
	s := readable(t, exported)
	require.Equal(t, "solving", s.Stage)
	require.Equal(t, "in_progress", s.Plan.Status)
	require.Equal(t, []string{"t1"}, s.Completed)
	require.Equal(t, "t2", *s.Current)
	require.Equal(t, "first result", s.Plan.Tasks[0].Output)
	require.Equal(t, seal.Valid, exported.ValidUntil.Sub(exported.ExportedAt))
	last, err := here.Log.Last(here.Ctx, log)
	require.NoError(t, err)
	require.Equal(t, last.Seq, exported.Seq)

	// At home the session is known: nothing is restored.
	reply, err := here.restore(exported.Signed)
	require.NoError(t, err)
	require.Equal(t, log.Entity, reply.Session)
	require.False(t, reply.Restored)
	require.Equal(t, exported.Seq, reply.Exported.Seq, "the gateway can say what was imported")

	reply, err = there.restore(exported.Signed)
	require.NoError(t, err)
	require.Equal(t, log.Entity, reply.Session)
	require.True(t, reply.Restored)
	events := there.Until(log, event.StepStarted, 1)
	require.Equal(t, event.SessionRestored, events[0].Type)
	require.EqualValues(t, 1, events[0].Sequence)
	restored, err := event.As[event.SessionRestoredData](events[0])
	require.NoError(t, err)
	require.Equal(t, exported.Seq, restored.ExportedSeq)
	require.Equal(t, "solving", restored.Stage)
	require.Equal(t, "alice", restored.Principal)
	require.Contains(t, string(restored.State), "9007199254740993", "numbers keep their digits")
	require.Equal(t, "t2", there.untilTask(log, "t2").StepID)
	for _, e := range there.All(log) {
		if d, err := event.As[event.StepStartedData](e); err == nil && e.Type == event.StepStarted {
			require.NotEqual(t, "t1", d.StepID, "it was done")
		}
	}
	got, err := there.attach(cmd.AttachRequest{})
	require.NoError(t, err)
	require.Equal(t, "en_US", got.Language)

	// Again, it changes nothing; neither does an older state.
	again, err := there.restore(exported.Signed)
	require.NoError(t, err)
	require.Equal(t, reply, again, "a repeat has the same answer: what was seen before is of the former life")
	moved, err := there.export(cmd.ExportRequest{})
	require.NoError(t, err)
	require.Equal(t, []string{"t1"}, readable(t, moved).Completed)
	require.Equal(t, "make slides", readable(t, moved).Plan.Question)

	// A state signed with an unknown key is refused.
	_, err = here.restore(moved.Signed)
	isFault(t, err, fault.StateTampered)
	there.command(log, cmd.Pipeline, cmd.Cancel, "stop", cmd.CancelRun{})
	there.Until(log, event.RunCancelled, 1)
}

// TestASessionComesBack: a session that has gone on elsewhere takes the place of what
// was left behind.
func TestASessionComesBack(t *testing.T) {
	t.Parallel()
	here, there := newRig(t), newRig(t)
	for _, r := range []*rig{here, there} {
		r.start("a", session.Config{StateKeys: keys})
		r.startPipeline("p")
	}
	move := func(from, to *rig) (cmd.ImportReply, error) {
		exported, err := from.export(cmd.ExportRequest{})
		require.NoError(t, err)
		return to.restore(exported.Signed)
	}
	here.open(log, event.Preferences{})
	here.append(log, run(1, "who are you", "a bee")...)
	reply, err := move(here, there)
	require.NoError(t, err)
	require.True(t, reply.Restored)
	there.append(log, run(2, "and now", "still one")...)
	here.command(log, cmd.Pipeline, cmd.SendMessage, "on", cmd.UserMessage{Content: "here"})
	require.Eventually(t, func() bool { // this run has begun, and not only the first
		started := 0
		for _, e := range here.All(log) {
			if e.Type == event.RunStarted {
				started++
			}
		}
		return started == 2
	}, maxWait, 5*time.Millisecond)
	_, err = move(there, here)
	isFault(t, err, fault.SessionBusy)
	here.command(log, cmd.Pipeline, cmd.Cancel, "stop", cmd.CancelRun{})
	here.Until(log, event.RunCancelled, 1)
	there.append(log, notice("a"), notice("b"), notice("c"), notice("d"))
	reply, err = move(there, here)
	require.NoError(t, err)
	require.True(t, reply.Restored)
	exported, err := here.export(cmd.ExportRequest{})
	require.NoError(t, err)
	text := ""
	for _, m := range readable(t, exported).Agent.Memory {
		text += m.Content + "|"
	}
	require.Equal(t, "who are you|a bee|and now|still one|", text, "once, and nothing of what was left behind")
	before := here.All(log)
	reply, err = move(there, here)
	require.NoError(t, err)
	require.True(t, reply.Restored)
	require.Equal(t, before, here.All(log))
	here.append(log, notice("e"))
	reply, err = move(here, here)
	require.NoError(t, err)
	require.False(t, reply.Restored, "its own log counts")
}

// run is a chat run that was answered.
func run(n int, question, answer string) []event.Data {
	id, message, exec := fmt.Sprint("run_", n), fmt.Sprint("m", n), fmt.Sprintf("exec_20240101_000000_%06d", n)
	return []event.Data{
		event.MessageReceivedData{MessageID: message, RunID: id, Content: question},
		event.RunStartedData{RunID: id, ExecutionID: exec, MessageID: message, Content: question},
		event.JobStartedData{RunID: id, ExecutionID: exec, Attempt: 1},
		event.MessageStartedData{RunID: id, ExecutionID: exec, MessageID: "a" + message, Attempt: 1},
		event.MessageCompletedData{RunID: id, ExecutionID: exec, MessageID: "a" + message, Attempt: 1, Role: event.RoleAssistant, Content: answer},
		event.RunCompletedData{RunID: id, ExecutionID: exec, MessageID: "a" + message, Content: answer},
	}
}

func TestWhatIsNotImported(t *testing.T) {
	t.Parallel()
	here, there := newRig(t), newRig(t)
	here.start("a", session.Config{StateKeys: keys})
	there.start("a", session.Config{StateKeys: keys})
	here.open(log, event.Preferences{})
	exported, err := here.export(cmd.ExportRequest{})
	require.NoError(t, err)

	for _, bad := range []string{`null`, `{}`, `[]`, `"x"`, `7`, strings.Replace(string(exported.Signed), "idle", "IDLE", 1)} {
		_, err = there.restore(json.RawMessage(bad))
		isFault(t, err, fault.StateTampered)
	}
	var s seal.Signed
	require.NoError(t, json.Unmarshal(exported.Signed, &s))
	foreign, err := seal.Keys(keys).Seal(bytes.Replace(s.State, []byte(`"default"`), []byte(`"other"`), 1), time.Now())
	require.NoError(t, err)
	_, err = there.restore(foreign)
	require.Contains(t, isFault(t, err, fault.StateTampered).Message, "another tenant")

	there.now.Move(seal.Valid + time.Minute)
	_, err = there.restore(exported.Signed)
	require.Contains(t, isFault(t, err, fault.StateExpired).Message, "24 hours")
	end, err := there.Log.Last(there.Ctx, log)
	require.NoError(t, err)
	require.Zero(t, end.Seq, "nothing was begun")
}

func TestWithoutAKeyStatesAreReadOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	r.open(log, event.Preferences{})
	exported, err := r.export(cmd.ExportRequest{})
	require.NoError(t, err)
	require.Equal(t, "idle", readable(t, exported).Stage)
	require.JSONEq(t, "null", string(exported.Signed))
	signed, err := seal.Keys(keys).Seal([]byte(`{}`), time.Now())
	require.NoError(t, err)
	_, err = r.restore(signed)
	require.Contains(t, isFault(t, err, fault.StateTampered).Message, "session.state_keys")
}

// TestRacingImportsMakeOneSession: several replicas restore one session at once, from
// one state and from another; the log begins once.
func TestRacingImportsMakeOneSession(t *testing.T) {
	t.Parallel()
	here, there := newRig(t), newRig(t)
	here.start("a", session.Config{StateKeys: keys})
	for n := range 3 {
		there.start(fmt.Sprint("r", n), session.Config{StateKeys: keys})
	}
	here.open(log, event.Preferences{})
	first, err := here.export(cmd.ExportRequest{})
	require.NoError(t, err)
	here.now.Move(time.Second) // another state of the same position
	other, err := here.export(cmd.ExportRequest{})
	require.NoError(t, err)
	var racers sync.WaitGroup
	for n := range 12 {
		signed := first.Signed
		if n%2 == 1 {
			signed = other.Signed
		}
		racers.Go(func() {
			if _, err := there.restore(signed); err != nil {
				t.Error(err)
			}
		})
	}
	racers.Wait()
	require.Len(t, there.All(log), 1)
}

func TestARestoredSessionExpires(t *testing.T) {
	t.Parallel()
	here, there := newRig(t), newRig(t)
	here.start("a", session.Config{StateKeys: keys})
	there.start("a", session.Config{StateKeys: keys, TTL: time.Second})
	here.open(log, event.Preferences{})
	exported, err := here.export(cmd.ExportRequest{})
	require.NoError(t, err)
	_, err = there.restore(exported.Signed)
	require.NoError(t, err)
	events := there.Until(log, event.SessionClosed, 1)
	require.Len(t, events, 2)
}

// TestAResumeIsSentAgain: a service that imports a state dies before it resumes the run; a second
// import resumes it.
func TestAResumeIsSentAgain(t *testing.T) {
	t.Parallel()
	here, there := newRig(t), newRig(t)
	here.start("a", session.Config{StateKeys: keys})
	here.startPipeline("p")
	there.start("a", session.Config{StateKeys: keys})
	here.open(log, event.Preferences{})
	here.pipelineRun(log)
	exported, err := here.export(cmd.ExportRequest{})
	require.NoError(t, err)
	for range 2 {
		_, err = there.restore(exported.Signed)
		require.NoError(t, err)
	}
	stream, err := there.Conn.JS().Stream(there.Ctx, subject.StreamCommands)
	require.NoError(t, err)
	info, err := stream.Info(there.Ctx, jetstream.WithSubjectFilter(subject.CommandFilterAll(cmd.Pipeline)))
	require.NoError(t, err)
	require.Len(t, info.State.Subjects, 1)
	for _, n := range info.State.Subjects {
		require.EqualValues(t, 1, n, "the repeat is the same command")
	}
}

func TestTheHistoryOfAnExportIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{StateKeys: keys})
	r.open(log, event.Preferences{})
	list := make([]event.Data, 120)
	for n := range list {
		list[n] = notice(fmt.Sprint(n))
	}
	r.append(log, list...)
	exported, err := r.export(cmd.ExportRequest{Tenant: log.Tenant, Session: log.Entity})
	require.NoError(t, err)
	require.Empty(t, exported.History)
	for ask, want := range map[int]int{0: 100, 5: 5, 5000: 121} {
		exported, err = r.export(cmd.ExportRequest{Tenant: log.Tenant, Session: log.Entity, History: true, MaxHistory: ask})
		require.NoError(t, err)
		require.Len(t, exported.History, want)
		var e event.Event
		require.NoError(t, json.Unmarshal(exported.History[want-1], &e))
		require.EqualValues(t, 121, e.Sequence)
	}
	large := notice(strings.Repeat("x", 150<<10))
	last := r.append(log, large, large, large, large)
	exported, err = r.export(cmd.ExportRequest{Tenant: log.Tenant, Session: log.Entity, History: true, MaxHistory: 10})
	require.NoError(t, err)
	require.Len(t, exported.History, 1, "the newest that fit")

	r.expire(log, last)
	isFault(t, second(r.export(cmd.ExportRequest{})), fault.SessionExpired)
}

// TestAnExportKeepsWhatAProviderWantsBackToItself: a state goes through the hands of people.
func TestAnExportKeepsWhatAProviderWantsBackToItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{StateKeys: keys})
	r.open(log, event.Preferences{})
	r.append(log, run(1, "hello", "hi")[:4]...)
	r.append(log, event.ReasoningCompletedData{
		MessageID: "am1", RunID: "run_1", Attempt: 1, Content: "Let me see.",
		PassBack: &event.PassBack{Provider: "anthropic@api.anthropic.com", Data: json.RawMessage(`{"signature":"s3cret"}`)},
	})
	exported, err := r.export(cmd.ExportRequest{Tenant: log.Tenant, Session: log.Entity, History: true})
	require.NoError(t, err)
	all, err := json.Marshal(exported)
	require.NoError(t, err)
	require.Contains(t, string(all), "Let me see.")
	require.NotContains(t, string(all), "s3cret")
}

// TestAStateOutlivesTheBeginningOfItsLog: when the head has expired, the state is what
// the rest tells.
func TestAStateOutlivesTheBeginningOfItsLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{StateKeys: keys})
	r.open(log, event.Preferences{})
	cut := r.append(log, run(1, "old", "gone")[:3]...)
	r.append(log, run(1, "old", "gone")[3:]...)
	r.append(log, run(2, "new", "there")...)
	r.expire(log, cut)
	exported, err := r.export(cmd.ExportRequest{Tenant: id.DefaultTenant, Session: log.Entity, History: true})
	require.NoError(t, err)
	memory := readable(t, exported).Agent.Memory
	require.Len(t, memory, 2)
	require.Equal(t, "there", memory[1].Content)
	require.Len(t, exported.History, 9)
	require.EqualValues(t, 13, exported.Seq)
}

// TestAStateThatIsTooLargeCanBeRead: clients can resume a session whose run is too large for an
// export, and reads of it are bounded.
func TestAStateThatIsTooLargeCanBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{StateKeys: keys})
	r.open(log, event.Preferences{})
	cut := r.append(log, run(1, strings.Repeat("\x01", 25_000), strings.Repeat("\x02", 25_000))...)
	exported, err := r.export(cmd.ExportRequest{})
	require.NoError(t, err)
	require.LessOrEqual(t, len(exported.State), 256<<10)
	large := strings.Repeat("x", 200<<10)
	r.append(log, event.MessageReceivedData{MessageID: "m2", RunID: "run_2", Content: large})
	isFault(t, second(r.export(cmd.ExportRequest{})), fault.StateTooBig)
	r.expire(log, cut)
	got, err := r.attach(cmd.AttachRequest{})
	require.NoError(t, err)
	require.NotZero(t, got.FirstSeq)
	require.JSONEq(t, "null", string(got.Exported.Signed))
	require.LessOrEqual(t, len(got.Exported.State), 256<<10)
}
