package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/pipeline"
)

// team plays the service of the team that the member belongs to.
type team struct {
	r   *rig
	ref subject.Log

	mu     sync.Mutex
	deaf   int                 // so many acts are done, and their answers lost
	acts   []cmd.TeamAct       // acts that were done, one per call
	asked  map[string][]string // ids of the commands that asked for it, by call
	refuse map[string]event.TeamActedData
	heard  chan cmd.TeamAct // each act as it arrives
	held   chan struct{}    // if not nil: one for each answer that is let go
}

// newMember returns a rig whose log is that of a member of a team: Coder, with the
// colleagues Boss and docs. mod may be nil.
func newMember(t *testing.T, script scripted.Script, mod func(*event.MemberCreatedData)) *rig {
	t.Helper()
	r := newRig(t, script)
	p, err := pipeline.NewMembers(pipeline.Config{OnBusy: event.OnBusyEnqueue}, r.Deps("one"))
	r.Run(p, err)
	home := id.EntityFromExternal("team_0123456789abcdef")
	agent, err := id.MemberAgent(home, "Coder")
	require.NoError(t, err)
	r.ref = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindMember, Entity: agent}
	r.found(subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: home})
	d := event.MemberCreatedData{
		MemberID: agent.String(), TeamID: home.String(), Root: home.String(), Route: "Coder", TeamName: "Hive",
		Colleagues: []event.Colleague{{Name: "Boss", Role: "leads", Kind: event.MemberAgent}, {Name: "docs", Kind: event.MemberTeam}},
		MemberDefinition: event.MemberDefinition{
			Name: "Coder", Role: "writes code", Instructions: "Be brief.", Tools: []string{"bank/pay", "workspace/*"},
		},
	}
	if mod != nil {
		mod(&d)
	}
	r.command(cmd.CreateMember, "create", d)
	return r
}

// found starts the team's service.
func (r *rig) found(ref subject.Log) {
	r.T.Helper()
	tm := &team{r: r, ref: ref, asked: map[string][]string{}, refuse: map[string]event.TeamActedData{}, heard: make(chan cmd.TeamAct, 64)}
	r.team = tm
	r.Run(command.NewWorkers(r.Conn, command.WorkersConfig{
		Service: cmd.Team, Instance: id.MustName("team"), Concurrency: 1, Logger: zerolog.Nop(),
	}, tm.handle), nil)
}

// handle does an act once, and answers each time it is asked for.
func (tm *team) handle(ctx context.Context, c cmd.Command, _ command.Delivery) error {
	if c.Verb != cmd.ActTeam {
		return nil
	}
	var a cmd.TeamAct
	if err := c.Decode(&a); err != nil {
		return command.Permanent(err)
	}
	tm.mu.Lock()
	if len(tm.asked[a.CallID]) == 0 {
		tm.acts = append(tm.acts, a)
	}
	tm.asked[a.CallID] = append(tm.asked[a.CallID], c.ID)
	lost := tm.deaf > 0
	tm.deaf--
	said, ok := tm.refuse[a.Tool]
	tm.mu.Unlock()
	tm.heard <- a
	if lost {
		return nil
	}
	if !ok {
		said.Result = "the team has done " + a.Tool
	}
	if tm.held != nil {
		select {
		case <-tm.held:
		case <-ctx.Done():
		}
	}
	said.CallID = a.CallID
	return tm.answer(c, said)
}

func (tm *team) answer(c cmd.Command, d event.TeamActedData) error {
	e, err := event.New(tm.ref, c.ID+".aside", "test", time.Now(), d)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	gateway, connection, err := subject.ParseReplyTo(c.ReplyTo)
	if err != nil {
		return command.Permanent(err)
	}
	return tm.r.Conn.NATS().Publish(subject.Direct(gateway, connection), raw)
}

// did returns what the team has done, and how often it was asked for each.
func (tm *team) did() (acts []cmd.TeamAct, asked []int) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	for _, a := range tm.acts {
		acts, asked = append(acts, a), append(asked, len(tm.asked[a.CallID]))
	}
	return acts, asked
}

// answer decides about a call.
func (r *rig) answer(callID string, approved bool, why string) {
	r.T.Helper()
	r.n++
	d := cmd.AnswerQuestion{CallID: callID, Approved: approved, Feedback: why}
	r.Wait(r.ref, "the question about "+callID, func(read []*eventlog.Entry) bool {
		if len(read) == 0 || read[len(read)-1].Type != event.InputRequested {
			return false
		}
		q, err := event.As[event.InputRequestedData](read[len(read)-1].Event)
		require.NoError(r.T, err)
		d.Digest = q.Digest
		return q.CallID == callID
	})
	r.command(cmd.Answer, fmt.Sprint("answer-", r.n), d)
}

// questions returns the questions of the log, the tool's arguments with them.
func (r *rig) questions(n int) []event.InputRequestedData {
	r.T.Helper()
	return all[event.InputRequestedData](r.T, r.Until(r.ref, event.InputRequested, n))
}

// idle waits until no work item is on the queue or in the hands of a worker.
func (r *rig) idle() {
	r.T.Helper()
	require.Eventually(r.T, func() bool {
		c, err := r.Conn.JS().Consumer(r.Ctx, subject.StreamCommands, cmd.Worker.String())
		if err != nil {
			return false
		}
		i, err := c.Info(r.Ctx)
		return err == nil && i.NumPending == 0 && i.NumAckPending == 0
	}, maxWait, 10*time.Millisecond, "the work item is done with")
}

func pay(id string, amount int) scripted.Call {
	return scripted.Call{ID: id, Name: "bank_pay", Arguments: fmt.Sprintf(`{"amount":%d}`, amount)}
}
