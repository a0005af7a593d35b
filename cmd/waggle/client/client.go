// Package client is a client of the MyAgent dialect: a session that survives its
// connections, with every event of its log shown once and in order.
package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// ackPause keeps acknowledgements far below the frames that a socket may send.
const ackPause = time.Second

// Options say where to connect and what to ask of a new session.
type Options struct {
	URL      string // ws://HOST:PORT/ws/session
	Session  string // session to continue, from its beginning; empty = a new one
	Token    string // API key or JWT; may be empty
	ClientID string // name of the device; empty = a new one
	Language string // zh_CN or en_US; empty = the server's choice

	ConfirmPlan *bool  // of a new session: ask before a plan is carried out
	OnBusy      string // of a new session: reject, enqueue or interrupt

	// Next, if set, returns the URL of each further connection in URL's place: several
	// gateways serve the same sessions.
	Next func() string
}

// Handler is told what happens. It is called from one goroutine.
type Handler interface {
	Frame(f Frame)
	Lost(err error) // the connection is gone and will be made again
}

// everything asks for every event: what is shown of a text while it is written, and the
// echo that settles a message.
var everything = map[string]string{"deltas": "all", "echo": "true"}

// GapError says that the server has left an event out or shown it twice.
type GapError struct{ After, From, To uint64 }

func (e *GapError) Error() string {
	return fmt.Sprintf("the events after seq %d go on with %d to %d", e.After, e.From, e.To)
}

// Client is one session. After a loss it connects again and resumes behind the
// last event that it saw. What is sent with Send arrives once, however often the
// connection breaks. Its methods may be called from any goroutine.
type Client struct {
	opt Options

	mu      sync.Mutex
	conn    *websocket.Conn // nil until the session is attached
	dialed  *websocket.Conn // nil without a connection
	session string
	seq     uint64
	eventID string
	lost    time.Time
	began   bool // a connection has been made before
	pending []pending
}

// pending is a frame that the server may not have seen.
type pending struct {
	frame   map[string]any
	settled func(Frame) bool
}

// New returns a client that is not connected.
func New(opt Options) *Client {
	if opt.ClientID == "" {
		opt.ClientID = "waggle-" + uuid.NewString()[:8]
	}
	return &Client{opt: opt, session: opt.Session}
}

// Session returns the id of the session, once it is known.
func (c *Client) Session() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Seq returns the seq of the newest event that was shown.
func (c *Client) Seq() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seq
}

// Run connects and reads until ctx ends or the session cannot be continued. It
// does not try again if the very first connection fails: then nobody listens there.
func (c *Client) Run(ctx context.Context, h Handler) error {
	return socket.Keep(ctx, func(ctx context.Context) (bool, error) { return c.once(ctx, h) }, h.Lost)
}

// once lives through one connection. It reports whether the session was attached.
func (c *Client) once(ctx context.Context, h Handler) (attached bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := c.dial(ctx)
	if err != nil {
		return false, err
	}
	defer c.detach(conn)
	var helpers sync.WaitGroup
	helpers.Go(func() { socket.KeepAlive(ctx, conn) })
	helpers.Go(func() { c.acknowledge(ctx) })
	defer func() { cancel(); _ = conn.CloseNow(); helpers.Wait() }()
	for {
		if ctx.Err() != nil { // the handler has what it wanted
			return attached, conn.Close(websocket.StatusNormalClosure, "")
		}
		f, err := Read(ctx, conn)
		if err == nil {
			err = c.take(ctx, conn, f, &attached)
		}
		if err != nil {
			return attached, err
		}
		h.Frame(f)
	}
}

func (c *Client) dial(ctx context.Context) (*websocket.Conn, error) {
	address := c.opt.URL
	c.mu.Lock()
	if c.began && c.opt.Next != nil {
		address = c.opt.Next()
	}
	c.began = true
	c.mu.Unlock()
	query := maps.Clone(everything)
	if c.opt.Language != "" {
		query["language"] = c.opt.Language
	}
	target, err := socket.Target(address, query)
	if err != nil {
		return nil, err
	}
	conn, err := socket.Dial(ctx, target, c.opt.Token)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.dialed = conn
	hello := c.hello()
	c.mu.Unlock()
	if err := socket.WriteJSON(ctx, conn, hello); err != nil {
		c.detach(conn)
		return nil, err
	}
	return conn, nil
}

// hello is the frame that a connection begins with. The caller holds the lock.
func (c *Client) hello() map[string]any {
	if c.session == "" {
		return c.create()
	}
	content := map[string]any{"last_seq": c.seq}
	if c.eventID != "" {
		content["last_event_id"] = c.eventID
	}
	metadata := map[string]any{"client_id": c.opt.ClientID, "disconnect_reason": "network_issue"}
	if !c.lost.IsZero() {
		metadata["offline_duration_ms"] = time.Since(c.lost).Milliseconds()
	}
	return map[string]any{
		"event": myagent.UserReconnectWithState, "session_id": c.session, "content": content, "metadata": metadata,
	}
}

func (c *Client) create() map[string]any {
	content := map[string]any{"client_id": c.opt.ClientID, "client_version": "waggle"}
	if c.opt.Language != "" {
		content["preferences"] = map[string]any{"language": c.opt.Language}
	}
	metadata := map[string]any{"source": "api"}
	if c.opt.ConfirmPlan != nil {
		metadata["confirm_plan"] = *c.opt.ConfirmPlan
	}
	if c.opt.OnBusy != "" {
		metadata["on_busy"] = c.opt.OnBusy
	}
	return map[string]any{"event": myagent.UserCreateSession, "content": content, "metadata": metadata}
}

// take notes what a frame says about the session and its position.
func (c *Client) take(ctx context.Context, conn *websocket.Conn, f Frame, attached *bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.Event == myagent.ErrorRecoveryFailed {
		return socket.Pointless(errors.New(ErrorText(f)))
	}
	if f.Seq > 0 {
		if f.From() != c.seq+1 || f.Seq < f.From() {
			return &GapError{After: c.seq, From: f.From(), To: f.Seq}
		}
		c.seq, c.eventID = f.Seq, f.EventID
	} else if first := f.Meta().First; first > c.seq && f.Event == myagent.SystemNotice {
		c.seq, c.eventID = first-1, "" // what came before has expired, and we have been told
	}
	c.settle(f)
	if *attached || !c.attaches(f) {
		return c.trouble(f, *attached)
	}
	*attached, c.session, c.conn = true, f.SessionID, conn
	for _, p := range c.pending {
		if err := socket.WriteJSON(ctx, conn, c.addressed(p.frame)); err != nil {
			return err
		}
	}
	return nil
}

// attaches reports whether the frame is the answer to hello. The caller holds the lock.
func (c *Client) attaches(f Frame) bool {
	if c.session == "" {
		return f.Event == myagent.AgentSessionCreated
	}
	return f.SessionID == c.session && f.Event == myagent.SystemNotice && f.Seq == 0 && f.Meta().Action == myagent.ActionReplay
}

// trouble makes an error of a frame that refuses hello, or that may have refused
// what is pending: then it is sent again on another connection.
func (c *Client) trouble(f Frame, attached bool) error {
	switch {
	case f.Seq > 0 || attached && len(c.pending) == 0:
		return nil
	case f.Event == myagent.SystemError || f.Event == myagent.ErrorRateLimited:
		return errors.New(ErrorText(f))
	case f.Event == myagent.ErrorValidation && !attached:
		return socket.Pointless(errors.New(ErrorText(f)))
	}
	return nil
}

func (c *Client) settle(f Frame) {
	for i, p := range c.pending {
		if p.settled(f) {
			c.pending = append(c.pending[:i:i], c.pending[i+1:]...)
			return
		}
	}
}

// addressed returns the frame with the session's id. The caller holds the lock.
func (c *Client) addressed(frame map[string]any) map[string]any {
	frame["session_id"] = c.session
	return frame
}

func (c *Client) detach(conn *websocket.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dialed == conn {
		c.conn, c.dialed, c.lost = nil, nil, time.Now()
	}
	_ = conn.CloseNow()
}

// acknowledge tells the server from time to time how far the session has been read.
func (c *Client) acknowledge(ctx context.Context) {
	acked := c.Seq()
	for socket.Wait(ctx, ackPause) == nil {
		if seq := c.Seq(); seq > acked {
			acked = seq
			c.Tell(ctx, map[string]any{
				"event": myagent.UserAck, "metadata": map[string]any{"last_seq": seq, "client_id": c.opt.ClientID},
			})
		}
	}
}
