package gateway_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/internal/plain"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// everyDialect is a gateway with a route of each kind, and the services that it waits for.
func everyDialect(t *testing.T) *rig {
	t.Helper()
	r := prepare(t, sharedBus(t))
	r.openDirectory()
	r.srv = r.server(unlimited, withTestDialects, plainly, withSwarm(r.dir), func(c *gateway.Config, _ *gateway.Deps) { c.MaxConnections = 10000 })
	r.sessions = startSessionService(r)
	r.serve()
	r.startTeamService()
	for _, s := range []string{"session", "pipeline", "worker", "tools", "task"} {
		r.join(s)
	}
	return r
}

// stored returns how many messages each stream holds, buckets and timers among them, and how many each key of the directory has.
func (r *rig) stored() map[string]uint64 {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	out := map[string]uint64{}
	list := r.conn.JS().ListStreams(ctx)
	for s := range list.Info() {
		out[s.Config.Name] = s.State.Msgs
	}
	require.NoError(r.t, list.Err())
	require.Contains(r.t, out, subject.StreamCommands)
	delete(out, directoryStream)
	directory, err := r.conn.JS().Stream(ctx, directoryStream)
	require.NoError(r.t, err)
	info, err := directory.Info(ctx, jetstream.WithSubjectFilter(">"))
	require.NoError(r.t, err)
	for key, n := range info.State.Subjects {
		out[key] = n
	}
	return out
}

var directoryStream = subject.BucketStream(subject.BucketDirectory)

// requireUnchanged fails the test if anything else is stored than before. Leases of the directory may have expired: its keys
// have no more messages than before.
func requireUnchanged(t *testing.T, before, now map[string]uint64) {
	t.Helper()
	of := func(all map[string]uint64, inDirectory bool) map[string]uint64 {
		out := maps.Clone(all)
		maps.DeleteFunc(out, func(name string, _ uint64) bool {
			return strings.HasPrefix(name, subject.BucketSubject(subject.BucketDirectory, "")) != inDirectory
		})
		return out
	}
	require.Equal(t, of(before, false), of(now, false))
	for key, n := range of(now, true) {
		require.LessOrEqual(t, n, before[key], "%s", key)
	}
}

// connects are what strangers and users do who send no message. Each returns what they
// leave: a client that has hung up.
func connects(r *rig, team subject.Log) []func() {
	dial := func(path, query string) *client {
		c, status, body := r.handshakeAt(path, query)
		require.Equal(r.t, http.StatusSwitchingProtocols, status, "%s", body)
		return c
	}
	orbit := func(query string) (*client, string) {
		c := dial("/ws", query)
		return c, c.ready()
	}
	session := func() (*client, framed) {
		c := dial(pathSessions, "")
		c.framed("system.connected")
		c.write(text(`{"event":"user.create_session","content":{"client_id":"phone","preferences":{"language":"en_US"}},"metadata":{"confirm_plan":true}}`))
		return c, c.framed("agent.session_created")
	}
	hangUp := func(c *client) { _ = c.Conn.Close() }
	return []func(){
		func() { c, _ := orbit(""); c.leave() },
		func() {
			c, _ := orbit("")
			c.write(frame(fin|opPing, []byte("x")))
			_, _, err := c.read()
			require.NoError(r.t, err)
			hangUp(c)
		},
		func() {
			c, name := orbit("")
			hangUp(c)
			for range 2 {
				back, same := orbit("session=" + name + "&after=0")
				require.Equal(r.t, name, same)
				hangUp(back)
			}
			viewer, _ := orbit("watch=session/" + name)
			viewer.leave()
		},
		func() { hangUp(dial(pathSessions, "")) },
		func() {
			c, created := session()
			c.asks("user.ack", created.SessionID, `,"metadata":{"last_seq":1}`)
			c.leave()
		},
		func() {
			c, created := session()
			hangUp(c)
			back := dial(pathSessions, "")
			back.framed("system.connected")
			back.asks("user.reconnect_with_state", created.SessionID, `,"content":{"last_event_id":"`+created.EventID+`"}`)
			require.Equal(r.t, "replay", back.framed("system.notice").Metadata.Action)
			back.asks("user.ack", created.SessionID, `,"metadata":{"last_seq":1}`)
			back.leave()
		},
		func() {
			c := dial(pathPlain, "")
			require.Equal(r.t, plain.Hello, c.plainNext().Type)
			hangUp(c)
		},
		func() {
			c := dial("/ws/agent-team/"+team.Entity.String(), "")
			_, err := c.text()
			require.NoError(r.t, err)
			hangUp(c)
		},
		func() { hangUp(dial(pathAgent, "")) },
		func() { hangUp(dial(pathService, "")) },
	}
}

// TestConnectsLeaveNothing: 4,000 connects in a burst, with pings, acknowledgements and returns,
// store nothing. The first message makes the one session.
func TestConnectsLeaveNothing(t *testing.T) {
	t.Parallel()
	const total, workers = 4000, 50
	r := everyDialect(t)
	team := r.runLog(id.KindTeam, "default")
	before := r.stored()
	kinds := connects(r, team)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range total / workers {
				kinds[(w+i)%len(kinds)]()
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	eventually(t, "the sockets are gone", func() bool { return r.metric("waggle_gateway_connections") == 0 })
	requireUnchanged(t, before, r.stored())

	c, status, _ := r.handshakeAt("/ws", "")
	require.Equal(t, http.StatusSwitchingProtocols, status)
	session := c.ready()
	requireUnchanged(t, before, r.stored())
	c.begin(r, session)
	after := map[string]uint64{}
	eventually(t, "the bus has stored the commands", func() bool { // it passes them on first
		after = r.stored()
		return after[subject.StreamCommands] >= before[subject.StreamCommands]+2
	})
	logs := uint64(0)
	for name, n := range after {
		if strings.HasPrefix(name, "EVT_") {
			logs += n - before[name]
			after[name] = before[name]
		}
	}
	require.EqualValues(t, 1, logs, "session.created")
	after[subject.StreamCommands] -= 2 // open and the message
	requireUnchanged(t, before, after)
}

// TestASessionThatIsAwaited: a client that comes to a session before its first message sees it begin,
// on another socket, in another dialect and on another gateway, and it begins once.
func TestASessionThatIsAwaited(t *testing.T) {
	t.Parallel()
	r := everyDialect(t)
	at := func(path, query string) *client {
		t.Helper()
		c, status, _ := r.handshakeAt(path, query)
		require.Equal(t, http.StatusSwitchingProtocols, status)
		return c
	}
	c := at("/ws", "")
	session := c.ready()
	second, watcher := at("/ws", "session="+session+"&after=0"), at("/ws", "watch=session/"+session)
	second.ready()
	watcher.ready()
	ahead := at("/ws", "session="+session+"&after=1")
	require.Equal(t, "CURSOR_INVALID", ahead.must("error").Data.Code)
	member := at(pathSessions, "")
	member.framed("system.connected")
	member.asks("user.reconnect_with_state", session, `,"content":{"last_seq":99999}`)
	beyond, err := member.text()
	require.NoError(t, err)
	require.Contains(t, string(beyond), `"constraint":"the seq of a frame of this session"`)
	require.NotContains(t, string(beyond), `"content":"after is`)
	member.asks("user.reconnect_with_state", session, `,"content":{"last_seq":0}`)
	member.framed("system.notice")

	second.write(message("from the second socket"))
	require.Equal(t, wirecmd.Open, r.nextCommand(session).Verb)
	require.Contains(t, string(r.nextCommand(session).Data), "from the second socket")
	require.EqualValues(t, 1, member.framed("agent.session_created").Seq, "the first event comes")
	c.write(message("from the first"))
	if got := r.nextCommand(session); got.Verb == wirecmd.Open { // it had not seen the session yet
		got = r.nextCommand(session)
		require.Contains(t, string(got.Data), "from the first")
	}
	watcher.write(message("from the watcher"))
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(session)}
	r.answers(l, "one answer")
	for _, viewer := range []*client{c, second, watcher} {
		require.Equal(t, "one answer", viewer.must("agent_response").Data.Message)
	}
	require.EqualValues(t, 2, member.framed("agent.final_answer").Seq)
}

// TestASessionThatOpensMeanwhile: a client that asks for a session just before another socket opens
// it is shown the session.
func TestASessionThatOpensMeanwhile(t *testing.T) {
	t.Parallel()
	r := everyDialect(t)
	missing, opened := make(chan struct{}), make(chan struct{})
	r.sessions.pause = func() {
		missing <- struct{}{}
		<-opened
	}
	c, _, _ := r.handshakeAt("/ws", "")
	session := c.ready()
	member, _, _ := r.handshakeAt(pathSessions, "")
	member.framed("system.connected")
	member.asks("user.reconnect_with_state", session, `,"content":{"last_seq":0}`)
	<-missing
	c.write(message("the first"))
	require.Equal(t, wirecmd.Open, r.nextCommand(session).Verb)
	require.Equal(t, wirecmd.SendMessage, r.nextCommand(session).Verb)
	close(opened)
	require.EqualValues(t, 1, member.framed("agent.session_created").Seq)
	require.Equal(t, "replay", member.framed("system.notice").Metadata.Action)
	require.Len(t, r.sessions.attaches(), 2)
}

// TestPreferencesWaitForTheFirstMessage: a session opens with the preferences that its client
// named it with, also on another gateway, and its client is told of it once.
func TestPreferencesWaitForTheFirstMessage(t *testing.T) {
	t.Parallel()
	r := everyDialect(t)
	create := func() (*client, framed) {
		c, _, _ := r.handshakeAt(pathSessions, "")
		c.framed("system.connected")
		c.write(text(`{"event":"user.create_session","content":{"client_id":"phone","user_id":"ann","preferences":{"language":"en_US"}},"metadata":{"confirm_plan":true,"on_busy":"enqueue"}}`))
		return c, c.framed("agent.session_created")
	}
	opened := func(session string) (out event.Preferences) {
		cmd := r.nextCommand(session)
		require.Equal(t, wirecmd.Open, cmd.Verb)
		require.NoError(t, json.Unmarshal(cmd.Data, &out))
		require.Equal(t, wirecmd.SendMessage, r.nextCommand(session).Verb)
		return out
	}
	c, created := create()
	c.asks("user.message", created.SessionID, `,"content":"hello"`)
	want := event.Preferences{ClientID: "phone", UserID: "ann", Language: "en_US", ConfirmPlan: ptr(true), OnBusy: event.OnBusyEnqueue}
	require.Equal(t, want, opened(created.SessionID))
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(created.SessionID)}
	r.answers(l, "yes")
	require.EqualValues(t, 2, c.framed("agent.final_answer").Seq, "the client has the first event")

	c, created = create()
	_ = c.Conn.Close()
	other := r.server(unlimited, withSessions, func(_ *gateway.Config, d *gateway.Deps) { d.Registry = prometheus.NewRegistry() })
	require.NoError(t, other.Start(t.Context()))
	t.Cleanup(other.Stop)
	r.addr = other.Addr().String()
	back, _, _ := r.handshakeAt(pathSessions, "")
	back.framed("system.connected")
	back.asks("user.reconnect_with_state", created.SessionID, `,"content":{"last_seq":1},"metadata":{"client_id":"phone"}`)
	require.EqualValues(t, 1, back.framed("system.notice").Metadata.LastSeq)
	back.asks("user.message", created.SessionID, `,"content":"hello"`)
	want.UserID = "" // gives no rights, and is not in the id
	require.Equal(t, want, opened(created.SessionID))
}

// TestARefusedSession: the message whose session is refused gets the fault, the socket stays, and
// the next message tries again.
func TestARefusedSession(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.mute = true
	c := r.dial("")
	session := c.ready()
	for range 2 {
		c.write(message("hello"))
		open := r.anyCommand()
		require.Equal(t, wirecmd.Open, open.Verb)
		l := subject.Log{Tenant: open.Tenant, Kind: id.KindSession, Entity: open.Key}
		e, err := event.New(l, unique(), "test", time.Now(), event.CommandRefusedData{CommandID: open.ID, Code: "QUOTA_EXCEEDED", Message: "Close a session first."})
		require.NoError(t, err)
		b, err := json.Marshal(e)
		require.NoError(t, err)
		require.NoError(t, r.conn.NATS().Publish(directSubject(t, open.ReplyTo), b))
		require.Equal(t, "Close a session first.", c.refused("QUOTA_EXCEEDED").Data.Message)
	}
	c.write(message("hello"))
	require.NoError(t, r.make(r.anyCommand()))
	require.Equal(t, wirecmd.SendMessage, r.nextCommand(session).Verb)
}

// TestASessionThatIsNotOpened: a connection whose session is not opened in time is ended. Its client comes back to the same
// session and sends its message again.
func TestASessionThatIsNotOpened(t *testing.T) {
	t.Parallel()
	r := prepare(t, sharedBus(t))
	r.mute = true
	r.srv = r.server(func(c *gateway.Config, _ *gateway.Deps) { c.ReadyTimeout = 300 * time.Millisecond })
	r.serve()
	c := r.dial("")
	session := c.ready()
	c.write(message("hello"))
	first := r.anyCommand()
	require.Equal(t, "OVERLOADED", c.must("error").Data.Code)
	c.closes(1013)
	// It comes to a gateway that waits as long as a slow machine needs.
	r.srv = r.server(func(_ *gateway.Config, d *gateway.Deps) { d.Registry = prometheus.NewRegistry() })
	r.serve()
	c = r.dial("session=" + session + "&after=0")
	require.Equal(t, session, c.ready())
	c.write(message("hello"))
	again := r.anyCommand()
	require.Equal(t, []any{first.Verb, first.Key}, []any{again.Verb, again.Key})
	require.NotEqual(t, first.ID, again.ID, "the bus drops no second try")
	require.NoError(t, r.make(again))
	require.Equal(t, wirecmd.SendMessage, r.nextCommand(session).Verb)
}

// TestASwarmClientOpensAWatchedSession: a client of the swarm that watches a session before it begins sends the message that
// opens it, and sees it.
func TestASwarmClientOpensAWatchedSession(t *testing.T) {
	t.Parallel()
	s := startAll(t)
	c, status, _ := s.handshakeAt("/ws", "")
	require.Equal(t, http.StatusSwitchingProtocols, status)
	session := c.ready()
	watcher := s.open(pathClient, "watch=session/"+session)
	watcher.expectASP("orchestrator.client.welcome")
	watcher.sendASP("task.message", unique(), map[string]any{"taskId": "watched/" + session, "message": "hello"})
	require.Equal(t, wirecmd.Open, s.nextCommand(session).Verb)
	require.Contains(t, string(s.nextCommand(session).Data), "hello")
}

// TestNewClientsOfAPrincipalAreBounded: a client of the swarm can be written to before it has said anything, so that its inbox
// is made when it connects. A principal that only connects leaves no more than its bound, and comes back as before.
func TestNewClientsOfAPrincipalAreBounded(t *testing.T) {
	clock := &handClock{now: time.Now()} // one more comes with every ten seconds
	s := startSwarm(t, authenticated(key("alice", "acme"), key("bob", "acme")), func(c *gateway.Config, d *gateway.Deps) {
		c.Inboxes, d.Clock = 3, clock.Now
	})
	var id, token string
	for range 3 {
		c, hello := s.join(pathClient, "", bearer("alice")...)
		id, token = hello.Content.ClientID, hello.Content.ResumeToken
		c.leave()
	}
	for range 20 {
		s.path = pathClient
		c := s.dial("", bearer("alice")...)
		_, err := c.text()
		require.ErrorContains(t, err, string(fault.RateLimited))
	}
	s.tasks.mu.Lock()
	opened := len(s.tasks.tokens)
	s.tasks.mu.Unlock()
	require.Equal(t, 3, opened, "the service was not asked for more")
	_, back := s.join(pathClient, "clientId="+id+"&resumeToken="+token, bearer("alice")...)
	require.Equal(t, id, back.Content.ClientID)
	s.join(pathClient, "", bearer("bob")...)
}
