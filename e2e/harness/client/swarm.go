package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
)

// SwarmFrame is one frame of the Agent Swarm Protocol.
type SwarmFrame struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	RequestID string          `json:"requestId"`
	TaskID    string          `json:"taskId"`
	Seq       uint64          `json:"seq"`
	Content   json.RawMessage `json:"content"`
}

// Text returns a member of the content that is a string.
func (f SwarmFrame) Text(name string) string {
	var s string
	_ = json.Unmarshal(f.Member(name), &s) // other values have no text
	return s
}

// Member returns a member of the content.
func (f SwarmFrame) Member(name string) json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(f.Content, &m) // other values have no members
	return m[name]
}

// SwarmOptions say who connects where.
type SwarmOptions struct {
	Role  string
	Addr  string
	Path  string                   // empty = that of the role
	Key   string                   // an API key; empty = none
	Query string                   // of the URL, without the question mark
	Do    func(*Swarm, SwarmFrame) // called for each frame, in order, on one goroutine; nil = frames are kept only
}

// Swarm is a participant of a swarm on one bare socket. Every frame that it gets or
// sends has to fit its schema. All frames are kept; pings are answered. Its methods
// may be called on any goroutine, but those without an error only on the test's.
type Swarm struct {
	t     testing.TB
	o     SwarmOptions
	conn  *websocket.Conn
	ended chan struct{}

	mu     sync.Mutex
	n      int
	seen   int // frames that Until has passed
	frames []SwarmFrame
	got    []string // as they came
	sent   []string
	pinged bool
	again  []string        // results that came once more
	ends   map[string]bool // ids of results
	asked  map[string]bool // frames whose answers Ask has returned
	news   chan struct{}   // replaced at each frame
	err    error           // that ended the connection
}

// DialSwarm connects a participant.
func DialSwarm(t testing.TB, o SwarmOptions) *Swarm {
	t.Helper()
	b, err := TrySwarm(t, o)
	require.NoError(t, err)
	return b
}

// TrySwarm connects to a server that may be down.
func TrySwarm(t testing.TB, o SwarmOptions) (*Swarm, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	path := o.Path
	if path == "" {
		path = "/ws/asp/" + o.Role
	}
	conn, err := dial(ctx, "ws://"+o.Addr+path+"?"+o.Query, o.Key)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	b := &Swarm{t: t, o: o, conn: conn, ended: make(chan struct{}), news: make(chan struct{}), asked: map[string]bool{}, ends: map[string]bool{}}
	go b.read()
	t.Cleanup(b.Drop)
	return b, nil
}

func (b *Swarm) read() {
	defer close(b.ended)
	for {
		_, raw, err := b.conn.Read(context.Background())
		if err != nil {
			b.mu.Lock()
			b.err = err
			close(b.news)
			b.news = make(chan struct{})
			b.mu.Unlock()
			return
		}
		b.take(raw)
	}
}

func (b *Swarm) take(raw []byte) {
	var f SwarmFrame
	if !assert.NoError(b.t, json.Unmarshal(raw, &f), "%s", raw) {
		return
	}
	proof.SwarmReceived(b.t, b.o.Role, f.Type, raw)
	process.Secret("a resume token", f.Text("resumeToken"))
	if f.Type == "ping" {
		_ = b.Send(map[string]any{"type": "pong"}) // a closed connection needs no pong
		b.mu.Lock()
		b.pinged = true
		b.mu.Unlock()
		return
	}
	b.mu.Lock()
	if f.Type == "client.agent.task.result" && f.Seq == 0 && b.ends[f.ID] { // the SDK needs it, and is told by its id
		b.again = append(b.again, string(raw))
		close(b.news)
		b.news = make(chan struct{})
		b.mu.Unlock()
		return
	}
	b.ends[f.ID] = f.Type == "client.agent.task.result"
	b.frames, b.got = append(b.frames, f), append(b.got, string(raw))
	close(b.news)
	b.news = make(chan struct{})
	b.mu.Unlock()
	if b.o.Do != nil {
		b.o.Do(b, f)
	}
}

// Tell sends a frame with the type and content and returns its id.
func (b *Swarm) Tell(kind string, content any) (string, error) {
	b.mu.Lock()
	b.n++
	id := fmt.Sprintf("frame-%d", b.n)
	b.mu.Unlock()
	return id, b.Send(map[string]any{"id": id, "type": kind, "content": content})
}

// Send sends a frame as it is. It has to fit its schema all the same.
func (b *Swarm) Send(frame map[string]any) error {
	raw, err := json.Marshal(frame)
	if err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	kind, _ := frame["type"].(string)
	proof.SwarmSent(b.t, b.o.Role, kind, raw)
	if kind == "pong" && frame["id"] == nil {
		return b.Raw(string(raw))
	}
	return b.Quote(string(raw))
}

// Quote sends a frame as it is written, whatever its schema says.
func (b *Swarm) Quote(frame string) error {
	b.mu.Lock()
	b.sent = append(b.sent, frame)
	b.mu.Unlock()
	return b.Raw(frame)
}

// Raw sends a text, whatever it is.
func (b *Swarm) Raw(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	return b.conn.Write(ctx, websocket.MessageText, []byte(text))
}

// Say sends a frame with the type and content and returns its id.
func (b *Swarm) Say(kind string, content any) string {
	b.t.Helper()
	id, err := b.Tell(kind, content)
	require.NoError(b.t, err, "%s", kind)
	return id
}

// Ask sends a frame and returns its answer, whatever that is.
func (b *Swarm) Ask(kind string, content any) SwarmFrame {
	b.t.Helper()
	id := b.Say(kind, content)
	b.mu.Lock()
	b.asked[id] = true
	b.mu.Unlock()
	return b.Find("answer to "+kind, func(f SwarmFrame) bool { return f.RequestID == id })
}

// Get sends a frame and returns its answer, which has to be of the type.
func (b *Swarm) Get(answer, kind string, content any) SwarmFrame {
	b.t.Helper()
	f := b.Ask(kind, content)
	require.Equal(b.t, answer, f.Type, "%s", f.Content)
	return f
}

// Unanswered sends a frame and requires that nothing answers it.
func (b *Swarm) Unanswered(kind string, content any) {
	b.t.Helper()
	id := b.Say(kind, content)
	b.Get("pong", "ping", map[string]any{}) // frames are answered in their order, but for what other services say
	for _, f := range b.Frames() {
		require.False(b.t, f.RequestID == id && f.Type == "error", "%s", f.Content)
	}
}

// Errors returns the error frames so far that answer no Ask.
func (b *Swarm) Errors() (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, f := range b.frames {
		if f.Type == "error" && !b.asked[f.RequestID] {
			out = append(out, b.got[i])
		}
	}
	return out
}

// Until waits for a frame of the type after the last one that it returned. An error
// that answers no Ask ends the test.
func (b *Swarm) Until(kind string) SwarmFrame {
	b.t.Helper()
	b.mu.Lock()
	from := b.seen
	b.mu.Unlock()
	f, at, err := b.await(from, func(f SwarmFrame) bool { return f.Type == kind || f.Type == "error" && !b.asked[f.RequestID] })
	require.NoError(b.t, err, "while waiting for %s; got %v", kind, b.Types())
	require.Equal(b.t, kind, f.Type, "%s", f.Content)
	b.mu.Lock()
	b.seen = at + 1
	b.mu.Unlock()
	return f
}

// Find waits until a frame, old or new, is of the kind.
func (b *Swarm) Find(what string, is func(SwarmFrame) bool) SwarmFrame {
	b.t.Helper()
	f, _, err := b.await(0, is)
	require.NoError(b.t, err, "while waiting for %s; got %v", what, b.Types())
	return f
}

func (b *Swarm) await(from int, is func(SwarmFrame) bool) (SwarmFrame, int, error) {
	maxWait := time.NewTimer(process.MaxWait)
	defer maxWait.Stop()
	for {
		b.mu.Lock()
		news, err := b.news, b.err
		for ; from < len(b.frames); from++ {
			if f := b.frames[from]; is(f) {
				b.mu.Unlock()
				return f, from, nil
			}
		}
		b.mu.Unlock()
		if err != nil {
			return SwarmFrame{}, 0, err
		}
		select {
		case <-news:
		case <-maxWait.C:
			return SwarmFrame{}, 0, errors.New("nothing of the kind")
		}
	}
}

// Frames returns the frames so far.
func (b *Swarm) Frames() []SwarmFrame {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]SwarmFrame(nil), b.frames...)
}

// Got returns the frames so far as they came, Sent those that were sent.
func (b *Swarm) Got() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.got...)
}

// Again returns what has come once more: results without requestId and seq, which a client
// knows by their ids. They are in no other list.
func (b *Swarm) Again() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.again...)
}

// Sent returns the frames that were sent so far.
func (b *Swarm) Sent() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.sent...)
}

// Types returns the types of the frames so far, in order.
func (b *Swarm) Types() []string {
	var out []string
	for _, f := range b.Frames() {
		out = append(out, f.Type)
	}
	return out
}

// Pinged reports whether the server wanted a sign of life.
func (b *Swarm) Pinged() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pinged
}

// Drop cuts the connection, as a process does that is killed, and waits until nothing
// more is read.
func (b *Swarm) Drop() {
	_ = b.conn.CloseNow()
	<-b.ended
}

// Ended is closed when the connection has ended.
func (b *Swarm) Ended() <-chan struct{} { return b.ended }
