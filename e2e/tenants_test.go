package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// things are ids of one tenant, or ids that do not exist.
type things struct{ session, team, nested, member, task, client, step, run string }

// all returns the ids, for replacing.
func (n things) all() []string {
	return []string{n.nested, n.member, n.session, n.team, n.task, n.client, n.step, n.run}
}

// TestTenantsMeetNowhere: every verb of the HTTP API, of the session protocol, and every
// socket that names an id answers the same for an id of another tenant, or of another user of
// the tenant, as for an id that does not exist. Nothing of it reaches its owner.
func TestTenantsMeetNowhere(t *testing.T) {
	t.Parallel()
	reds, blues := one.forTenant(t), one.forTenant(t)
	theirs := possess(t, reds.addr, reds.key)
	shown := []string{"sessions", "teams", "tasks"}
	meetsNowhere(t, reds, blues.key, theirs, append([]string{"agents", "services", "clients"}, shown...))
	meetsNowhere(t, reds, reds.key+"-other", theirs, shown)
}

// meetsNowhere holds that the things do not exist for who has the key, and are not in the lists.
func meetsNowhere(t *testing.T, reds place, blue string, theirs things, lists []string) {
	t.Helper()
	addr, red := reds.addr, reds.key
	nobodys := things{
		like(theirs.session), "team_0123456789abcdef", "team_0123456789abcdef-t1234567890a", "team_0123456789abcdef-a1234567890a",
		like(theirs.task), like(theirs.client), theirs.step, like(theirs.run),
	}
	before := belongings(t, addr, red, theirs)

	verbs := 0
	for _, v := range httpVerbs() {
		verbs++
		want, got := tell(t, addr, blue, v, nobodys), tell(t, addr, blue, v, theirs)
		require.Equal(t, want, got, "%s %s", v.method, v.path)
		require.NotContains(t, got, "200 ", "%s %s", v.method, v.path)
	}
	for _, list := range lists {
		verbs++
		text := over(t, http.MethodGet, "http://"+addr+"/api/v1/"+list, blue)
		require.NotContains(t, text, "crimson", list)
		for _, id := range theirs.all() {
			require.NotContains(t, text, id, list)
		}
	}
	verbs += knocksAlike(t, addr, blue, nobodys, theirs)
	require.Equal(t, before, belongings(t, addr, red, theirs), "nothing of that has reached the owner")
	t.Logf("%d verbs", verbs)
}

// knocksAlike requires that every socket and every event of the session protocol answers the same for both, and returns how
// many they are.
func knocksAlike(t *testing.T, addr, blue string, nobodys, theirs things) (verbs int) {
	t.Helper()
	knocks := map[string]func(things) string{}
	for _, path := range socketPaths() {
		knocks[path] = func(n things) string { return knock(addr, blue, path, "", n) }
	}
	for _, event := range myagent.Inbound {
		if event != myagent.UserCreateSession { // it names nothing
			knocks[event] = func(n things) string {
				frame, err := frameOf(event, n)
				if err != nil {
					return fmt.Sprint("trouble ", err)
				}
				return knock(addr, blue, "/ws/session", frame, n)
			}
		}
	}
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(16) // sockets that wait for silence
	for what, do := range knocks {
		verbs++
		all.Go(func() error {
			want, got := both(nobodys, theirs, do)
			leaks := strings.Contains(got, "crimson")
			for tries := 3; want != got && tries > 0; tries-- { // on a busy machine an answer may come after the silence
				want, got = both(nobodys, theirs, do)
				leaks = leaks || strings.Contains(got, "crimson")
			}
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, want, got, "%s", what)
			assert.False(t, leaks, "%s", what)
			assert.NotContains(t, got, "trouble", "%s", what)
			return nil
		})
	}
	require.NoError(t, all.Wait())
	return verbs
}

// possess lets a tenant have one of everything, and returns the ids.
func possess(t *testing.T, addr, key string) (n things) {
	t.Helper()
	available(t, addr, key, "sessions", "agents", "teams")
	confirm := true
	d := client.OpenMyAgent(t, sdk.Options{URL: "ws://" + addr + "/ws/session", Token: key, ConfirmPlan: &confirm})
	d.Until("the session", func(f sdk.Frame) bool { return f.Event == myagent.AgentSessionCreated })
	d.Message("what only crimson may know", nil)
	q := d.Until("the question", func(f sdk.Frame) bool { return f.Event == myagent.AgentUserConfirm })
	n.session, n.step, n.run = d.Session(), q.StepID, q.Meta().RunID
	require.NotEmpty(t, n.step)

	text := post(t, "http://"+addr+"/api/v1/teams", key, `{"name":"crimson team","coordinator":"Lead","members":[{"name":"Lead","role":"leads"},`+
		`{"name":"inner","role":"is deep","team":{"name":"inner","coordinator":"Deep","members":[{"name":"Deep","role":"is deep"}]}}]}`)
	var v struct {
		TeamID string `json:"team_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &v), text)
	require.NotEmpty(t, v.TeamID, text)
	n.team = v.TeamID
	teamClient := client.WatchTeam(t, client.TeamOptions{Addr: addr, Path: "agent-team/" + n.team, Key: key})
	teamClient.Say("SEND_MESSAGE", object{"content": "crimson words", "target_member_path": []string{"inner", "Deep"}})
	done := teamClient.Until("an answer", func(f client.TeamFrame) bool { return f.Type == "ASSISTANT_COMPLETE" })
	n.member = done.Text("agent_id")
	n.nested = n.member[:strings.LastIndex(n.member, "-")]
	teamClient.Until("rest", func(f client.TeamFrame) bool {
		return f.Type == "TEAM_STATUS" && f.Text("new_status") == "IDLE" && f.Sequence > done.Sequence
	})

	h := swarmRig{t, addr, key}
	agent, owner := h.agent("red-agent", "Red Agent", nil), h.client()
	n.client = owner.Find("welcome", func(f client.SwarmFrame) bool { return f.Type == "orchestrator.client.welcome" }).Text("clientId")
	n.task = owner.Get("client.agent.task.create.response", "client.agent.task.create.request", object{"agentId": "red-agent", "taskData": 1}).Text("taskId")
	agent.Until("task.execute")
	process.Eventually(t, "the log says that the agent has the task", func() bool {
		return strings.Contains(over(t, http.MethodGet, "http://"+addr+"/api/v1/tasks/"+n.task, key), `"status":"delivered"`)
	})
	return n
}

// belongings is what a tenant sees of its things.
func belongings(t *testing.T, addr, key string, n things) (out []string) {
	t.Helper()
	for _, path := range []string{"sessions/" + n.session + "/events", "teams/" + n.team, "tasks/" + n.task} {
		text := over(t, http.MethodGet, "http://"+addr+"/api/v1/"+path, key)
		require.True(t, strings.HasPrefix(text, "200 "), "%s: %s", path, text)
		out = append(out, text)
	}
	return out
}

// verb is a request of the HTTP API.
type verb struct{ method, path, body string }

func httpVerbs() (out []verb) {
	add := func(method, path, body string) { out = append(out, verb{method, path, body}) }
	for _, sub := range []string{"", "/events", "/events?after=1&limit=5", "/state", "/state?history=true"} {
		add(http.MethodGet, "sessions/{session}"+sub, "")
	}
	add(http.MethodPost, "sessions/{session}/cancel", "{}")
	digest := strings.Repeat("0a", 32)
	add(http.MethodGet, "sessions/{session}/files/"+digest, "")
	for _, log := range []string{"session/{session}", "team/{team}", "team/{nested}", "member/{member}", "task/{task}"} {
		for _, sub := range []string{"/head", "/events", "/events?before=3", "/frames?as=orbit", "/frames?as=agui"} {
			add(http.MethodGet, "logs/"+log+sub, "")
		}
		for _, sub := range []string{"", "?version=" + digest} {
			add(http.MethodGet, "artifacts/"+log+"/artifact_0123456789abcdef"+sub, "")
		}
	}
	add(http.MethodGet, "tasks/{task}", "")
	add(http.MethodPost, "tasks/{task}/cancel", "{}")
	add(http.MethodPost, "tasks/{task}/retry", "{}")
	for _, one := range []string{"teams/{team}", "teams/{nested}", "tasks/{task}"} {
		add(http.MethodGet, one+"/stream", "")
	}
	for _, log := range []string{"member.{member}", "task.{task}"} {
		add(http.MethodPost, "questions/"+log+".q/answer", `{"decision":"answer","message":"blue"}`)
	}
	for _, id := range []string{"{team}", "{nested}"} {
		add(http.MethodGet, "teams/"+id, "")
		add(http.MethodPost, "teams/"+id+"/messages", `{"content":"blue words"}`)
		add(http.MethodPost, "teams/"+id+"/messages", `{"content":"blue words","target":"Lead"}`)
		for _, do := range []string{"stop", "pause", "resume"} {
			add(http.MethodPost, "teams/"+id+"/"+do, "{}")
		}
		add(http.MethodDelete, "teams/"+id, "")
	}
	return out
}

// socketPaths are all sockets that name something.
func socketPaths() []string {
	out := []string{
		"/ws?session={session}", "/ws?session={session}&after=0", "/ws/agent-team/{team}", "/ws/agent-team/{team}?after=0",
		"/ws/agent-team/{team}?format=envelope", "/ws/agent-team/{nested}?after=0", "/ws/agent/{member}", "/ws/agent/{member}?after=0",
	}
	for _, socket := range []string{"/ws", "/ws/session", "/ws/agent-team", "/ws/asp/client"} {
		for _, what := range []string{"session/{session}", "team/{team}", "team/{nested}", "member/{member}", "task/{task}"} {
			out = append(out, socket+"?watch="+what)
			if socket != "/ws/asp/client" { // where after is of the client's own
				out = append(out, socket+"?after=0&watch="+what)
			}
		}
	}
	return out
}

// fill puts the ids into a text.
func (n things) fill(text string) string {
	return strings.NewReplacer("{session}", n.session, "{team}", n.team, "{nested}", n.nested, "{member}", n.member, "{task}", n.task).Replace(text)
}

var passing = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|` +
	`"(reference|request_id|id|eventId|event_id|resumeToken|clientId|connection_id|session_id)":"[^"]*"|"(offline_duration_ms|server_uptime_seconds)":\d+`)

// same is a text without ids, and without what differs from one time to the next.
func (n things) same(text string) string {
	for _, id := range n.all() {
		if id != "" {
			text = strings.ReplaceAll(text, id, "<id>")
		}
	}
	return passing.ReplaceAllString(text, "<moves>")
}

func post(t *testing.T, url, key, body string) string {
	t.Helper()
	return ask(t, http.MethodPost, url, key, body)
}

// ask makes a request and returns the status and the body of the answer.
func ask(t *testing.T, method, url, key, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), process.MaxWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var text strings.Builder
	_, err = fmt.Fprint(&text, resp.StatusCode, " ")
	require.NoError(t, err)
	_, err = io.Copy(&text, resp.Body)
	require.NoError(t, err)
	return text.String()
}

func tell(t *testing.T, addr, key string, v verb, n things) string {
	t.Helper()
	return n.same(ask(t, v.method, "http://"+addr+"/api/v1/"+n.fill(v.path), key, v.body))
}

// knock opens a socket, sends the frame unless it is empty, and returns all frames until the
// socket closes or falls silent.
func knock(addr, key, path, frame string, n things) string {
	ctx, cancel := process.Within(process.MaxWait)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, "ws://"+addr+n.fill(path), &websocket.DialOptions{ //nolint:bodyclose // closed by the library
		HTTPHeader: http.Header{"Authorization": {"Bearer " + key}},
	})
	if err != nil && resp != nil {
		return fmt.Sprint("HTTP ", resp.StatusCode)
	}
	if err != nil {
		return fmt.Sprint("trouble ", err)
	}
	defer func() { _ = conn.CloseNow() }()
	if frame != "" {
		if err := conn.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			return fmt.Sprint("trouble ", err)
		}
	}
	frames, closed := make(chan string, 1000), make(chan error, 1)
	go func() {
		defer close(frames)
		for {
			_, raw, err := conn.Read(ctx)
			if err != nil {
				closed <- err
				return
			}
			frames <- n.same(string(raw))
		}
	}()
	_ = conn.Ping(ctx) // answered after the frame, and what the socket has said shows whether it is closed
	var said []string
	for quiet := false; !quiet; {
		select {
		case text, open := <-frames:
			if !open {
				return fmt.Sprint(said, " closed ", int(websocket.CloseStatus(<-closed)))
			}
			said = append(said, text)
		case <-time.After(silent):
			quiet = len(frames) == 0
		}
	}
	return fmt.Sprint(said, " silent")
}

// silent is how long a socket says nothing, once it has answered a ping, before it is taken to have said all: what it says
// of foreign things it says at once.
const silent = 2 * time.Second

// frameOf returns an event of the session protocol that names the parts of a session.
func frameOf(event string, n things) (string, error) {
	raw, err := json.Marshal(object{"event": event, "session_id": n.session, "step_id": n.step, "content": contentOf(event), "metadata": object{
		"message_id": "m-1", "task_id": "a", "last_seq": 1, "client_id": "blue", "run_id": n.run,
	}})
	return string(raw), err
}

// both calls do with ids that do not exist and with ids of another tenant, at once.
func both(nobodys, theirs things, do func(things) string) (want, got string) {
	var done sync.WaitGroup
	done.Go(func() { want = do(nobodys) })
	done.Go(func() { got = do(theirs) })
	done.Wait()
	return want, got
}

// contentOf is what an event needs besides what it names.
func contentOf(event string) any {
	switch {
	case event == myagent.UserAck:
		return 1
	case event == myagent.UserResponse:
		return object{"confirmed": true}
	case event == myagent.UserSolveTasks:
		return object{"tasks": tasks("a")}
	case slices.Contains([]string{myagent.UserReconnect, myagent.UserReconnectWithState}, event):
		return object{"last_seq": 0}
	}
	return "blue words"
}
