package teams

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// Handler is told what happens on a link. It is called from one goroutine.
type Handler interface {
	Frame(f Frame)
	Lost(err error) // the connection is gone and will be made again
}

// Link is a team's socket. After a loss it connects again and goes on behind the last
// frame that it saw. Its methods may be called from any goroutine.
type Link struct {
	url, token string

	mu      sync.Mutex
	conn    *websocket.Conn // nil until the server has greeted
	after   uint64          // position of the last frame
	known   bool            // after is known
	greeted bool            // there has been a connection
	pending []pending
}

// pending is a frame that the server may not have seen.
type pending struct {
	frame   any
	settled func(Frame) bool
}

// NewLink returns a link to the team that is not connected. With all it begins with the
// team's first frame; otherwise with what is on, or now.
func NewLink(chat, token, team string, all bool) *Link {
	base := strings.TrimSuffix(strings.TrimSuffix(chat, "/session"), "/ws")
	return &Link{url: base + "/ws/agent-team/" + url.PathEscape(team), token: token, known: all}
}

// Run connects and reads until ctx ends or the team cannot be watched any more. It does
// not try again if the very first connection fails: then nobody listens there.
func (l *Link) Run(ctx context.Context, h Handler) error {
	return socket.Keep(ctx, func(ctx context.Context) (bool, error) { return l.once(ctx, h) }, h.Lost)
}

// once lives through one connection and reports whether the server greeted.
func (l *Link) once(ctx context.Context, h Handler) (greeted bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := l.dial(ctx)
	if err != nil {
		return false, err
	}
	var alive sync.WaitGroup
	alive.Go(func() { socket.KeepAlive(ctx, conn) })
	defer func() { l.detach(); cancel(); _ = conn.CloseNow(); alive.Wait() }()
	for {
		if ctx.Err() != nil { // the handler has what it wanted
			return greeted, conn.Close(websocket.StatusNormalClosure, "")
		}
		_, raw, err := conn.Read(ctx)
		if err != nil {
			return greeted, err
		}
		f, err := parse(raw)
		if err != nil {
			return greeted, socket.Pointless(errors.New("the server does not speak of teams: " + err.Error()))
		}
		if f.Type == wire.Connected {
			greeted = true
			err = l.attach(ctx, conn)
		} else if !greeted {
			err = unknown(f)
		}
		if err != nil {
			return greeted, err
		}
		if l.note(f) {
			h.Frame(f)
		}
	}
}

// unknown makes an error of a frame that says that there is no such team.
func unknown(f Frame) error {
	if f.Type == wire.Error && f.Payload.Code == string(fault.TeamNotFound) {
		return socket.Pointless(errors.New(problem(f.Payload)))
	}
	return nil
}

func (l *Link) dial(ctx context.Context) (*websocket.Conn, error) {
	query := map[string]string{"additions": "true", "after": "current"}
	l.mu.Lock()
	if l.known {
		query["after"] = strconv.FormatUint(l.after, 10)
	}
	blind := l.greeted && !l.known && len(l.pending) > 0
	l.mu.Unlock()
	if blind {
		return nil, socket.Pointless(errors.New("the connection was lost before the team said anything, so that the answer may be over already"))
	}
	target, err := socket.Target(l.url, query)
	if err != nil {
		return nil, err
	}
	return socket.Dial(ctx, target, l.token)
}

// attach makes conn the connection and sends what the server may not have seen.
func (l *Link) attach(ctx context.Context, conn *websocket.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn, l.greeted = conn, true
	for _, p := range l.pending {
		if err := socket.WriteJSON(ctx, conn, p.frame); err != nil {
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

// note remembers the position of a frame. It reports whether the frame is new.
func (l *Link) note(f Frame) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq := f.Payload.Envelope.Sequence; seq > 0 {
		if seq <= l.after {
			return false
		}
		l.after, l.known = seq, true
	}
	for i, p := range l.pending {
		if p.settled(f) {
			l.pending = append(l.pending[:i:i], l.pending[i+1:]...)
			break
		}
	}
	return true
}

// out is a frame of the client.
type out struct {
	Type    string         `json:"type"`
	Payload map[string]any `json:"payload,omitempty"`
}

// send sends a frame, now and after each loss, until a frame of the server settles it.
func (l *Link) send(ctx context.Context, f out, settled func(Frame) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, pending{f, settled})
	if l.conn != nil {
		_ = socket.WriteJSON(ctx, l.conn, f) // a failure ends the reader, and the frame is sent again
	}
}

// decide answers a question. The first answer counts, whoever gives it.
func (l *Link) decide(ctx context.Context, q question, approve bool, reason string) {
	f := out{Type: wire.DenyTool, Payload: map[string]any{"invocation_id": q.InvocationID, "agent_name": q.route}}
	if approve {
		f.Type = wire.ApproveTool
	}
	if reason != "" {
		f.Payload["reason"] = reason
	}
	if len(q.Token) > 0 {
		f.Payload["approval_token"] = q.Token
	}
	l.send(ctx, f, func(g Frame) bool {
		return (g.Type == wire.ToolApproved || g.Type == wire.ToolDenied) && g.Payload.InvocationID == q.InvocationID ||
			g.Type == wire.Error && g.Payload.Envelope.Sequence == 0
	})
}

// stop asks the server to stop all members. Without a connection it does nothing.
func (l *Link) stop(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = socket.WriteJSON(ctx, l.conn, out{Type: wire.StopGeneration}) // a failure ends the reader
	}
}
