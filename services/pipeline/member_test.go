package pipeline_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/pipeline"
)

var team = id.EntityFromExternal("team_0123456789abcdef")

// coder is the log of a member of a team.
func coder(t *testing.T) subject.Log {
	t.Helper()
	agent, err := id.MemberAgent(team, "Coder")
	require.NoError(t, err)
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindMember, Entity: agent}
}

// members starts a replica of the service of the members of teams.
func (r *rig) members(deps ledger.Deps) *pipeline.Service {
	r.T.Helper()
	s, err := pipeline.NewMembers(pipeline.Config{Access: everyone}, deps)
	r.Run(s, err)
	return s
}

// create makes the member.
func (r *rig) create(l subject.Log, d event.MemberDefinition) {
	r.T.Helper()
	r.command(l, cmd.CreateMember, "create", event.MemberCreatedData{
		MemberID: l.Entity.String(), TeamID: team.String(), Root: team.String(), TeamName: "Builders", Route: d.Name, MemberDefinition: d,
	})
}

func next[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(maxWait):
		require.Fail(t, "nothing came", "waiting for %s", what)
		panic("unreachable")
	}
}

// claim plays a worker that takes the next work item.
func (r *rig) claim(l subject.Log, items <-chan cmd.JobRef) *conversation.Job {
	r.T.Helper()
	ref := next(r.T, items, "a work item")
	require.Equal(r.T, l.Kind, ref.LogKind())
	u := r.fold(l).Job(ref.Job())
	require.NotNil(r.T, u)
	r.append(l, event.JobStartedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: u.Attempt + 1, Worker: "w"})
	return r.fold(l).Job(ref.Job())
}

// paused plays a worker whose model calls the tools, and who asks and puts the job down.
func (r *rig) paused(l subject.Log, u *conversation.Job, calls ...string) {
	r.T.Helper()
	said := event.MessageCompletedData{
		MessageID: u.ID + ".m", RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: u.Attempt, Role: event.RoleAssistant, StopReason: "tool_calls",
	}
	for _, c := range calls {
		said.ToolCalls = append(said.ToolCalls, event.ToolCall{ID: c, Name: "files/write", Arguments: json.RawMessage("{}")})
	}
	r.append(l, said)
	var inputs []string
	for _, tc := range r.fold(l).Next(u.ID).Ask {
		inputs = append(inputs, conversation.QuestionOf(tc.ID))
		r.append(l, event.InputRequestedData{
			InputID: conversation.QuestionOf(tc.ID), RunID: u.RunID, ExecutionID: u.ExecutionID, Scope: event.ScopeTool, Attempt: u.Attempt,
			CallID: tc.ID, Tool: tc.Name, Digest: "digest", Arguments: tc.Arguments,
		})
	}
	r.append(l, event.JobSuspendedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: u.Attempt, Inputs: inputs})
}

// TestRacingAnswersToACall: of fifty answers to the question whether a tool may run one
// counts, everybody else is told whose that was, and the job is handed to the workers
// again once. The team hears of it.
func TestRacingAnswersToACall(t *testing.T) {
	t.Parallel()
	const racers = 50
	r := newRig(t)
	r.members(r.Deps("a"))
	r.members(r.Deps("b"))
	items, woken := r.items(), r.Taken(cmd.Team)
	gateway := id.MustName("gw")
	directs := make(chan *nats.Msg, 2*racers)
	sub, err := r.Conn.NATS().ChanSubscribe(subject.DirectFilter(gateway), directs)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	require.NoError(t, r.Conn.NATS().Flush())
	l := coder(t)
	r.create(l, event.MemberDefinition{Name: "Coder"})
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: "write it"})
	r.paused(l, r.claim(l, items), "call_1")

	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			name := fmt.Sprint("r", i)
			r.commandFrom(l, cmd.Answer, name, cmd.AnswerQuestion{CallID: "call_1", Digest: "digest", Approved: i%2 == 0},
				subject.ReplyTo(gateway, id.MustName(name)))
		})
	}
	wg.Wait()
	told := map[string]string{} // by command: who has answered
	for range racers - 1 {
		var e event.Event
		require.NoError(t, json.Unmarshal(next(t, directs, "a direct message").Data, &e))
		d, err := event.As[event.CommandRefusedData](e)
		require.NoError(t, err)
		require.Equal(t, "INPUT_ANSWERED", d.Code)
		told[d.CommandID] = d.AnsweredBy
	}
	require.Len(t, told, racers-1)
	answers := 0
	for _, e := range r.Until(l, event.InputAnswered, 1) {
		if e.Type == event.InputAnswered {
			answers++
			d, err := event.As[event.InputAnsweredData](e)
			require.NoError(t, err)
			require.Equal(t, "call_1", d.CallID)
			require.NotContains(t, told, d.CommandID)
			for _, by := range told {
				require.Equal(t, d.By, by)
			}
		}
	}
	require.Equal(t, 1, answers)
	u := r.claim(l, items)
	require.Equal(t, 2, u.Attempt)
	require.Equal(t, 1, u.Spent())
	for range racers + 1 { // the message and every answer
		c := next(t, woken, "a word to the team")
		require.Equal(t, cmd.WakeTeam, c.Verb)
		require.Equal(t, team, c.Key)
	}
	require.Empty(t, items, "the job is handed on once")
	require.Empty(t, woken)
	require.Empty(t, directs)
}

// TestAnAnswerOutlivesTheService: the service dies after it has recorded the answer and
// before it has handed the job on. The next one does, and once.
func TestAnAnswerOutlivesTheService(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	items := r.items()
	l := coder(t)
	a := r.members(r.Deps("a"))
	r.create(l, event.MemberDefinition{Name: "Coder"})
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: "write it"})
	r.paused(l, r.claim(l, items), "call_1", "call_2")
	a.Stop()

	mute := r.Deps("mute") // loses the commands that it sends
	lost := bustest.Dial(t, r.Conn.NATS().ConnectedUrl())
	lost.NATS().Close()
	mute.Commands = command.NewSender(lost)
	dying := r.members(mute)
	r.command(l, cmd.Answer, "r1", cmd.AnswerQuestion{CallID: "call_1", Digest: "digest", Approved: true})
	r.Until(l, event.InputAnswered, 1)
	dying.Stop()
	require.Empty(t, items)

	r.members(r.Deps("b"))
	u := r.claim(l, items)
	require.Equal(t, 2, u.Attempt)
	st := r.fold(l).Next(u.ID)
	require.Len(t, st.Calls, 1)
	require.Equal(t, "call_1", st.Calls[0].ID)
	r.append(l, event.ToolCalledData{CallID: "call_1", RunID: u.RunID, Attempt: 2, Tool: "files/write", Digest: "digest", InputID: "approve_call_1"})
	r.append(l, event.ToolCompletedData{CallID: "call_1", RunID: u.RunID, Attempt: 2, Tool: "files/write"})
	r.append(l, event.JobSuspendedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 2, Inputs: []string{"approve_call_2"}})
	r.command(l, cmd.Answer, "r2", cmd.AnswerQuestion{CallID: "call_2", Feedback: "no"})
	u = r.claim(l, items)
	require.Equal(t, 3, u.Attempt)
	require.Equal(t, conversation.ActionGenerate, r.fold(l).Next(u.ID).Kind)
	r.append(l, event.RunCompletedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 3, Content: "done"})
	r.command(l, cmd.SendMessage, "m2", cmd.UserMessage{Content: "and now"})
	require.Equal(t, conversation.RunID("m2"), r.claim(l, items).RunID)
	require.Empty(t, items)
}

// TestSessionsAndMembersDoNotMix: a session and a member with the same id have logs of
// their own, and each service handles its own.
func TestSessionsAndMembersDoNotMix(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", pipeline.Config{})
	r.members(r.Deps("b"))
	items := r.items()
	l := coder(t)
	s := l
	s.Kind = id.KindSession
	r.open(s)
	r.create(l, event.MemberDefinition{Name: "Coder"})
	r.command(s, cmd.SendMessage, "m1", cmd.UserMessage{Content: "x"})
	require.Equal(t, cmd.JobRef{RunID: conversation.RunID("m1")}, next(t, items, "a work item"))
	r.command(l, cmd.SendMessage, "m2", cmd.UserMessage{Content: "x"})
	require.Equal(t, cmd.JobRef{Kind: id.KindMember, RunID: conversation.RunID("m2")}, next(t, items, "a work item"))
	require.Nil(t, r.fold(s).Run(conversation.RunID("m2")))
	require.Nil(t, r.fold(l).Run(conversation.RunID("m1")))
}

func TestTheServiceOfMembersIsAComponent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	n := 0
	lifecycletest.Exercise(t, func() lifecycle.Component {
		n++
		s, err := pipeline.NewMembers(pipeline.Config{Access: everyone}, r.Deps(fmt.Sprint("c", n)))
		require.NoError(t, err)
		return s
	})
}
