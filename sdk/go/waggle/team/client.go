// Package team is a client of the teams' dialect, frame by frame, over connections that may
// break.
package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/internal/dial"
)

// ErrBlind says that the connection was lost before the team had said anything: what came
// of the messages that were sent cannot be known.
var ErrBlind = errors.New("the connection was lost before the team said anything, so that the answer may be over already")

// Options say where to connect, and where in the team's log to begin.
type Options struct {
	URL   string // ws://HOST:PORT/ws/agent-team/ID
	Token string // API key or JWT; may be empty
	// TokenSource, if set, returns the token before each connection.
	TokenSource func(ctx context.Context) (string, error)
	HTTPClient  *http.Client // makes the connections, if set
	// Next, if set, returns the URL of each further connection in URL's place.
	Next func() string

	All   bool   // begin after After; otherwise with the work in progress, or now
	After uint64 // a position of the team's log; 0 = the first frame
}

// Handler gets the frames and the state of the connection. It is called from one goroutine.
type Handler interface {
	Frame(f Frame)
	Lost(err error) // the connection is lost and will be restored
}

// Client is a team's socket. After a disconnect it reconnects and resumes after its last frame. Its
// methods may be called from any goroutine.
type Client struct {
	link    *link.Link[Frame]
	handler Handler // of Run

	mu      sync.Mutex
	known   bool // the position is
	greeted bool // there has been a connection
}

// New returns a client that is not connected.
func New(opt Options) *Client {
	c := &Client{known: opt.All}
	c.link = link.New(
		dial.Options{
			URL: opt.URL, Token: opt.Token, TokenSource: opt.TokenSource, HTTPClient: opt.HTTPClient, Next: opt.Next,
		}.Link(func(err error) {
			if err != nil {
				c.handler.Lost(err)
			}
		}),
		link.Protocol[Frame]{
			Decode: func(raw []byte) (Frame, error) {
				f, err := Parse(raw)
				if err != nil {
					err = link.Final(fmt.Errorf("the server does not speak of teams: %w", err))
				}
				return f, err
			},
			Position: func(f Frame) (uint64, uint64) { return f.Payload.Envelope.Sequence, f.Payload.Envelope.Sequence },
			Resume:   c.query,
			Take:     c.take,
		})
	if opt.All {
		c.link.Skip(opt.After)
	}
	return c
}

// Run connects and reads until ctx ends or the team can no longer be watched. It does not retry
// the first connection, because an unused address fails there. It may be called once.
func (c *Client) Run(ctx context.Context, h Handler) error {
	c.handler = h
	err := c.link.Run(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// query returns the URL parameters by which the next connection resumes.
func (c *Client) query() (url.Values, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := url.Values{"additions": {"true"}, "after": {"current"}}
	if c.known {
		q.Set("after", strconv.FormatUint(c.link.At(), 10))
	}
	if c.greeted && !c.known && c.link.Pending() > 0 {
		return nil, link.Final(ErrBlind)
	}
	return q, nil
}

// take updates the connection's state from a frame, and shows the frame.
func (c *Client) take(conn *link.Conn, f Frame) error {
	c.mu.Lock()
	c.known = c.known || f.Payload.Envelope.Sequence > 0
	c.greeted = c.greeted || f.Type == wire.Connected
	c.mu.Unlock()
	switch {
	case f.Type == wire.Connected:
		conn.Ready()
	case !conn.IsReady() && f.Type == wire.Error && f.Payload.Code == string(fault.TeamNotFound):
		return link.Final(f.Err())
	}
	c.handler.Frame(f)
	return nil
}

// Out is a frame of the client.
type Out struct {
	Type    string         `json:"type"`
	Payload map[string]any `json:"payload,omitempty"`
}

// Send sends a frame, now and after each loss, until a frame of the server settles it. The
// error is that of Send of package link, or says what cannot be encoded.
func (c *Client) Send(f Out, settled func(Frame) bool) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return c.link.Send(link.Outgoing[Frame]{Frame: func() []byte { return b }, Settled: settled})
}

// Refusal reports whether the frame is the answer to a frame of this client, which asked
// for what cannot be.
func Refusal(f Frame) bool { return f.Type == wire.Error && f.Payload.Envelope.Sequence == 0 }

// shownToken returns the token of a question with the digest of the call that it shows, whatever the token says: a server
// refuses the approval of a call that was shown as another one.
func (q Payload) shownToken() json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(q.Token, &m) != nil || m["digest"] == nil {
		return q.Token
	}
	var err error
	if m["digest"], err = json.Marshal(event.CallDigest(q.ToolName, q.Arguments)); err != nil {
		return q.Token
	}
	b, err := json.Marshal(m)
	if err != nil {
		return q.Token
	}
	return b
}

// Decide answers the question of the member at the path; q is the payload of its
// TOOL_APPROVAL_REQUESTED. The first answer counts.
func (c *Client) Decide(path string, q Payload, approve bool, reason string) error {
	f := Out{Type: wire.DenyTool, Payload: map[string]any{"invocation_id": q.InvocationID, "agent_name": path}}
	if approve {
		f.Type = wire.ApproveTool
	}
	if reason != "" {
		f.Payload["reason"] = reason
	}
	if len(q.Token) > 0 {
		f.Payload["approval_token"] = q.shownToken()
	}
	return c.Send(f, func(g Frame) bool {
		return (g.Type == wire.ToolApproved || g.Type == wire.ToolDenied) && g.Payload.InvocationID == q.InvocationID || Refusal(g)
	})
}

// Stop asks the server to stop all members; without a connection it returns false.
func (c *Client) Stop() bool {
	b, err := json.Marshal(Out{Type: wire.StopGeneration})
	return err == nil && c.link.Tell(b)
}
