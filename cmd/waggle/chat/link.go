// Package chat is the terminal client of the ORBIT dialect: it asks questions
// over a WebSocket, shows the answers as they are written, and comes back to its
// session when the connection is lost.
package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// Frame is a message of the server whose payload has not been looked at.
type Frame struct {
	orbit.Frame[json.RawMessage]
	Raw []byte
}

// Execution returns the id of the run that the frame belongs to, or "".
func (f Frame) Execution() string {
	if f.ExecutionID == nil {
		return ""
	}
	return string(*f.ExecutionID)
}

// Options say where to connect.
type Options struct {
	URL     string // ws://HOST:PORT/ws
	Session string // session to continue; empty = a new one
	Token   string // API key or JWT; may be empty
	Model   string // that answers, for the person to read; may be empty
}

// Handler is told what happens. It is called from one goroutine.
type Handler interface {
	Frame(f Frame)
	Lost(err error) // the connection is gone and will be made again
}

// Link is a session that survives its connections: after a loss it connects again
// and resumes behind the last frame that it saw. A message sent with it is accepted
// once, however often the connection breaks: until the server has shown that it
// has the message, the message is sent again, under the same id.
type Link struct {
	opt Options

	mu      sync.Mutex
	conn    *websocket.Conn
	session string
	after   uint64
	resume  bool // after is known
	pending []message
}

type message struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Text string `json:"content"`
}

// NewLink returns a link that is not connected.
func NewLink(opt Options) *Link { return &Link{opt: opt, session: opt.Session} }

// Session returns the id of the session, once it is known.
func (l *Link) Session() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// Run connects and reads until ctx ends or the session cannot be continued. It
// does not try again if the very first connection fails: then nobody listens there.
func (l *Link) Run(ctx context.Context, h Handler) error {
	return socket.Keep(ctx, func(ctx context.Context) (bool, error) { return l.once(ctx, h) }, h.Lost)
}

// once lives through one connection. It reports whether the server greeted.
func (l *Link) once(ctx context.Context, h Handler) (greeted bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := l.dial(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.CloseNow() }()
	if err := l.attach(ctx, conn); err != nil {
		return false, err
	}
	defer l.detach()
	done := make(chan struct{})
	go func() { defer close(done); socket.KeepAlive(ctx, conn) }()
	defer func() { cancel(); <-done }()
	for {
		if ctx.Err() != nil { // the handler has what it wanted
			return greeted, conn.Close(websocket.StatusNormalClosure, "")
		}
		_, raw, err := conn.Read(ctx)
		if err != nil {
			return greeted, err
		}
		var f Frame
		if err := json.Unmarshal(raw, &f.Frame); err != nil {
			return greeted, fmt.Errorf("the server does not speak ORBIT: %w", err)
		}
		f.Raw = raw
		greeted = greeted || f.Type == orbit.AgentReady
		l.note(f)
		h.Frame(f)
	}
}

func (l *Link) dial(ctx context.Context) (*websocket.Conn, error) {
	query := map[string]string{"deltas": "true"}
	l.mu.Lock()
	if l.session != "" {
		query["session"] = l.session
	}
	if l.resume {
		query["after"] = strconv.FormatUint(l.after, 10)
	}
	l.mu.Unlock()
	target, err := socket.Target(l.opt.URL, query)
	if err != nil {
		return nil, err
	}
	return socket.Dial(ctx, target, l.opt.Token)
}

// attach makes conn the connection and sends what the server may not have seen.
func (l *Link) attach(ctx context.Context, conn *websocket.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	for _, m := range l.pending {
		if err := socket.WriteJSON(ctx, conn, m); err != nil {
			return err
		}
	}
	return nil
}

func (l *Link) detach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = nil
}

// note remembers what a frame says about the session.
func (l *Link) note(f Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Type == orbit.AgentReady {
		var d orbit.ReadyData
		if json.Unmarshal(f.Data, &d) == nil && d.SessionID != "" {
			l.session = d.SessionID
			l.after, l.resume = max(l.after, d.LastSeq), true
		}
	}
	if f.Seq > l.after {
		l.after, l.resume = f.Seq, l.session != ""
	}
	if len(l.pending) == 0 {
		return
	}
	var d orbit.MessageData
	switch {
	case f.Type == orbit.UserInput && json.Unmarshal(f.Data, &d) == nil && d.Message == l.pending[0].Text,
		Refusal(f):
		l.pending = l.pending[1:]
	}
}

// Refusal reports whether the frame says that a message was not accepted: an error
// that belongs to no run and is not about history.
func Refusal(f Frame) bool {
	if f.Type != orbit.Error || f.Execution() != "" {
		return false
	}
	var d orbit.ErrorData
	return json.Unmarshal(f.Data, &d) != nil || d.FirstSeq == 0
}

// Send queues the text for the server and sends it if there is a connection.
func (l *Link) Send(ctx context.Context, text string) {
	m := message{ID: uuid.NewString(), Type: orbit.UserMessage, Text: text}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, m)
	if l.conn != nil {
		_ = socket.WriteJSON(ctx, l.conn, m) // a failure ends the reader, and the message is sent again
	}
}

// Cancel asks the server to stop the run that is on. Without a connection it does
// nothing.
func (l *Link) Cancel(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = socket.WriteJSON(ctx, l.conn, orbit.CancelIn{Type: orbit.Cancel}) // a failure ends the reader
	}
}
