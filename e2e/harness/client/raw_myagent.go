package client

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// RawMyAgent is a client of the session protocol on one socket. It keeps every frame,
// and requires of each that it fits its schema and that no event is left out, comes
// twice or out of order.
type RawMyAgent struct {
	t       testing.TB
	conn    *websocket.Conn
	Frames  []sdk.Frame
	Session string            // that Send addresses
	seqs    map[string]uint64 // newest seq by session
}

// DialMyAgent connects to the session socket of the gateway at addr.
func DialMyAgent(t testing.TB, addr string) *RawMyAgent {
	t.Helper()
	return DialMyAgentAs(t, addr, "")
}

// DialMyAgentAs is DialMyAgent with an API key.
func DialMyAgentAs(t testing.TB, addr, key string) *RawMyAgent {
	t.Helper()
	return DialMyAgentWith(t, addr, key, "deltas=all&echo=true")
}

// DialMyAgentWith is DialMyAgentAs with another query. Peek reads the frames of a socket that
// asks for fewer events, without the check of positions.
func DialMyAgentWith(t testing.TB, addr, key, query string) *RawMyAgent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	conn, err := dial(ctx, "ws://"+addr+"/ws/session?"+query, key)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	m := &RawMyAgent{t: t, conn: conn, seqs: map[string]uint64{}}
	m.Until(myagent.SystemConnected)
	return m
}

// Create makes a session and waits for it. language is that of its texts.
func (m *RawMyAgent) Create(language string, metadata map[string]any) {
	m.t.Helper()
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["source"] = "web"
	m.Send(myagent.UserCreateSession, map[string]any{
		"content":  map[string]any{"client_id": "browser_1", "preferences": map[string]any{"language": language}},
		"metadata": metadata,
	})
	m.Session = m.Until(myagent.AgentSessionCreated).SessionID
}

// Attach shows a session after the seq and waits for the end of the replay.
func (m *RawMyAgent) Attach(session string, after uint64) sdk.Frame {
	m.t.Helper()
	m.Session, m.seqs[session] = session, after
	m.Send(myagent.UserReconnectWithState, map[string]any{"content": map[string]any{"last_seq": after}})
	return m.Replayed()
}

// Replayed waits for the end of a replay.
func (m *RawMyAgent) Replayed() sdk.Frame {
	m.t.Helper()
	return m.Find("end of the replay", func(f sdk.Frame) bool {
		return f.Event == myagent.SystemNotice && f.Seq == 0 && f.Meta().Action == myagent.ActionReplay
	})
}

// Send sends an event with the given members, to the session that is talked in.
func (m *RawMyAgent) Send(event string, members map[string]any) {
	m.t.Helper()
	frame := map[string]any{"event": event}
	if m.Session != "" {
		frame["session_id"] = m.Session
	}
	for k, v := range members {
		frame[k] = v
	}
	b, err := json.Marshal(frame)
	require.NoError(m.t, err)
	proof.MyAgentSent(m.t, event, b)
	m.Raw(string(b))
}

// Raw sends a text frame as it is.
func (m *RawMyAgent) Raw(text string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	require.NoError(m.t, m.conn.Write(ctx, websocket.MessageText, []byte(text)))
}

// Message asks something.
func (m *RawMyAgent) Message(text string, metadata map[string]any) {
	m.t.Helper()
	if metadata == nil {
		metadata = map[string]any{}
	}
	m.Send(myagent.UserMessage, map[string]any{"content": text, "metadata": metadata})
}

// Peek returns the next frame wherever it stands in its session.
func (m *RawMyAgent) Peek() (sdk.Frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	f, err := readFrame(ctx, m.conn)
	if err == nil {
		require.True(m.t, proof.MyAgentReceived(m.t, f))
	}
	return f, err
}

// readFrame returns the next frame of a connection.
func readFrame(ctx context.Context, conn *websocket.Conn) (sdk.Frame, error) {
	_, raw, err := conn.Read(ctx)
	if err != nil {
		return sdk.Frame{}, err
	}
	return sdk.Parse(raw)
}

// Next returns the next frame, or the error that ended the connection.
func (m *RawMyAgent) Next() (sdk.Frame, error) {
	f, err := m.Peek()
	if err != nil {
		return f, err
	}
	if f.Seq > 0 {
		last := m.seqs[f.SessionID]
		require.Equal(m.t, last+1, f.From(), "events of %s are dense: %s", f.SessionID, f.Raw)
		m.seqs[f.SessionID] = f.Seq
		require.NotEmpty(m.t, f.EventID)
	}
	m.Frames = append(m.Frames, f)
	return f, nil
}

// Find reads until a frame of the kind arrives.
func (m *RawMyAgent) Find(what string, is func(sdk.Frame) bool) sdk.Frame {
	m.t.Helper()
	for end := time.Now().Add(process.MaxWait); ; {
		f, err := m.Next()
		require.NoError(m.t, err, "while waiting for %s; got %s", what, m.Names())
		require.True(m.t, time.Now().Before(end), "no %s; got %s", what, m.Names()) // heartbeats come all the time
		if is(f) {
			return f
		}
	}
}

// Until reads until one of the events arrives.
func (m *RawMyAgent) Until(events ...string) sdk.Frame {
	m.t.Helper()
	return m.Find(events[0], func(f sdk.Frame) bool { return slices.Contains(events, f.Event) })
}

// Names returns the events of all frames so far, in order; of notices the action.
func (m *RawMyAgent) Names() []string { return Names(m.Frames) }

// Names returns the events of frames; of notices the action, too.
func Names(frames []sdk.Frame) []string {
	out := make([]string, 0, len(frames))
	for _, f := range frames {
		name := f.Event
		if f.Event == myagent.SystemNotice {
			name += " " + f.Meta().Action
		}
		out = append(out, name)
	}
	return out
}

// Close closes the socket in good order.
func (m *RawMyAgent) Close() { _ = m.conn.Close(websocket.StatusNormalClosure, "") }

// Cut breaks the connection without a word.
func (m *RawMyAgent) Cut() { _ = m.conn.CloseNow() }

// Seq returns the seq of the newest event of the session that is talked in.
func (m *RawMyAgent) Seq() uint64 { return m.seqs[m.Session] }
