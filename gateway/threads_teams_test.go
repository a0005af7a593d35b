package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/internal/rpc"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// site is a team of Boss, who coordinates, and Coder. The test plays the team service.
type site struct {
	*rig
	log  subject.Log
	base string
	seq  uint64 // of members, together
}

func (r *rig) site() *site {
	r.t.Helper()
	o := &site{rig: r, log: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal(unique())}}
	o.base = "/agui/teams/" + o.log.Entity.String()
	r.happens(o.log, event.TeamCreatedData{TeamID: o.log.Entity.String(), Definition: event.TeamDefinition{
		Name: "site", Coordinator: "Boss", Members: []event.MemberDefinition{{Name: "Boss"}, {Name: "Coder", Role: "codes"}},
	}}, event.TeamStatusData{NewStatus: event.TeamIdle, OldStatus: event.TeamStarting})
	return o
}

// does appends events of a member.
func (o *site) does(member string, data ...event.Data) {
	o.t.Helper()
	for _, d := range data {
		o.seq++
		o.relay(o.log, member, o.seq, d)
	}
}

// told takes the next message to the team into its log, as its service does.
func (o *site) told() wirecmd.Command {
	o.t.Helper()
	c := o.nextCommand(o.log.Entity.String())
	require.Equal(o.t, wirecmd.Team, c.Service)
	require.Equal(o.t, wirecmd.SendMessage, c.Verb)
	var m wirecmd.UserMessage
	require.NoError(o.t, c.Decode(&m))
	d := event.TeamMessageData{MessageID: c.ID, Member: c.Member, Content: m.Content, Principal: c.Principal, Attachments: m.Attachments, Extra: m.Extra}
	if d.Member == "" {
		d.Member = "Boss"
	}
	o.happens(o.log, d)
	return c
}

// begins has a member take a message and begin its run.
func (o *site) begins(member, message, run string) {
	o.t.Helper()
	o.happens(o.log, event.TeamStatusData{NewStatus: event.TeamRunning, OldStatus: event.TeamIdle})
	o.does(member, event.MessageReceivedData{MessageID: message, RunID: run}, event.RunStartedData{RunID: run, MessageID: message}, event.JobStartedData{RunID: run, Attempt: 1})
}

func (o *site) rests() {
	o.t.Helper()
	o.happens(o.log, event.TeamStatusData{NewStatus: event.TeamIdle, OldStatus: event.TeamRunning})
}

// demanded is an answer to a request that was sent in the background.
type demanded struct {
	status int
	text   string
}

func (r *rig) later(path, body string) <-chan demanded {
	out := make(chan demanded, 1)
	go func() {
		status, text, _ := r.demands(path, body)
		out <- demanded{status, text}
	}()
	return out
}

// TestATeamIsAThread: a message begins a run, which ends when the team is at rest. Messages meanwhile join it, and see the rest of it
// under the id of their request, as often as they ask. A stream that is resumed anywhere continues as it would have.
func TestATeamIsAThread(t *testing.T) {
	r := start(t)
	o := r.site()
	first := o.later(o.base, strings.TrimSuffix(ask("any thread", "one"), "}")+`,"forwardedProps":{"waggle":{"targetMember":"Boss"}}}`)
	c := o.told()
	require.Equal(t, fold.CommandID("one"), c.ID)
	require.Equal(t, "Boss", c.Member)
	o.begins("Boss", c.ID, "r1")
	o.does("Boss", event.MessageCompletedData{MessageID: "m1", RunID: "r1", Attempt: 1, Role: event.RoleAssistant, Content: "I ask Coder."})
	second := o.later(o.base, ask("another", "two"))
	c = o.told()
	require.Empty(t, c.Member)
	o.does("Coder", event.RunStartedData{RunID: "r2", MessageID: "x"}, event.MessageCompletedData{MessageID: "m2", RunID: "r2", Attempt: 1, Role: event.RoleAssistant, Content: "Coded."},
		event.RunCompletedData{RunID: "r2", MessageID: "m2", Content: "Coded."})
	o.does("Boss", event.RunCompletedData{RunID: "r1", MessageID: "m1", Content: "I ask Coder."}, event.MessageReceivedData{MessageID: c.ID, RunID: "r3"},
		event.RunStartedData{RunID: "r3", MessageID: c.ID}, event.RunCompletedData{RunID: "r3", MessageID: "m3", Content: "Both are done."})
	o.rests()

	whole := <-first
	require.Equal(t, http.StatusOK, whole.status, whole.text)
	frames := framesIn(whole.text)
	require.Equal(t, "RUN_STARTED one", frames[0])
	require.Equal(t, "RUN_FINISHED one", frames[len(frames)-1])
	require.Contains(t, whole.text, `"threadId":"any thread"`)
	require.Contains(t, whole.text, `"activityType":"waggle.team"`)
	require.Contains(t, whole.text, `"subagentRunId":"r2","name":"Coder"`)
	require.Contains(t, whole.text, "Both are done.")
	joined := <-second
	require.Equal(t, http.StatusOK, joined.status, joined.text)
	frames = framesIn(joined.text)
	require.Equal(t, "RUN_STARTED two", frames[0])
	require.Equal(t, "MESSAGES_SNAPSHOT", frames[1])
	require.Equal(t, "RUN_FINISHED two", frames[len(frames)-1])
	require.Equal(t, 1, strings.Count(joined.text, `"u-two"`), "the client has its message")

	for _, run := range []string{"one", "two"} {
		want := "RUN_FINISHED " + run
		for _, again := range []string{o.base + "/threads/t/runs/" + run, o.base} {
			status, text, _ := r.get(again)
			if again == o.base {
				status, text, _ = r.demands(again, ask("t", run))
			}
			require.Equal(t, http.StatusOK, status, text)
			frames = framesIn(text)
			require.Equal(t, want, frames[len(frames)-1])
		}
		lines := strings.Split(whole.text, "\n")
		if run == "two" {
			lines = strings.Split(joined.text, "\n")
		}
		resumes(t, r, o.base+"/threads/any%20thread/runs/"+run, "any thread", lines)
	}
	require.Empty(t, o.inbox(o.log.Entity.String()), "nothing was sent twice")
	_, text, _ := r.get(o.base + "/threads/t/messages")
	for _, said := range []string{"u-one", "u-two", "I ask Coder.", "Coded.", "Both are done."} {
		require.Contains(t, text, said)
	}
}

// resumes continues after each frame of a stream, and compares what follows. The streams name the same thread.
func resumes(t *testing.T, r *rig, path, name string, lines []string) {
	t.Helper()
	var ids []string
	var frames []string
	at := ""
	for _, line := range lines {
		if rest, is := strings.CutPrefix(line, "id: "); is {
			at = rest
		}
		if rest, is := strings.CutPrefix(line, "data: "); is {
			ids, frames, at = append(ids, at), append(frames, strings.ReplaceAll(rest, `"threadId":"another"`, fmt.Sprintf(`"threadId":%q`, name))), ""
		}
	}
	cuts := 0
	for i, at := range ids[:len(ids)-1] {
		if at == "" {
			continue // of a prelude
		}
		_, text, _ := r.get(path, "Last-Event-ID", at)
		var rest []string
		for line := range strings.Lines(text) {
			if data, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: "); is {
				rest = append(rest, data)
			}
		}
		require.Equal(t, frames[i+1:], rest, "behind %s", at)
		cuts++
	}
	require.Greater(t, cuts, 3)
	status, _, _ := r.get(path, "Last-Event-ID", ids[len(ids)-1])
	require.Equal(t, http.StatusNoContent, status)
}

// TestQuestionsOfATeam end a stretch, and its answers go to the team.
func TestQuestionsOfATeam(t *testing.T) {
	r := start(t)
	o := r.site()
	first := o.later(o.base, ask("t", "one"))
	o.begins("Boss", o.told().ID, "r1")
	o.does("Boss",
		event.InputRequestedData{InputID: "approve_c1", RunID: "r1", Scope: event.ScopeTool, CallID: "c1", Tool: "write", Arguments: []byte(`{}`), Attempt: 1},
		event.JobSuspendedData{RunID: "r1", Attempt: 1, Inputs: []string{"approve_c1"}})
	got := <-first
	frames := framesIn(got.text)
	require.Equal(t, "RUN_FINISHED one", frames[len(frames)-1])
	require.Contains(t, got.text, `"type":"interrupt"`)
	status, text, _ := r.demands(o.base, ask("t", "two"))
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, text, "approve_c1")
	second := o.later(o.base, `{"threadId":"t","runId":"three","protocolVersion":"1.0","messages":[],"resume":[{"interruptId":"approve_c1","status":"resolved","payload":true}]}`)
	c := o.nextCommand(o.log.Entity.String())
	require.Equal(t, wirecmd.Team, c.Service)
	require.Equal(t, wirecmd.Answer, c.Verb)
	var a wirecmd.AnswerQuestion
	require.NoError(t, c.Decode(&a))
	require.Equal(t, "c1", a.CallID)
	o.does("Boss", event.InputAnsweredData{InputID: "approve_c1", RunID: "r1", CommandID: c.ID, CallID: "c1", Decision: event.DecisionApprove, Segment: a.Segment},
		event.RunCompletedData{RunID: "r1", MessageID: "m", Content: "Written."})
	o.rests()
	got = <-second
	frames = framesIn(got.text)
	require.Equal(t, "RUN_STARTED three", frames[0])
	require.Equal(t, "RUN_FINISHED three", frames[len(frames)-1])
	require.Contains(t, got.text, "waggle.answered")
}

// TestATeamIsStopped: all of it, or one member. Its run is over when it is at rest.
func TestATeamIsStopped(t *testing.T) {
	r := start(t)
	o := r.site()
	status, text, _ := r.demands(o.base+"/threads/t/cancel", `{}`)
	require.Equal(t, http.StatusConflict, status, text)
	first := o.later(o.base, ask("t", "one"))
	o.begins("Boss", o.told().ID, "r1")
	for body, member := range map[string]string{`{"targetMember":"Coder"}`: "Coder", `{}`: ""} {
		status, text, _ = r.demands(o.base+"/threads/t/cancel", body)
		require.Equal(t, http.StatusAccepted, status, text)
		c := o.nextCommand(o.log.Entity.String())
		require.Equal(t, wirecmd.Cancel, c.Verb)
		require.Equal(t, member, c.Member)
		var d wirecmd.CancelRun
		require.NoError(t, c.Decode(&d))
		require.True(t, d.All)
	}
	o.happens(o.log, event.TeamStoppedData{CommandID: "x"})
	o.does("Boss", event.RunCancelledData{RunID: "r1", Reason: "user_request"})
	o.rests()
	got := <-first
	require.Contains(t, got.text, `"outcome":{"type":"cancelled"}`)
	follow := r.reads(o.base + "/threads/t?follow=1")
	o.happens(o.log, event.TeamClosedData{})
	for err := error(nil); err == nil; _, err = follow.next() {
		continue
	}
	require.Contains(t, follow.comments, "waggle SESSION_CLOSED")
}

// TestTeamsRefuse: unknown teams, members and wishes.
func TestTeamsRefuse(t *testing.T) {
	r := start(t)
	o := r.site()
	for _, path := range []string{"", "/threads/t/cancel", "/threads/t/answers"} {
		body := ask("t", "one")
		if path == "/threads/t/answers" {
			body = `{"resume":[{"interruptId":"x","status":"cancelled"}]}`
		} else if path != "" {
			body = `{}`
		}
		status, text, _ := r.demands("/agui/teams/nobody"+path, body)
		require.Equal(t, http.StatusNotFound, status, text)
		require.Contains(t, text, "TEAM_NOT_FOUND")
	}
	for _, path := range []string{"/threads/t", "/threads/t/runs/one", "/threads/t/messages"} {
		status, text, _ := r.get("/agui/teams/nobody" + path)
		require.Equal(t, http.StatusNotFound, status, text)
		require.Contains(t, text, "TEAM_NOT_FOUND")
	}
	got := o.later(o.base, strings.TrimSuffix(ask("t", "one"), "}")+`,"forwardedProps":{"waggle":{"targetMember":"Ghost"}}}`)
	c := o.nextCommand(o.log.Entity.String())
	o.sendDirect(c.ReplyTo, o.log, event.CommandRefusedData{CommandID: c.ID, Code: string(fault.MemberNotFound), Message: "No such member."})
	refused := <-got
	require.Equal(t, http.StatusNotFound, refused.status, refused.text)
	require.Contains(t, refused.text, "No such member.")
	status, text, _ := r.demands(o.base, strings.TrimSuffix(ask("t", "one"), "}")+`,"forwardedProps":{"waggle":{"mode":"plan"}}}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, text)
}

// TestCapabilitiesOfATeam name its members.
func TestCapabilitiesOfATeam(t *testing.T) {
	r := start(t)
	srv := rpc.NewServer(sharedBus(t), rpc.Config{Service: wirecmd.Team, Logger: zerolog.Nop()})
	rpc.Handle(srv, wirecmd.ShowTeam, func(_ context.Context, in wirecmd.TeamRequest) (v wirecmd.TeamView, err error) {
		if in.TeamID != "site" {
			return v, fault.New(fault.TeamNotFound)
		}
		v.Name, v.Definition = "site", event.TeamDefinition{Name: "site", Description: "does all", Coordinator: "Boss", Members: []event.MemberDefinition{
			{Name: "Boss"}, {Name: "Coder", Role: "codes"}, {Name: "backend", Team: &event.TeamDefinition{Coordinator: "Lead", Members: []event.MemberDefinition{{Name: "Lead"}}}},
		}}
		return v, nil
	})
	require.NoError(t, srv.Start(t.Context()))
	t.Cleanup(srv.Stop)
	status, text, _ := r.get("/agui/teams/site/capabilities")
	require.Equal(t, http.StatusOK, status, text)
	var can wire.Capabilities
	require.NoError(t, json.Unmarshal([]byte(text), &can))
	require.Equal(t, "does all", can.Identity.Description)
	require.Equal(t, []wire.SubagentInfo{{Name: "Coder", Description: "codes"}, {Name: "backend/Lead"}}, can.MultiAgent.Subagents)
	require.True(t, can.HumanInTheLoop.Interrupts)
	require.False(t, can.Tools.ClientProvided)
	status, text, _ = r.get("/agui/teams/nobody/capabilities")
	require.Equal(t, http.StatusNotFound, status, text)
}
