// Package myagent is a client of the MyAgent dialect, frame by frame: a session that
// survives its connections, with every event of its log shown once and in order.
package myagent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/internal/dial"
)

// ackPause keeps acknowledgements far below the frames that a socket may send.
const ackPause = time.Second

// Options say where to connect and what to ask of a new session.
type Options struct {
	URL     string // ws://HOST:PORT/ws/session
	Session string // session to continue; empty = a new one
	After   uint64 // position of the session to continue after; 0 = from its beginning
	Token   string // API key or JWT; may be empty
	// TokenSource, if set, returns the token before each connection.
	TokenSource func(ctx context.Context) (string, error)
	HTTPClient  *http.Client // makes the connections, if set

	ClientID string // name of the device; empty = a new one
	Language string // zh_CN or en_US; empty = the server's choice

	ConfirmPlan *bool  // of a new session: ask before a plan is carried out
	OnBusy      string // of a new session: reject, enqueue or interrupt

	// Next, if set, returns the URL of each further connection in URL's place: several
	// gateways serve the same sessions.
	Next func() string
}

// Handler gets the frames and the state of the connection. It is called from one goroutine.
type Handler interface {
	Frame(f Frame)
	Lost(err error) // the connection is lost and will be restored
}

// link returns the options of the connections.
func (o Options) link(down func(error)) link.Options {
	return dial.Options{
		URL: o.URL, Token: o.Token, TokenSource: o.TokenSource, HTTPClient: o.HTTPClient, Next: o.Next,
	}.Link(down)
}

// Client is one session. After a disconnect it reconnects and resumes after its last event. Frames
// of Message, SolveTasks and Respond arrive once, however often the connection breaks. Its methods
// may be called from any goroutine.
type Client struct {
	opt     Options
	link    *link.Link[Frame]
	handler Handler // of Run

	mu      sync.Mutex
	session string
	eventID string
	lost    time.Time
}

// New returns a client that is not connected.
func New(opt Options) *Client {
	if opt.ClientID == "" {
		opt.ClientID = "waggle-" + newID()[:8]
	}
	c := &Client{opt: opt, session: opt.Session}
	// The client needs every event: the pieces of a text, and the echo that settles a message.
	query := url.Values{"deltas": {"all"}, "echo": {"true"}}
	if opt.Language != "" {
		query.Set("language", opt.Language)
	}
	c.link = link.New(opt.link(c.down),
		link.Protocol[Frame]{
			Decode:   Parse,
			Position: func(f Frame) (uint64, uint64) { return f.From(), f.Seq },
			Exact:    true,
			Resume:   func() (url.Values, error) { return query, nil },
			Begin:    func(ctx context.Context, conn *link.Conn) error { return conn.Send(ctx, encode(c.hello())) },
			Take:     c.take,
		})
	c.link.Skip(opt.After)
	return c
}

// Session returns the id of the session, once it is known.
func (c *Client) Session() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Seq returns the seq of the newest event that was shown.
func (c *Client) Seq() uint64 { return c.link.At() }

// Run connects and reads until ctx ends or the session cannot be continued. It does not retry the
// first connection, because an unused address fails there. It may be called once.
func (c *Client) Run(ctx context.Context, h Handler) error {
	c.handler = h
	var acks sync.WaitGroup
	within, cancel := context.WithCancel(ctx)
	acks.Go(func() { c.acknowledge(within) })
	err := c.link.Run(ctx)
	cancel()
	acks.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// down notes a lost connection.
func (c *Client) down(err error) {
	c.mu.Lock()
	c.lost = time.Now()
	c.mu.Unlock()
	if err != nil {
		c.handler.Lost(err)
	}
}

// hello is the first frame of a connection.
func (c *Client) hello() map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == "" {
		return c.create()
	}
	content := map[string]any{"last_seq": c.link.At()}
	if c.eventID != "" {
		content["last_event_id"] = c.eventID
	}
	metadata := map[string]any{"client_id": c.opt.ClientID, "disconnect_reason": "network_issue"}
	if !c.lost.IsZero() {
		metadata["offline_duration_ms"] = time.Since(c.lost).Milliseconds()
	}
	return map[string]any{
		"event": wire.UserReconnectWithState, "session_id": c.session, "content": content, "metadata": metadata,
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
	return map[string]any{"event": wire.UserCreateSession, "content": content, "metadata": metadata}
}

// take updates the session from a frame, and shows the frame.
func (c *Client) take(conn *link.Conn, f Frame) error {
	if f.Event == wire.ErrorRecoveryFailed {
		return link.Final(f.Err())
	}
	c.mu.Lock()
	if f.Seq > 0 {
		c.eventID = f.EventID
	} else if first := f.Meta().First; first > c.link.At() && f.Event == wire.SystemNotice {
		c.link.Skip(first - 1) // earlier events have expired, as the notice says
		c.eventID = ""
	}
	attaches := !conn.IsReady() && c.attaches(f)
	if attaches {
		c.session = f.SessionID
	}
	c.mu.Unlock()
	if attaches {
		conn.Ready()
	} else if err := c.trouble(f, conn.IsReady()); err != nil {
		return err
	}
	c.handler.Frame(f)
	return nil
}

// attaches reports whether the frame is the answer to hello. The caller holds the lock.
func (c *Client) attaches(f Frame) bool {
	if c.session == "" {
		return f.Event == wire.AgentSessionCreated
	}
	return f.SessionID == c.session && f.Event == wire.SystemNotice && f.Seq == 0 && f.Meta().Action == wire.ActionReplay
}

// trouble returns an error for a frame that refuses hello, or that may refuse the pending frames:
// these are then sent again on another connection.
func (c *Client) trouble(f Frame, attached bool) error {
	switch {
	case f.Seq > 0 || attached && c.link.Pending() == 0:
		return nil
	case f.Event == wire.SystemError || f.Event == wire.ErrorRateLimited:
		return f.Err()
	case f.Event == wire.ErrorValidation && !attached:
		return link.Final(f.Err())
	}
	return nil
}

// acknowledge tells the server from time to time how far the session has been read.
func (c *Client) acknowledge(ctx context.Context) {
	t := time.NewTicker(ackPause)
	defer t.Stop()
	for acked := c.Seq(); ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if seq := c.Seq(); seq > acked {
			acked = seq
			c.Tell(map[string]any{
				"event": wire.UserAck, "metadata": map[string]any{"last_seq": seq, "client_id": c.opt.ClientID},
			})
		}
	}
}

// newID returns an id that no other message has.
func newID() string { return strings.ToLower(rand.Text()) }

// encode returns a frame of values that can always be encoded.
func encode(frame map[string]any) []byte {
	b, err := json.Marshal(frame)
	if err != nil {
		panic("myagent: a frame cannot be encoded: " + err.Error()) // Message and its like have checked it
	}
	return b
}

// Tell sends a frame of the session once; without a connection it returns false. The frame may be
// lost with the connection. Its values have to be encodable.
func (c *Client) Tell(frame map[string]any) bool {
	return c.link.Current() != nil && c.link.Tell(encode(c.addressed(frame)))
}

// addressed returns the frame with the session's id.
func (c *Client) addressed(frame map[string]any) map[string]any {
	frame["session_id"] = c.Session()
	return frame
}
