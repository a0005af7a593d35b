package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/models"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// askingBase is the base of the agent that asks.
const askingBase = "/agents/Painter"

// askers starts a fleet with an agent that asks the question, and gateways.
func askers(t *testing.T, gateways int, q swarm.Question) (addrs []string) {
	t.Helper()
	f := newFleet(t, scripted.Always(say("the model speaks")))
	f.configure("gateway: {message_rate: 1000, message_burst: 1000}\n")
	f.serve("session,pipeline,worker,tools,task")
	for range gateways {
		_, addr := f.gateway()
		addrs = append(addrs, addr)
	}
	painter(t, addrs[0], q)
	return addrs
}

// painter connects an agent that asks before it does anything. Its answer is what it was told.
func painter(t *testing.T, addr string, q swarm.Question) {
	t.Helper()
	sdkAgent(t, "ws://"+addr, "Painter", func(ctx context.Context, task *swarm.Task) (any, error) {
		answer, err := task.Ask(ctx, q)
		if err != nil {
			return fmt.Sprint("nothing: ", strings.Contains(err.Error(), "INPUT_EXPIRED")), nil
		}
		return "painted " + string(answer), nil
	})
	process.Eventually(t, "the agent is known", func() bool {
		return strings.Contains(process.Get(t, "http://"+addr+"/api/v1/agents").Body, "painter-1")
	})
}

// resumes adds the answer to a question to the body of a request.
func resumes(id string, payload any) func(map[string]any) {
	return func(in map[string]any) {
		in["resume"] = []any{object{"interruptId": id, "status": "resolved", "payload": payload}}
	}
}

// inList returns the open questions of a list.
func inList(t testing.TB, addr, query string, want int) (out []api.Question) {
	t.Helper()
	process.Eventually(t, "the questions are listed", func() bool {
		var list api.QuestionList
		require.NoError(t, json.Unmarshal([]byte(process.Get(t, "http://"+addr+"/api/v1/questions?"+query).Body), &list))
		out = list.Questions
		return len(out) == want
	})
	return out
}

// TestAGUIAsksForAnAgent: the question of an agent of the swarm ends the stretch, and the answer to it goes to the agent, whose
// result is that of the run.
func TestAGUIAsksForAnAgent(t *testing.T) {
	addrs := askers(t, 2, swarm.Question{Message: "Which colour?", Options: []string{"red", "green"}, Timeout: time.Hour})
	c, other := aguiClient{t: t, addr: addrs[0]}, aguiClient{t: t, addr: addrs[1]}
	thread := newRun()
	open := interrupts(t, c.runAt(askingBase, thread, newRun(), "paint it", nil))
	require.Len(t, open, 1)
	q := open[0]
	require.Equal(t, []string{wire.ReasonInputRequired, "Which colour?"}, []string{q.Reason, q.Message})
	require.JSONEq(t, `{"type":"object","properties":{"answer":{"enum":["red","green"]}},"required":["answer"]}`, string(q.ResponseSchema))
	about, err := json.Marshal(q.Metadata.Waggle)
	require.NoError(t, err)
	require.JSONEq(t, `{"options":["red","green"],"message_type":"input_request"}`, string(about))
	ends, err := time.Parse(time.RFC3339Nano, q.ExpiresAt)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Hour), ends, time.Minute)

	one := inList(t, addrs[1], "", 1)[0]
	require.Equal(t, []string{"session", "agent", "Painter", `"Which colour?"`, q.ID}, []string{one.Kind, one.Scope, one.Asker, string(one.Message), one.InputID})
	require.Len(t, inList(t, addrs[1], "kind=task", 1), 1, "the log of the task has it, too")

	status, text := c.text(http.MethodPost, askingBase, aguiInput(thread, newRun(), "and more", nil))
	require.Equal(t, http.StatusConflict, status, text)
	require.Contains(t, text, "INPUT_REQUIRED")
	for payload, field := range map[any]string{"blue": "resume[0].payload", nil: "resume[0].payload"} {
		status, text = c.text(http.MethodPost, askingBase, aguiInput(thread, newRun(), "", resumes(q.ID, payload)))
		require.Equal(t, http.StatusUnprocessableEntity, status, text)
		require.Contains(t, text, `"`+field+`"`)
	}
	status, text = c.text(http.MethodPost, "", aguiInput(thread, newRun(), "", resumes(q.ID, object{"answer": 7})))
	require.Equal(t, http.StatusUnprocessableEntity, status, text)
	require.Contains(t, text, `"resume[0].payload.answer"`)

	next := newRun()
	frames := other.runAt(askingBase, thread, next, "", resumes(q.ID, object{"answer": "green"}))
	require.Equal(t, wire.RunStarted, frames[0].Type)
	require.Equal(t, next, frames[0].RunID, "the answer names the next stretch")
	require.Equal(t, `painted "green"`, speech(frames))
	require.Equal(t, wire.OutcomeSuccess, frames[len(frames)-1].Outcome.Type)
	again := other.runAt(askingBase, thread, next, "", resumes(q.ID, object{"answer": "red"}))
	require.Equal(t, said(frames), said(again), "a repeat shows the run")
	require.NotContains(t, strings.Join(datas(again), ""), "answer_refused")
	inList(t, addrs[0], "", 0)
	inList(t, addrs[0], "kind=task", 0)
}

// TestAGUIWaitsWhileAnotherAnswers: an answer in the inbox, or at the task itself, goes to the agent, and the thread goes on.
func TestAGUIWaitsWhileAnotherAnswers(t *testing.T) {
	addrs := askers(t, 1, swarm.Question{Message: object{"text": "How big?"}, Timeout: time.Hour})
	c := aguiClient{t: t, addr: addrs[0]}
	for kind, list := range map[string]string{"session": "", "task": "kind=task"} {
		thread := newRun()
		open := interrupts(t, c.runAt(askingBase, thread, newRun(), "paint it", nil))
		require.Equal(t, "How big?", open[0].Message)
		ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
		viewer := c.follow(ctx, askingBase+"/threads/"+thread+"?follow=1")
		until(t, viewer, runEnds(""))

		q := inList(t, addrs[0], list, 1)[0]
		require.Equal(t, kind, q.Kind)
		text := post(t, "http://"+addrs[0]+"/api/v1/questions/"+q.ID+"/answer", "", `{"id":"a1","decision":"answer","message":{"metres":[2,3]},"client_id":"phone"}`)
		require.True(t, strings.HasPrefix(text, "200 "), text)
		require.Contains(t, text, `"decision":"answer"`)
		frames := until(t, viewer, runEnds(""))
		require.Equal(t, `painted {"metres":[2,3]}`, speech(frames))
		var shown bool
		for _, one := range frames {
			shown = shown || one.Name == wire.CustomAnswered
		}
		require.True(t, shown)

		late := c.runAt(askingBase, thread, newRun(), "", resumes(open[0].ID, "me, too"))
		require.Equal(t, "waggle.answer_refused", late[0].Name+late[1].Name, "%v", datas(late))
		require.Contains(t, late[0].data+late[1].data, "INPUT_ANSWERED")
		inList(t, addrs[0], "kind=task", 0)
		cancel()
	}
}

// TestAGUIQuestionsOfAnAgentExpire: the agent goes on without an answer, and with it the thread.
func TestAGUIQuestionsOfAnAgentExpire(t *testing.T) {
	addrs := askers(t, 1, swarm.Question{Message: "Which colour?", Timeout: 2 * time.Second})
	c := aguiClient{t: t, addr: addrs[0]}
	thread := newRun()
	open := interrupts(t, c.runAt(askingBase, thread, newRun(), "paint it", nil))
	require.JSONEq(t, `{"type":"object","properties":{"answer":{}},"required":["answer"]}`, string(open[0].ResponseSchema))
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	viewer := c.follow(ctx, askingBase+"/threads/"+thread+"?follow=1")
	until(t, viewer, runEnds(""))
	require.Equal(t, "nothing: true", speech(until(t, viewer, runEnds(""))))
	late := c.runAt(askingBase, thread, newRun(), "", resumes(open[0].ID, "red"))
	require.Contains(t, late[0].data+late[1].data, "INPUT_EXPIRED")
}

// TestAGUIOneAnswerToAnAgentCounts: of answers at two gateways, in the inbox and at the task, the agent gets one, and all others
// are told which.
func TestAGUIOneAnswerToAnAgentCounts(t *testing.T) {
	addrs := askers(t, 2, swarm.Question{Message: "Which colour?", Timeout: time.Hour})
	thread := newRun()
	open := interrupts(t, aguiClient{t: t, addr: addrs[0]}.runAt(askingBase, thread, newRun(), "paint it", nil))
	task := inList(t, addrs[0], "kind=task", 1)[0]
	session := inList(t, addrs[0], "", 1)[0]
	var racers sync.WaitGroup
	taken := make([]bool, 2)
	for i := range 2 {
		racers.Go(func() {
			aguiClient{t: t, addr: addrs[i]}.runAt(askingBase, thread, newRun(), "", resumes(open[0].ID, object{"answer": fmt.Sprint("a", i)}))
		})
	}
	for i, id := range []string{task.ID, session.ID} {
		racers.Go(func() {
			taken[i] = strings.HasPrefix(post(t, "http://"+addrs[i]+"/api/v1/questions/"+id+"/answer", "", fmt.Sprintf(`{"decision":"answer","message":"a%d"}`, 2+i)), "200 ")
		})
	}
	racers.Wait()
	log := history(t, addrs[0], session.LogID)
	over := all[event.RunCompletedData](t, log)
	require.Len(t, over, 1)
	require.Regexp(t, `^painted "a[0-3]"$`, over[0].Content)
	counts := 0
	for i, counted := range taken {
		if counted {
			counts++
			require.Equal(t, fmt.Sprintf(`painted "a%d"`, 2+i), over[0].Content)
		}
	}
	require.LessOrEqual(t, counts, 1)
	answers := all[event.InputAnsweredData](t, log)
	require.Len(t, answers, 1)
	require.Equal(t, over[0].Content, "painted "+string(answers[0].Message), "what was told is what the session shows")
}

// TestEveryProtocolAnswersAnAgent: viewers of the session are asked, too, and what they answer goes to the agent.
func TestEveryProtocolAnswersAnAgent(t *testing.T) {
	addrs := askers(t, 1, swarm.Question{Message: "Which colour?", Options: []string{"approve", "green"}, Timeout: time.Hour})
	c := aguiClient{t: t, addr: addrs[0]}
	answers := map[string]string{
		"ORBIT": `{"approved":true,"text":"green"}`, "MyAgent": `{"approved":true}`, "ASP": `"approve"`, "team": `{"approved":true}`,
	}
	for _, d := range client.Dialects() {
		how := asks[d.Name]
		if how == nil {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			thread := newRun()
			interrupts(t, c.runAt(askingBase, thread, newRun(), "paint it", nil))
			run := "session/" + thread
			v := d.Watch(t, addrs[0], run, "")
			q := v.Until("the question", func(f client.Shown) bool { return how.MatchString(f.Raw) })
			require.Contains(t, q.Raw, "Which colour?")
			v.Say((&runViewers{t: t, run: run}).yes(d.Name, how.FindStringSubmatch(q.Raw)[1]))
			v.Until("the answer of the agent", func(f client.Shown) bool { return strings.Contains(f.Raw, "painted") })
			frames := c.get("/threads/" + thread)
			require.Contains(t, fmt.Sprint(said(frames)), "painted "+answers[d.Name])
		})
	}
}

// TestAGUIStepsOfAgentsThatAsk: a step waits for the answer to its agent, and the other one goes on.
func TestAGUIStepsOfAgentsThatAsk(t *testing.T) {
	steps := tasks("wall", "roof")
	steps[0].Capability = "sdk"
	f := newFleet(t, scripted.Stages{
		Plan:      scripted.Always(scripted.Plan(steps...)),
		Tasks:     map[string]scripted.Script{"roof": scripted.Always(say("the roof is done"))},
		Aggregate: scripted.Always(say("all is done")),
	}.Script())
	f.configure("gateway: {message_rate: 1000, message_burst: 1000}\n")
	f.serve("session,pipeline,worker,tools,task")
	_, addr := f.gateway()
	painter(t, addr, swarm.Question{Message: object{"question": "Which colour?"}, Timeout: time.Hour})
	c := aguiClient{t: t, addr: addr}
	thread := newRun()
	plan := func(in map[string]any) {
		in["forwardedProps"] = object{"waggle": object{"mode": "plan", "confirmPlan": false}}
	}
	frames := c.run(thread, newRun(), "build", plan)
	open := interrupts(t, frames)
	require.Len(t, open, 1)
	require.Equal(t, "Which colour?", open[0].Message)
	require.NotEmpty(t, open[0].SubagentRunID)
	text := strings.Join(datas(frames), "\n")
	require.Contains(t, text, "the roof is done")
	require.Contains(t, text, `"outcome":{"type":"suspended","interruptIds":["`+open[0].ID+`"]}`)
	frames = c.run(thread, newRun(), "", resumes(open[0].ID, "red"))
	text = strings.Join(datas(frames), "\n")
	require.Contains(t, text, `painted \"red\"`)
	require.True(t, strings.HasSuffix(speech(frames), "all is done"))
	require.Equal(t, wire.OutcomeSuccess, frames[len(frames)-1].Outcome.Type)
}

// TestAGUIMembersOfTheSwarmAsk: the question of a member that is an agent of the swarm is one of its team.
func TestAGUIMembersOfTheSwarmAsk(t *testing.T) {
	c := newTeamFleet(t, models.Team{}.Script())
	painter(t, c.addr, swarm.Question{Message: "Which colour?", Options: []string{"red", "green"}, Timeout: time.Hour})
	v := c.found(object{
		"name": "office", "coordinator": "Boss", "members": []object{
			{"name": "Boss"},
			{"name": "studio", "team": object{"name": "studio", "coordinator": "Artist", "members": []object{{"name": "Artist", "agent": "Painter"}}}},
		},
	})
	a := aguiClient{t: t, addr: c.addr}
	base, thread := "/teams/"+v.TeamID, newRun()
	open := interrupts(t, a.runAt(base, thread, newRun(), "paint", func(in map[string]any) {
		in["forwardedProps"] = object{"waggle": object{"targetMember": "studio/Artist"}}
	}))
	require.Len(t, open, 1)
	require.Equal(t, []string{wire.ReasonInputRequired, "Which colour?"}, []string{open[0].Reason, open[0].Message})
	one := inList(t, c.addr, "", 1)[0]
	require.Equal(t, []string{"member", "agent", "studio/Artist"}, []string{one.Kind, one.Scope, one.Asker})
	status, text := a.text(http.MethodPost, base, aguiInput(thread, newRun(), "", resumes(open[0].ID, "blue")))
	require.Equal(t, http.StatusUnprocessableEntity, status, text)
	frames := a.runAt(base, thread, newRun(), "", resumes(open[0].ID, "red"))
	require.Contains(t, strings.Join(datas(frames), "\n"), `painted \"red\"`)
	require.Equal(t, wire.RunFinished, frames[len(frames)-1].Type)
}

// TestAgentsAskUnderTheUsersOfTheRoles: with a process for each role, each with no more rights on the bus than its list, agents of
// the swarm ask in sessions and as members of teams. The server refuses nothing.
func TestAgentsAskUnderTheUsersOfTheRoles(t *testing.T) {
	g := startGuarded(t, "server.conf")
	require.Contains(t, g.run(permission.Bootstrap, "bootstrap"), "the streams are as the configuration has them")
	addr := g.serve()
	painter(t, addr, swarm.Question{Message: "Which colour?", Timeout: time.Hour})
	c := aguiClient{t: t, addr: addr}
	answer := func(base string, change func(map[string]any)) {
		t.Helper()
		thread := newRun()
		open := interrupts(t, c.runAt(base, thread, newRun(), "paint", change))
		frames := c.runAt(base, thread, newRun(), "", resumes(open[0].ID, "red"))
		require.Contains(t, strings.Join(datas(frames), "\n"), `painted \"red\"`)
	}
	answer(askingBase, nil)
	text := ""
	process.Eventually(t, "the team is made", func() bool {
		text = post(t, "http://"+addr+"/api/v1/teams", "", `{"name":"office","coordinator":"Boss","members":[{"name":"Boss"},{"name":"Artist","agent":"Painter"}]}`)
		return strings.HasPrefix(text, "201 ")
	})
	var v command.TeamView
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(text, "201 ")), &v))
	answer("/teams/"+v.TeamID, func(in map[string]any) { in["forwardedProps"] = object{"waggle": object{"targetMember": "Artist"}} })
	require.Empty(t, g.log.all(), "the server refused something")
}

// TestAGUIQuestionsOfAgentsOutliveTheServices: all services are killed while the agent waits. Others take the answer.
func TestAGUIQuestionsOfAgentsOutliveTheServices(t *testing.T) {
	f := newFleet(t, scripted.Always(say("the model speaks")))
	f.configure("gateway: {message_rate: 1000, message_burst: 1000}\n")
	p := f.serve("session,pipeline,worker,tools,task")
	_, addr := f.gateway()
	painter(t, addr, swarm.Question{Message: "Which colour?", Timeout: time.Hour})
	c := aguiClient{t: t, addr: addr}
	thread := newRun()
	open := interrupts(t, c.runAt(askingBase, thread, newRun(), "paint it", nil))
	p.Kill()
	_ = p.Wait() // it was killed
	f.serve("session,pipeline,worker,tools,task")
	run, text := newRun(), ""
	process.Eventually(t, "the answer is taken", func() (taken bool) { // 503 while no service is there
		var status int
		status, text = c.text(http.MethodPost, askingBase, aguiInput(thread, run, "", resumes(open[0].ID, "red")))
		return status == http.StatusOK
	})
	require.Contains(t, text, `painted \"red\"`)
	log := history(t, addr, thread)
	require.Len(t, all[event.InputRequestedData](t, log), 1)
	require.Len(t, all[event.InputAnsweredData](t, log), 1)
}
