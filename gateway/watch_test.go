package gateway_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/directory"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	teamwire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// kinds are those of runs that can be watched.
var kinds = []id.Kind{id.KindSession, id.KindTask, id.KindMember, id.KindTeam}

// startAll returns a gateway with sockets of every binding, and the services of the test.
func startAll(t testing.TB, opts ...option) *swarm {
	t.Helper()
	s := &swarm{rig: prepare(t, sharedBus(t))}
	s.dir = openDirectory(t, s.rig)
	for _, name := range []id.Name{wirecmd.Session, wirecmd.Pipeline, wirecmd.Worker, id.MustName("tools")} {
		lease, err := s.dir.Join(context.Background(), directory.Member{What: directory.WhatService, Name: name, Instance: id.MustName(unique())})
		require.NoError(t, err)
		t.Cleanup(func() { _ = lease.Leave(context.Background()) })
	}
	s.tasks = startTaskService(s.rig)
	s.srv = s.server(append([]option{withSwarm(s.dir), withTestDialects, unlimited}, opts...)...)
	startSessionService(s.rig)
	s.startTeamService()
	s.serve()
	return s
}

// watcher is a kind of socket that watches a run.
type watcher struct {
	path string
	see  func(c *client, l subject.Log, texts ...string) // reads the run up to these, which are all its messages
	deny func(c *client, code fault.Code, closed int)
}

// until reads on to a frame that has the text.
func (c *client) until(text string) string {
	c.t.Helper()
	for end := time.Now().Add(maxWait); time.Now().Before(end); { // heartbeats come whatever else does not
		b, err := c.text()
		require.NoError(c.t, err, "before %q", text)
		if strings.Contains(string(b), text) {
			return string(b)
		}
	}
	require.FailNow(c.t, "nothing came with "+text)
	return ""
}

// watchers returns the watching sockets of all bindings. The texts are answers of runs.
func watchers(t testing.TB) map[string]watcher {
	denied := func(c *client, code fault.Code, closed int) { c.expectRefusal(code, closed) }
	return map[string]watcher{
		"one session": {pathSingle, func(c *client, l subject.Log, texts ...string) {
			for range 2 {
				require.Equal(t, l.Entity.String(), c.expectTeamFrame("greeting").ID)
			}
			c.expectAnswers(l, texts...)
		}, denied},
		"several sessions": {pathSessions, func(c *client, l subject.Log, texts ...string) {
			c.expectFrame("connected")
			c.expectAnswers(l, texts...)
		}, func(c *client, code fault.Code, closed int) {
			require.Equal(t, string(code), c.expectFrame("failed").Code)
			c.closes(closed)
		}},
		"a team": {pathRuns, func(c *client, l subject.Log, texts ...string) {
			c.expectWelcome(l.Entity.String())
			for i := 0; i < len(texts); {
				f := c.nextTeamFrame()
				if f.Kind == "status" && (l.Kind == id.KindTeam || l.Kind == id.KindMember) {
					continue
				}
				require.Equal(t, "event", f.Kind)
				if f.Type == teamwire.AssistantComplete {
					require.Equal(t, l.Entity.String(), f.Of)
					require.Contains(t, string(f.Data), texts[i])
					i++
					if f.At&15 != 15 { // the status that follows has the same event
						require.Equal(t, f.At|15, c.expectTeamFrame("event").At)
					}
				}
			}
		}, denied},
		"a client of the swarm": {pathClient, func(c *client, _ subject.Log, texts ...string) {
			c.expectASP("orchestrator.client.welcome")
			for _, text := range texts {
				c.until(text)
			}
		}, func(c *client, code fault.Code, closed int) {
			require.Equal(t, string(code), c.expectASP("error").Content.Code)
			c.closes(closed)
		}},
	}
}

// expectAnswers reads the events of a log, which are its first one and answers.
func (c *client) expectAnswers(l subject.Log, texts ...string) {
	c.t.Helper()
	require.EqualValues(c.t, 1, c.expectFrame("event").Seq)
	for _, text := range texts {
		s := c.expectFrame("event")
		require.Equal(c.t, l.Entity.String(), s.Session)
		require.Contains(c.t, string(s.Data), text)
	}
}

// A run of every kind is shown whole on sockets of every binding, and so are its new events.
func TestAnyRunOnAnySocket(t *testing.T) {
	t.Parallel()
	s := startAll(t)
	for _, kind := range kinds {
		l := s.runLog(kind, "default")
		s.answers(l, "first", "second")
		for name, w := range watchers(t) {
			t.Run(fmt.Sprintf("%s on a socket of %s", kind, name), func(*testing.T) {
				c := s.open(w.path, "watch="+string(kind)+"/"+l.Entity.String())
				w.see(c, l, "first", "second")
				c.leave()
			})
		}
		// All of them at once: each sees what comes, and those who come late see the same.
		var there []*client
		for _, w := range watchers(t) {
			c := s.open(w.path, "watch="+string(kind)+"/"+l.Entity.String())
			w.see(c, l, "first", "second")
			there = append(there, c)
		}
		s.answers(l, "third "+string(kind))
		for _, c := range there {
			c.until("third " + string(kind))
			c.leave()
		}
		for _, w := range watchers(t) {
			c := s.open(w.path, "watch="+string(kind)+"/"+l.Entity.String())
			w.see(c, l, "first", "second", "third "+string(kind))
			c.leave()
		}
	}
}

// Unknown runs, runs of another tenant and malformed names get the same fault on every socket.
func TestUnknownRuns(t *testing.T) {
	t.Parallel()
	s := startAll(t, authenticated(key("alice", "red"), key("bob", "blue")))
	var bad []string
	for _, kind := range kinds {
		secret := s.runLog(kind, "red")
		bad = append(bad, string(kind)+"/"+secret.Entity.String(), string(kind)+"/nobody", string(kind)+"/", string(kind))
	}
	inbox := clientLog("blue", unique())
	require.NoError(t, s.append(inbox, "created", event.InboxCreatedData{ClientID: "x"}))
	bad = append(bad, "", "/", "/x", "client/"+inbox.Entity.String(), "Team/x", "team/*", "team/a.b", "team/a/b", "team/\x00", "team/"+strings.Repeat("x", 300))
	for name, w := range watchers(t) {
		t.Run(name, func(t *testing.T) {
			for _, run := range bad {
				w.deny(s.open(w.path, "watch="+url.QueryEscape(run), bearer("bob")...), fault.RunNotFound, 4404)
			}
			w.deny(s.open(w.path, "watch=team/a&watch=team/b", bearer("bob")...), fault.RunNotFound, 4404)
			s.path = w.path
			_, status, body := s.handshake("watch=team/a&session=b", bearer("bob")...)
			require.Equal(t, 422, status)
			require.Contains(t, body, `"field":"watch"`)
		})
	}
}

// A run is shown from a position, where the dialect has one.
func TestRunsFromAPosition(t *testing.T) {
	t.Parallel()
	s := startAll(t)
	for _, kind := range kinds {
		l := s.runLog(kind, "default")
		s.answers(l, "second", "third")
		for _, path := range []string{pathSingle, pathSessions} {
			query := "watch=" + string(kind) + "/" + l.Entity.String() + "&after="
			for after := range 4 {
				c := s.open(path, query+fmt.Sprint(after))
				if path == pathSingle {
					require.EqualValues(t, after, c.expectTeamFrame("greeting").At)
					c.expectTeamFrame("greeting")
				} else {
					c.expectFrame("connected")
				}
				c.expectEvents(l, uint64(after+1), 3)
				c.leave()
			}
			for _, bad := range []string{"4", "x", "-1", ""} {
				c := s.open(path, query+bad)
				b, err := c.text()
				require.NoError(t, err)
				require.Contains(t, string(b), fault.CursorInvalid)
				c.closes(4422)
			}
		}
	}
}

// A watcher's messages go to the service that manages the run, for every kind of run and on
// sockets of every binding.
func TestMessagesOfWatchers(t *testing.T) {
	t.Parallel()
	s := startAll(t)
	for _, kind := range kinds {
		l := s.runLog(kind, "default")
		name, key, member := l.Entity.String(), l.Entity, ""
		if team, ok := id.TeamOf(l.Entity); ok {
			key, member = team, name
		}
		want := map[id.Kind]string{
			id.KindSession: "pipeline.send_message", id.KindTask: "task.message_task", id.KindMember: "team.send_message", id.KindTeam: "team.send_message",
		}[kind]
		for _, path := range []string{pathSingle, pathRuns} {
			c := s.open(path, "watch="+string(kind)+"/"+name)
			c.sendTeam("say", "", "hello")
			cmd := s.nextCommand(key.String())
			require.Equal(t, want, cmd.Service.String()+"."+cmd.Verb.String())
			require.Equal(t, member, cmd.Member)
			require.Contains(t, string(cmd.Data), "hello")
			require.NotEmpty(t, cmd.ReplyTo, "who comes too late is told")
			c.leave()
		}
		c := s.open(pathSessions, "watch="+string(kind)+"/"+name)
		c.expectFrame("connected")
		c.expectFrame("event")
		c.ask(multiRequest{Ask: "act", Session: name, Text: "hello"})
		cmd := s.nextCommand(key.String())
		require.Equal(t, want, cmd.Service.String()+"."+cmd.Verb.String())
		require.Equal(t, member, cmd.Member)
		// Another id is a session, as ever, and a session can be opened beside it.
		c.ask(multiRequest{Ask: "act", Session: "nobody", Text: "hello"})
		require.Equal(t, "SESSION_EXPIRED", c.expectFrame("refused").Code)
		other, _ := c.openSession(s.rig, multiRequest{})
		require.Equal(t, id.KindSession, other.Kind)
		c.leave()
	}
	// A task has the name that its client gave it.
	name := "a/task, " + unique()
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal(name)}
	require.NoError(t, s.append(l, "created", event.TaskCreatedData{}))
	c := s.open(pathSessions, "watch="+url.QueryEscape("task/"+name))
	c.expectFrame("connected")
	c.expectEvents(l, 1, 1)
	c.ask(multiRequest{Ask: "act", Session: l.Entity.String(), Text: "hello"})
	require.Contains(t, string(s.nextCommand(l.Entity.String()).Data), name)
	c = s.open(pathSingle, "watch="+url.QueryEscape("task/"+name))
	require.Equal(t, name, c.expectTeamFrame("greeting").ID)
	c = s.open(pathSessions, "watch=task/"+l.Entity.String())
	require.Equal(t, string(fault.RunNotFound), c.expectFrame("failed").Code, "the token of a name is no name")
	c.closes(4404)
}

// A run other than a session can be resumed on sockets of several sessions. It has no state, and
// the gateway stores no position in it.
func TestResumingARunOfAnotherKind(t *testing.T) {
	s := startAll(t)
	l := s.runLog(id.KindTeam, "default")
	s.answers(l, "second", "third")
	name := l.Entity.String()
	c := s.open(pathSessions, "watch=team/"+name+"&after=3")
	c.expectFrame("connected")
	for after := range uint64(4) {
		c.ask(multiRequest{Ask: "resume", Session: name, After: ptr(after)})
		c.expectEvents(l, after+1, 3)
		require.EqualValues(t, 3-after, c.expectFrame("replayed").Count)
	}
	c.ask(multiRequest{Ask: "resume", Session: name, EventID: "2"})
	c.expectEvents(l, 3, 3)
	c.expectFrame("replayed")
	c.ask(multiRequest{Ask: "resume", Session: name, Client: "phone"})
	c.expectEvents(l, 1, 3)
	c.expectFrame("replayed")
	for _, bad := range []multiRequest{{After: ptr(uint64(4))}, {EventID: "4.1"}} {
		bad.Ask, bad.Session = "resume", name
		c.ask(bad)
		require.Equal(t, string(fault.CursorInvalid), c.expectFrame("refused").Code)
	}
	c.ask(multiRequest{Ask: "export", Session: name})
	require.Equal(t, string(fault.UnknownType), c.expectFrame("refused").Code)
	c.ask(multiRequest{Ask: "ack", Session: name, After: ptr(uint64(3)), Client: "phone"})
	c.leave()
	require.Empty(t, s.inbox(name), "no service of sessions is told of a team")
}

// A client of the swarm has its inbox as ever beside the run that it watches, and neither
// keeps the other from being read, however much comes.
func TestAnInboxBesideARun(t *testing.T) {
	t.Parallel()
	const each = 40
	s := startAll(t, func(c *gateway.Config, _ *gateway.Deps) { c.QueueBytes = 16 << 10 })
	l := s.runLog(id.KindTeam, "default")
	c := s.open(pathClient, "watch=team/"+l.Entity.String())
	inbox := clientLog("default", c.expectASP("orchestrator.client.welcome").Content.ClientID)
	pad := strings.Repeat("x", 8<<10)
	for i := range each {
		s.answers(l, fmt.Sprintf("run %d;%s", i, pad))
		s.writeInbox(inbox, fmt.Sprintf("inbox %d;%s", i, pad))
	}
	next := map[string]int{}
	for end := time.Now().Add(maxWait); next["run"] < each || next["inbox"] < each; {
		require.True(t, time.Now().Before(end), "%v", next)
		b, err := c.text()
		require.NoError(t, err)
		for _, from := range []string{"run", "inbox"} {
			if strings.Contains(string(b), fmt.Sprintf(`%s %d;`, from, next[from])) {
				next[from]++
			}
		}
	}
	other := unique()
	c.sendASP("task.message", "m", map[string]any{"taskId": other, "message": "to another task"})
	require.Equal(t, "task", s.nextCommand(other).Service.String())
	c.sendASP("client.agent.list.request", "li", map[string]any{})
	c.until(`"client.agent.list.response"`)
	c.leave()
}

// Messages of a client of the swarm about the run that it watches go to the service that manages
// that run.
func TestASwarmClientSendsToAWatchedRun(t *testing.T) {
	s := startAll(t)
	for _, kind := range kinds {
		l := s.runLog(kind, "default")
		key := l.Entity
		if team, ok := id.TeamOf(key); ok {
			key = team
		}
		c := s.open(pathClient, "watch="+string(kind)+"/"+l.Entity.String())
		c.expectASP("orchestrator.client.welcome")
		for _, ask := range []struct {
			frame, content, want string
			kinds                map[id.Kind]string
		}{
			{"task.message", "hello", "send_message", map[id.Kind]string{id.KindTask: "message_task"}},
			{"client.agent.task.cancel.request", "", "cancel", nil},
		} {
			c.sendASP(ask.frame, unique(), map[string]any{"taskId": "watched/" + l.Entity.String(), "message": ask.content})
			cmd, want := s.nextCommand(key.String()), ask.want
			if w := ask.kinds[kind]; w != "" {
				want = w
			}
			service := map[id.Kind]string{id.KindSession: "pipeline", id.KindTask: "task", id.KindMember: "team", id.KindTeam: "team"}[kind]
			require.Equal(t, service+"."+want, cmd.Service.String()+"."+cmd.Verb.String(), kind)
			if kind == id.KindMember {
				require.Equal(t, l.Entity.String(), cmd.Member)
			}
		}
		c.leave()
	}
}

// Of a run whose beginning has expired every socket says so and shows the rest.
func TestRunsWhoseBeginningHasExpired(t *testing.T) {
	t.Parallel()
	s := startAll(t)
	for _, kind := range kinds {
		l := s.runLog(kind, "default")
		s.answers(l, "gone", "gone", "kept one", "kept two")
		s.expire(l, 2)
		for name, w := range watchers(t) {
			c := s.open(w.path, "watch="+string(kind)+"/"+l.Entity.String())
			told := map[string]string{pathSingle: `"kind":"truncated"`, pathRuns: `"first_seq"`, pathSessions: wire.ActionHistoryExpired, pathClient: string(fault.HeadExpired)}
			c.until(told[w.path])
			c.until("kept one")
			c.until("kept two")
			s.answers(l, "live in "+name)
			c.until("live in " + name)
			c.leave()
			s.expire(l, 2)
			s.answers(l, "kept one", "kept two")
			s.expire(l, 2)
		}
	}
}
