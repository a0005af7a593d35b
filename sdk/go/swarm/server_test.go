package swarm_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(tests{m}, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// raw is JSON of a frame.
type raw = json.RawMessage

// in is a frame of the SDK.
type in struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Content   raw       `json:"content"`
}

// get returns a member of the content as text.
func (f in) get(name string) string {
	var m map[string]any
	_ = json.Unmarshal(f.Content, &m)
	s, _ := m[name].(string)
	return s
}

// peer is the server's end of one connection.
type peer struct {
	t    testing.TB
	ctx  context.Context
	conn *websocket.Conn
	req  *http.Request
}

// serve runs one script per connection, in order, and refuses all others. It returns the
// options that connect to it.
func serve(t testing.TB, scripts ...func(p *peer)) swarm.Options {
	t.Helper()
	next := make(chan func(p *peer), len(scripts))
	for _, s := range scripts {
		next <- s
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case script := <-next:
			conn, err := websocket.Accept(w, r, nil)
			if !assert.NoError(t, err) {
				return
			}
			defer func() { _ = conn.CloseNow() }()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
			defer cancel()
			script(&peer{t, ctx, conn, r})
		default:
			http.Error(w, "no more scripts", http.StatusForbidden)
		}
	}))
	t.Cleanup(srv.Close)
	return swarm.Options{URL: "ws" + strings.TrimPrefix(srv.URL, "http"), MinBackoff: time.Millisecond, MaxBackoff: 50 * time.Millisecond}
}

// send sends a frame as the description has it. An SDK that has left does not get it.
func (p *peer) send(frame string) {
	require.True(p.t, json.Valid([]byte(frame)), frame)
	_ = p.conn.Write(p.ctx, websocket.MessageText, []byte(frame))
}

// say sends a frame of a type that answers the frame with the id, if that is not empty.
func (p *peer) say(kind, requestID, content string) {
	id, _ := json.Marshal(requestID)
	p.send(`{"id":"m","type":"` + kind + `","requestId":` + string(id) + `,"timestamp":"2023-12-01T10:00:00.000Z","content":` + content + `}`)
}

// told sends a frame of the client's log.
func (p *peer) told(seq, kind, content string) {
	p.send(`{"id":"e` + seq + `","seq":` + seq + `,"type":"` + kind + `","timestamp":"2023-12-01T10:00:00.000Z","content":` + content + `}`)
}

// read returns the next frame, which has to be of the type.
func (p *peer) read(kind string) in {
	_, b, err := p.conn.Read(p.ctx)
	var f in
	if assert.NoError(p.t, err, kind) {
		assert.NoError(p.t, json.Unmarshal(b, &f))
		assert.Equal(p.t, kind, f.Type, string(b))
		assert.False(p.t, f.Timestamp.IsZero(), string(b))
	}
	return f
}

// until waits for the SDK to leave.
func (p *peer) until() websocket.StatusCode {
	for {
		if _, _, err := p.conn.Read(p.ctx); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func (p *peer) leave(code websocket.StatusCode) { _ = p.conn.Close(code, "bye") }

// cut ends the connection as a bad line does.
func (p *peer) cut() { _ = p.conn.CloseNow() }

const welcome = `{"clientId":"client-001","version":"1.0.0","message":"Welcome to Agent Swarm Protocol","resumeToken":"secret",
	"config":{"maxConcurrentTasks":10,"defaultTimeout":30000,"supportedFeatures":["tasks","agents","mcp"]}}`

func (p *peer) welcome() { p.say("orchestrator.client.welcome", "", welcome) }

// welcomeBack greets a client that has come back, and checks where it left off.
func (p *peer) welcomeBack(after string) {
	q := p.req.URL.Query()
	assert.Equal(p.t, "client-001", q.Get("clientId"))
	assert.Equal(p.t, "secret", q.Get("resumeToken"))
	assert.Equal(p.t, after, q.Get("after"))
	p.say("orchestrator.client.welcome", "", `{"clientId":"client-001","version":"1.0.0","resumed":true}`)
}
