package flows

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// Scene is one run of a flow: everything that its sockets say is noted.
type Scene struct {
	t     testing.TB
	stage *Stage
	place Place
	Model string // Demo or Scripted

	lines   []line
	session string // the one that was made last
}

// line is one frame.
type line struct {
	socket string
	sent   bool
	raw    []byte
	frame  sdk.Frame // of what was received
}

// Socket is one connection of a scene.
type Socket struct {
	s    *Scene
	name string
	talk *client.RawMyAgent
	last map[string]uint64 // newest seq by session
	some bool              // it does not get everything
	seen string            // event_id of the newest frame
}

// Dial connects under a name.
func (s *Scene) Dial(name string) *Socket { return s.dial(name, s.place.Addr) }

// DialElsewhere connects to another installation, which has the same key.
func (s *Scene) DialElsewhere(name string) *Socket { return s.dial(name, s.place.Other) }

func (s *Scene) dial(name, addr string) *Socket {
	s.t.Helper()
	return s.greeted(&Socket{s: s, name: name, talk: client.DialMyAgentAs(s.t, addr, s.place.Key), last: map[string]uint64{}})
}

// Console connects as the original's console does, which asks for nothing.
func (s *Scene) Console(name string) *Socket {
	s.t.Helper()
	return s.greeted(&Socket{s: s, name: name, talk: client.DialMyAgentWith(s.t, s.place.Addr, s.place.Key, "language=en_US"), last: map[string]uint64{}, some: true})
}

func (s *Scene) greeted(m *Socket) *Socket {
	s.t.Helper()
	for _, f := range m.talk.Frames {
		m.note(f)
	}
	return m
}

// Open connects and makes a session in English.
func (s *Scene) Open(metadata map[string]any) *Socket {
	s.t.Helper()
	m := s.Dial("client")
	m.Create("en_US", metadata)
	return m
}

// Release opens a gate of the scripted model.
func (s *Scene) Release(key string) { s.stage.actor.open(key) }

// Create makes a session.
func (m *Socket) Create(language string, metadata map[string]any) {
	m.s.t.Helper()
	all := map[string]any{"source": "web"}
	for k, v := range metadata {
		all[k] = v
	}
	m.Send(myagent.UserCreateSession, map[string]any{
		"content":  map[string]any{"client_id": m.name + "_1", "preferences": map[string]any{"language": language}},
		"metadata": all,
	})
	m.talk.Session = m.Await(myagent.AgentSessionCreated)[0].SessionID
	m.s.session = m.talk.Session
}

// Send sends a frame that fits its schema, to the session of the socket.
func (m *Socket) Send(event string, members map[string]any) {
	m.s.t.Helper()
	frame := map[string]any{"event": event}
	if m.talk.Session != "" {
		frame["session_id"] = m.talk.Session
	}
	for k, v := range members {
		frame[k] = v
	}
	raw, err := json.Marshal(frame)
	require.NoError(m.s.t, err)
	m.s.lines = append(m.s.lines, line{socket: m.name, sent: true, raw: raw})
	m.talk.Send(event, members)
}

// Raw sends a text as it is.
func (m *Socket) Raw(text string) {
	m.s.t.Helper()
	m.s.lines = append(m.s.lines, line{socket: m.name, sent: true, raw: []byte(text)})
	m.talk.Raw(text)
}

// Wrong sends a frame that does not fit its schema and waits for what comes of it.
func (m *Socket) Wrong(event string, members map[string]any, want ...string) {
	m.s.t.Helper()
	frame := map[string]any{"event": event, "session_id": m.talk.Session}
	for k, v := range members {
		frame[k] = v
	}
	raw, err := json.Marshal(frame)
	require.NoError(m.s.t, err)
	m.Raw(string(raw))
	m.Await(want...)
}

// Ask sends a message.
func (m *Socket) Ask(text string, metadata map[string]any) {
	m.s.t.Helper()
	if metadata == nil {
		metadata = map[string]any{}
	}
	m.Send(myagent.UserMessage, map[string]any{"content": text, "metadata": metadata})
}

// Solve sends tasks: "title", or "title < id id" with what they depend on. Their ids
// are task_1 and so on.
func (m *Socket) Solve(metadata map[string]any, titles ...string) {
	m.s.t.Helper()
	var tasks []any
	for i, title := range titles {
		title, after, _ := strings.Cut(title, " < ")
		task := map[string]any{"id": fmt.Sprintf("task_%d", i+1), "title": title}
		if after != "" {
			task["dependencies"] = strings.Fields(after)
		}
		tasks = append(tasks, task)
	}
	members := map[string]any{"content": map[string]any{"tasks": tasks}}
	if metadata != nil {
		members["metadata"] = metadata
	}
	m.Send(myagent.UserSolveTasks, members)
}

// Respond answers a question.
func (m *Socket) Respond(step string, content map[string]any) {
	m.s.t.Helper()
	m.Send(myagent.UserResponse, map[string]any{"step_id": step, "content": content})
}

// On sends a frame about a task.
func (m *Socket) On(event, task string, metadata map[string]any) {
	m.s.t.Helper()
	members := map[string]any{"content": map[string]any{"task_id": task}}
	if metadata != nil {
		members["metadata"] = metadata
	}
	m.Send(event, members)
}

// Resume shows a session after the seq, as content requests, and waits
// for the end of the replay.
func (m *Socket) Resume(after uint64, content map[string]any) {
	m.s.t.Helper()
	m.talk.Session = m.s.session
	m.last[m.s.session] = after
	all := map[string]any{"last_seq": after}
	for k, v := range content {
		all[k] = v
	}
	m.Send(myagent.UserReconnectWithState, map[string]any{"content": all})
	m.Await("system.notice replay")
}

// Use speaks to the scene's session from now on, without asking for what was missed.
func (m *Socket) Use() { m.talk.Session = m.s.session }

// Seq returns the seq of the newest event that the socket has seen.
func (m *Socket) Seq() uint64 { return m.last[m.talk.Session] }

// Cut breaks the connection.
func (m *Socket) Cut() { m.talk.Cut() }

// Await reads until each of the conditions has its frame, in any order, and
// returns those frames in the order of the conditions. A condition is the name of an
// event, followed by " ACTION" for a notice and by "@TASK" for a frame about a task.
func (m *Socket) Await(conditions ...string) []sdk.Frame {
	m.s.t.Helper()
	got := make([]sdk.Frame, len(conditions))
	began := time.Now()
	for left := len(conditions); left > 0; {
		f, err := m.talk.Peek()
		require.NoError(m.s.t, err, "%s waits for %v; it has\n%s", m.name, conditions, m.s.names())
		require.Less(m.s.t, time.Since(began), process.MaxWait, "%s waits for %v; it has\n%s", m.name, conditions, m.s.names()) // heartbeats keep coming
		m.note(f)
		for i, c := range conditions {
			if got[i].Event == "" && fits(f, c) {
				got[i] = f
				left--
				break
			}
		}
	}
	return got
}

func fits(f sdk.Frame, condition string) bool {
	condition, task, _ := strings.Cut(condition, "@")
	name, action, _ := strings.Cut(condition, " ")
	return f.Event == name && (action == "" || action == f.Meta().Action) && (task == "" || task == taskOf(f))
}

func taskOf(f sdk.Frame) string {
	if id := f.Meta().TaskID; id != "" {
		return id
	}
	return sdk.As[myagent.TaskRef](f.Content).TaskID
}

// note keeps a frame and requires that no event is left out or comes twice.
func (m *Socket) note(f sdk.Frame) {
	m.s.t.Helper()
	if f.Event == myagent.SystemHeartbeat {
		return // when they come is a matter of the clock
	}
	m.s.lines = append(m.s.lines, line{socket: m.name, raw: m.cut(f), frame: f})
	if f.Event == myagent.AgentPartialAnswer {
		require.Equal(m.s.t, shown(f.Text()), f.Show, "%s", f.Raw)
	}
	for _, raw := range sdk.As[myagent.NoticeContent](f.Content).EventList {
		e := sdk.As[sdk.Frame](raw)
		m.dense(e)
	}
	m.dense(f)
}

// cut returns the text of a frame, without how many deltas a piece is made of where that
// is a matter of the clock.
func (m *Socket) cut(f sdk.Frame) []byte {
	m.s.t.Helper()
	if !m.some || f.Event != myagent.AgentPartialAnswer {
		return f.Raw
	}
	v, err := decode(f.Raw)
	require.NoError(m.s.t, err)
	if meta, ok := v["metadata"].(frame); ok {
		delete(meta, "merged_from")
	}
	raw, err := json.Marshal(v)
	require.NoError(m.s.t, err)
	return raw
}

func (m *Socket) dense(f sdk.Frame) {
	m.s.t.Helper()
	if f.Seq == 0 {
		require.Empty(m.s.t, f.EventID, "%s", f.Raw)
		return
	}
	require.NotEmpty(m.s.t, f.EventID, "%s", f.Raw)
	m.seen = f.EventID
	if last, known := m.last[f.SessionID]; m.some {
		require.Greater(m.s.t, f.From(), last, "events come in order: %s", f.Raw)
	} else if known || f.Seq == 1 {
		require.Equal(m.s.t, last+1, f.From(), "events are dense: %s", f.Raw)
	}
	m.last[f.SessionID] = f.Seq
}

// names lists what was said so far.
func (s *Scene) names() string {
	var b strings.Builder
	for _, l := range s.lines {
		if l.sent {
			fmt.Fprintf(&b, "%s > %s\n", l.socket, l.raw)
			continue
		}
		fmt.Fprintf(&b, "%s < %d %s %s %s\n", l.socket, l.frame.Seq, l.frame.Event, l.frame.Meta().Action, taskOf(l.frame))
	}
	return b.String()
}
