package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/flows"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/models"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// kitchen is a team of two, one of which is a team. People are asked about every tool.
var kitchen = object{
	"name": "kitchen", "coordinator": "Lead",
	"members": []object{
		{"name": "Lead", "tools": []string{"workspace/write_file"}},
		{"name": "cooks", "team": object{
			"name": "cooks", "coordinator": "Cook", "members": []object{{"name": "Cook", "tools": []string{"workspace/read_file"}}},
		}},
	},
}

// kitchenCast holds the answers of its members; other models answer as in the flows.
func kitchenCast() scripted.Script {
	cast := models.Team{
		"Lead: dinner": {
			writesFile("menu.txt", "soup"), models.Calls("create_tasks", object{"tasks": []object{{"task_name": "soup", "assignee_name": "cooks", "description": "Cook soup."}}}),
			models.Says("There will be soup."),
		},
		"Cook: task soup":                {readsFile("notes.md"), models.Writes("Lead", "soup is ready"), updates("soup", "completed"), models.Says("Done.")},
		"Lead: cooks says soup is ready": {models.Says("Enjoy.")},
		"Lead: dessert":                  {writesFile("menu.txt", "cake"), models.Says("There will be cake.")},
		"Lead: burn it":                  {},
	}.Script()
	_, rest := flows.NewStage()
	return func(x *scripted.Exchange) scripted.Reply {
		if strings.Contains(x.Prompt.System, "a member of the team") {
			return cast(x)
		}
		return rest(x)
	}
}

// runViewers is those who watch one run, in every dialect, and its log.
type runViewers struct {
	t       *testing.T
	c       *teamFleet
	run     string
	log     subject.Log
	viewers []*client.Viewer
}

func (c *teamFleet) viewersOf(t *testing.T, kind id.Kind, name string) *runViewers {
	t.Helper()
	a := &runViewers{t: t, c: c, run: string(kind) + "/" + name, log: verify.LogOf(kind, name)}
	a.viewers = a.connect()
	return a
}

// connect opens a socket of each dialect.
func (a *runViewers) connect() (all []*client.Viewer) {
	a.t.Helper()
	for _, m := range client.Dialects() {
		all = append(all, m.Watch(a.t, a.c.addr, a.run, ""))
	}
	return all
}

// in returns the viewer of a dialect.
func (a *runViewers) in(name string) *client.Viewer {
	a.t.Helper()
	for _, s := range a.viewers {
		if s.Name == name {
			return s
		}
	}
	require.Fail(a.t, "no such dialect", name)
	return nil
}

// asks say how each dialect asks, with the id that it wants back.
var asks = map[string]*regexp.Regexp{
	"ORBIT":   regexp.MustCompile(`"type":"agent_thinking".*"question":\{"id":"([^"]+)"`),
	"MyAgent": regexp.MustCompile(`"event":"agent.user_confirm".*?"step_id":"([^"]+)"`),
	"ASP":     regexp.MustCompile(`"type":"task.requestmessage".*?"taskId":"([^"]+)"`),
	"team":    regexp.MustCompile(`"type":"TOOL_APPROVAL_REQUESTED","payload":\{"invocation_id":"([^"]+)"`),
}

// answer waits until every viewer is asked for the n-th time, and says yes in one dialect.
func (a *runViewers) answer(n int, dialect string) {
	a.t.Helper()
	for _, s := range a.viewers {
		how := asks[s.Name]
		if how == nil {
			continue
		}
		seen := map[string]bool{}
		q := s.Until(fmt.Sprintf("question %d", n), func(f client.Shown) bool {
			if f.Seq > 0 && how.MatchString(f.Raw) {
				seen[how.FindStringSubmatch(f.Raw)[1]] = true
			}
			return len(seen) == n
		})
		if s.Name == dialect {
			s.Say(a.yes(dialect, how.FindStringSubmatch(q.Raw)[1]))
		}
	}
}

func (a *runViewers) yes(dialect, question string) object {
	_, name, _ := strings.Cut(a.run, "/")
	switch dialect {
	case "ORBIT":
		return object{"type": "answer", "question_id": question, "approved": true, "feedback": "green"}
	case "MyAgent":
		return object{"event": "user.response", "session_id": name, "step_id": question, "content": object{"approved": true}}
	case "ASP":
		return object{"id": "yes", "type": "task.message", "content": object{"taskId": question, "message": "approve"}}
	}
	return object{"type": "APPROVE_TOOL", "payload": object{"invocation_id": question}}
}

// until waits until the log holds n events of a type, at any depth, and returns it.
func (a *runViewers) until(kind event.Type, n int, holds string) (log []verify.Stored) {
	a.t.Helper()
	process.Eventually(a.t, fmt.Sprintf("%d %s %s", n, kind, holds), func() bool {
		log = verify.ReadLog(a.t, a.c.nc, a.log)
		found := 0
		for _, e := range log {
			if inner := event.Unwrap(e.Event); inner.Type == kind && strings.Contains(string(inner.Data), holds) {
				found++
			}
		}
		return found >= n
	})
	return log
}

// told waits until every viewer has seen a text.
func (a *runViewers) told(texts ...string) {
	a.t.Helper()
	for _, s := range a.viewers {
		for _, text := range texts {
			s.Until(text, func(f client.Shown) bool { return f.Seq > 0 && strings.Contains(f.Raw, text) })
		}
	}
}

// end requires of every viewer, and of one in each dialect who comes only now, that it has
// all that matters, and of two of one dialect that they have the same.
func (a *runViewers) end(log []verify.Stored) {
	a.t.Helper()
	late := a.connect()
	for i, s := range a.viewers {
		counts := [2]int{}
		for k, viewer := range []*client.Viewer{s, late[i]} {
			counts[k] = a.complete(viewer, log)
		}
		sameMany(a.t, s, late[i])
		require.Equal(a.t, s.Texts(), late[i].Texts(), "%s: who comes late sees the same, byte for byte", s.Name)
		a.t.Logf("%s in %s: %d frames of %d of %d events", a.run, s.Name, len(s.Shown()), counts[0], len(log))
	}
}

func (a *runViewers) complete(s *client.Viewer, log []verify.Stored) int {
	a.t.Helper()
	last := uint64(0)
	for _, e := range log {
		if verify.Matters(a.t, e) {
			last = e.Sequence
		}
	}
	s.Until(fmt.Sprintf("event %d", last), func(f client.Shown) bool { return f.Seq >= last })
	if flat := a.in("team"); s.Name == "team envelopes" {
		sameMany(a.t, s, flat)
	}
	return verify.Complete(a.t, s, log)
}

// sameMany waits until both viewers have the same number of frames.
func sameMany(t *testing.T, a, b *client.Viewer) {
	t.Helper()
	process.Eventually(t, fmt.Sprintf("%s and %s have as many frames", a, b), func() bool { return len(a.Texts()) == len(b.Texts()) })
}

// TestOneRunInEveryDialect: a run of each kind is watched at once in every dialect. All
// viewers see what matters, early and late ones the same, and what is asked
// in one is answered in another.
func TestOneRunInEveryDialect(t *testing.T) {
	t.Parallel()
	c := newTeamFleet(t, kitchenCast())
	t.Run("a team", func(t *testing.T) { t.Parallel(); c.watchTeam(t) })
	t.Run("a session with a plan", func(t *testing.T) { t.Parallel(); c.watchSession(t) })
	t.Run("a task of the swarm", func(t *testing.T) { t.Parallel(); c.watchTask(t) })
	t.Run("a chat", func(t *testing.T) { t.Parallel(); c.watchChat(t) })
}

func (c *teamFleet) watchTeam(t *testing.T) {
	a := c.viewersOf(t, id.KindTeam, c.found(kitchen).TeamID)
	a.in("team").Say(object{"type": "SEND_MESSAGE", "payload": object{"content": "dinner"}})
	a.answer(1, "MyAgent")
	a.answer(2, "ORBIT")
	a.until(event.RunCompleted, 3, "")
	a.in("ORBIT").Say(object{"type": "user_message", "content": "dessert"})
	a.answer(3, "ASP")
	a.until(event.RunCompleted, 4, "")
	a.in("MyAgent").Say(object{"event": myagent.UserMessage, "session_id": a.log.Entity.String(), "content": "burn it", "metadata": object{}})
	log := a.until(event.TeamStatus, 1, `"ERROR"`)
	require.Equal(t, event.TeamStatus, log[len(log)-1].Type)
	a.told("There will be soup.", "Done.", "Enjoy.", "There will be cake.")
	a.end(log)
}

func (c *teamFleet) watchSession(t *testing.T) {
	m := client.DialMyAgent(t, c.addr)
	m.Create("en_US", object{"confirm_plan": true})
	a := c.viewersOf(t, id.KindSession, m.Session)
	m.Message("say one; then say two; finally say three", nil)
	a.answer(1, "team")
	a.until(event.PipelineCompleted, 1, "")
	m.Message("say four; refuse", nil)
	a.answer(2, "ASP")
	log := a.until(event.RunCompleted, 2, "") // it ends the run, after pipeline.completed
	require.Equal(t, event.RunCompleted, log[len(log)-1].Type)
	a.told("one", "three", "four")
	a.end(log)
}

func (c *teamFleet) watchTask(t *testing.T) {
	h := swarmRig{t: t, addr: c.addr}
	worker := h.agent("painter", "Painter", nil, "painting")
	asker := h.client()
	for n := 1; n <= 2; n++ {
		asker.Say("client.agent.task.create.request", object{"agentId": "painter", "agentName": "Painter", "taskData": object{"text": "paint"}})
		task := worker.Until("task.execute").Text("taskId")
		a := c.viewersOf(t, id.KindTask, task)
		worker.Say("task.status", object{"taskId": task, "status": "started"})
		worker.Say("task.requestmessage", object{"taskId": task, "messageType": "input_request", "message": "Which colour?", "options": []string{"green", "red"}, "timeout": 60000})
		for _, s := range a.viewers {
			s.Until("the question", func(f client.Shown) bool { return f.Seq > 0 && strings.Contains(f.Raw, "Which colour?") })
		}
		question := a.in("ORBIT").Until("the question", func(f client.Shown) bool { return asks["ORBIT"].MatchString(f.Raw) })
		a.in("ORBIT").Say(a.yes("ORBIT", asks["ORBIT"].FindStringSubmatch(question.Raw)[1]))
		require.Contains(t, string(worker.Until("task.messageresponse").Content), "green")
		if n == 1 {
			worker.Say("agent.task.result", object{"taskId": task, "result": object{"picture": "all green"}})
		} else {
			worker.Say("task.error", object{"taskId": task, "error": "The colour is dry."})
		}
		log := a.until(event.TaskFinished, 1, "")
		require.Equal(t, event.TaskFinished, log[len(log)-1].Type)
		a.told("Which colour?", map[int]string{1: "all green", 2: "The colour is dry."}[n])
		a.end(log)
	}
}

func (c *teamFleet) watchChat(t *testing.T) {
	chat := client.DialOrbit(t, "ws://"+c.addr+"/ws")
	chat.Until("agent_ready")
	a := c.viewersOf(t, id.KindSession, chat.Session)
	chat.Ask("what does notes.md say?")
	chat.Until("agent_response")
	a.in("team").Say(object{"type": "SEND_MESSAGE", "payload": object{"content": "list the files"}})
	chat.Until("agent_response")
	log := a.until(event.RunCompleted, 2, "")
	require.Equal(t, event.RunCompleted, log[len(log)-1].Type)
	a.told("buy milk", "notes.md")
	a.end(log)
}
