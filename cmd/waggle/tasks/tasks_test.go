package tasks

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

func TestTables(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	require.NoError(t, WriteAgents(&b, json.RawMessage(`{"agents":[
		{"id":"a2","name":"Away","status":"inactive","online":false,"load":0},
		{"id":"a1","name":"Up\u001b[2J","status":"active","online":true,"load":3,"capabilities":["x","y"]}]}`), now))
	require.Equal(t, "AGENT  NAME  STATUS    TASKS  CAPABILITIES\na1     Up    active    3      x, y\na2     Away  inactive  0\n", b.String())
	b.Reset()
	require.NoError(t, WriteTasks(&b, json.RawMessage(`{"tasks":[
		{"task_id":"old","status":"completed","agent_name":"Up","created_at":"2026-01-02T11:00:00Z","ended_at":"2026-01-02T11:00:01.5Z"},
		{"task_id":"new","status":"running","agent_id":"a1","created_at":"2026-01-02T11:59:58Z"}]}`), now))
	require.Equal(t, "TASK  STATUS     AGENT  AGE  TOOK\nnew   running    a1     2 s\nold   completed  Up     1 h  1.5s\n", b.String())
	b.Reset()
	require.NoError(t, WriteTask(&b, json.RawMessage(`{"task_id":"t","status":"failed","agent_name":"Up","attempt":2,"created_at":"2026-01-02T11:59:00Z",
		"ended_at":"2026-01-02T11:59:02Z","error":"no\u001b[31m luck","code":"TASK_EXECUTION_ERROR","parent_id":"p"}`), now))
	require.Contains(t, b.String(), "error    no luck [TASK_EXECUTION_ERROR]\n")
	require.Contains(t, b.String(), "parent   p\n")
	b.Reset()
	require.NoError(t, WriteTask(&b, json.RawMessage(`{"task_id":"t","status":"completed","created_at":"2026-01-02T11:59:00Z","result":{"a":1}}`), now))
	require.True(t, strings.HasSuffix(b.String(), "\n\n{\n  \"a\": 1\n}\n"), b.String())
	for _, empty := range []string{`{"agents":[]}`, `{"tasks":[]}`} {
		b.Reset()
		require.NoError(t, map[bool]func() error{
			true:  func() error { return WriteAgents(&b, json.RawMessage(empty), now) },
			false: func() error { return WriteTasks(&b, json.RawMessage(empty), now) },
		}[strings.Contains(empty, "agents")]())
		require.Contains(t, b.String(), "no ")
	}
	require.Error(t, WriteAgents(&b, json.RawMessage(`[]`), now))
	require.Error(t, WriteTasks(&b, json.RawMessage(`[]`), now))
	require.Error(t, WriteTask(&b, json.RawMessage(`{}`), now))
}

func TestTextsAreHarmless(t *testing.T) {
	require.Equal(t, "red", Text(json.RawMessage(`"\u001b[31mred"`)))
	require.Equal(t, "{\n  \"a\": \"\\u001b[31m\"\n}", Text(json.RawMessage(`{"a":"\u001b[31m"}`)))
	require.Equal(t, resultLimit+1, len([]rune(Text(json.RawMessage(`"`+strings.Repeat("ä", 2*resultLimit)+`"`)))))
	require.Equal(t, `{"a":1}`, string(Data(`{"a":1}`)))
	require.Equal(t, `"say \"hi\""`, string(Data(`say "hi"`)))
	var b bytes.Buffer
	teller := Teller{W: &b}
	teller.Event(swarm.Event{Name: swarm.EventTaskQuestion, Content: swarm.TaskQuestion{TaskID: "t", Message: json.RawMessage(`"which\u001b[2J?"`), Options: json.RawMessage(`["a"]`)}})
	teller.Event(swarm.Event{Name: swarm.EventWelcome, Content: swarm.Welcome{}})
	require.Equal(t, "t asks: which? [ \"a\" ] (waggle tasks tell t ANSWER)\n", b.String())
	b.Reset()
	teller.JSON = true
	teller.Event(swarm.Event{Name: swarm.EventRawMessage, Message: swarm.Message{ID: "e", Seq: 3, Type: "task.result"}})
	teller.Event(swarm.Event{Name: swarm.EventRawMessage, Message: swarm.Message{ID: "pong"}})
	require.Equal(t, 1, strings.Count(b.String(), "\n"))
	require.Contains(t, b.String(), `"seq":3`)
}

// welcoming greets clients and tells which parameters they came with.
func welcoming(t *testing.T) (url string, came <-chan string) {
	t.Helper()
	queries := make(chan string, 10)
	known := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		queries <- strings.Join([]string{r.URL.Path, q.Get("clientId"), q.Get("resumeToken"), q.Get("after")}, " ")
		if q.Get("clientId") != "" && !known {
			known = true
			http.Error(w, "who?", http.StatusNotFound)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		for _, frame := range []string{
			`{"id":"w","type":"orchestrator.client.welcome","content":{"clientId":"c` + strconv.Itoa(len(queries)) + `","resumeToken":"secret"}}`,
			`{"id":"e","seq":7,"type":"task.notification","content":{"taskId":"t","notificationType":"info","message":"x"}}`,
		} {
			if conn.Write(r.Context(), websocket.MessageText, []byte(frame)) != nil {
				return
			}
		}
		for {
			_, b, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			var f struct{ ID string }
			_ = json.Unmarshal(b, &f)
			_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"id":"r","requestId":"`+f.ID+`","type":"client.register.response","content":{}}`))
		}
	}))
	t.Cleanup(srv.Close)
	return "ws" + strings.TrimPrefix(srv.URL, "http"), queries
}

func TestAClientStaysTheSame(t *testing.T) {
	url, came := welcoming(t)
	file := filepath.Join(t.TempDir(), "sub", "who.json")
	login := Login{URL: url + "/ws", Identity: file}
	shown := make(chan struct{}, 10)
	show := func(e swarm.Event) {
		if e.Name == swarm.EventTaskNotification {
			shown <- struct{}{}
		}
	}
	c, err := Connect(t.Context(), login, show)
	require.NoError(t, err)
	<-shown
	require.NoError(t, c.Close())
	require.Equal(t, "/ws/asp/client   ", <-came)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	c, err = Connect(t.Context(), login, nil) // the server does not know it any more
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, "/ws/asp/client c1 secret 7", <-came)
	require.Equal(t, "/ws/asp/client   ", <-came)
	c, err = Connect(t.Context(), login, nil)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Regexp(t, `^/ws/asp/client c\d secret 0$`, <-came, "unseen events are still to be shown")

	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = Connect(t.Context(), login, nil)
	require.ErrorContains(t, err, "is invalid")
	_, err = Connect(t.Context(), Login{URL: "nowhere"}, nil)
	require.Error(t, err)
}
