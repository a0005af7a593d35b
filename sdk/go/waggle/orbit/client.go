// Package orbit is a client of the ORBIT dialect, frame by frame: a chat that survives its
// connections.
package orbit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/internal/dial"
)

// Frame is a message of the server whose payload has not been looked at.
type Frame struct {
	wire.Frame[json.RawMessage]
	Raw []byte
}

// Execution returns the id of the run that the frame belongs to, or "".
func (f Frame) Execution() string {
	if f.ExecutionID == nil {
		return ""
	}
	return string(*f.ExecutionID)
}

// As reads the data of a frame. Unreadable data is empty.
func As[T any](f Frame) T {
	var d T
	_ = json.Unmarshal(f.Data, &d)
	return d
}

// Options say where to connect.
type Options struct {
	URL     string // ws://HOST:PORT/ws
	Session string // session to continue; empty = a new one
	// After is the position in the session after which the client begins; 0 = from now on.
	After uint64
	Token string // API key or JWT; may be empty
	// TokenSource, if set, returns the token before each connection.
	TokenSource func(ctx context.Context) (string, error)
	HTTPClient  *http.Client // makes the connections, if set
	// Next, if set, returns the URL of each further connection in URL's place.
	Next func() string
}

// Handler gets the frames and the state of the connection. It is called from one goroutine.
type Handler interface {
	Frame(f Frame)
	Lost(err error) // the connection is lost and will be restored
}

// Client is a session that survives its connections: after a loss it connects again and
// resumes after the last frame that it saw. A message sent with it is accepted once,
// however often the connection breaks: until the server has shown that it has the message,
// the message is sent again, under the same id.
type Client struct {
	link    *link.Link[Frame]
	handler Handler // of Run

	mu      sync.Mutex
	session string
	resume  bool // the position is known
}

// New returns a client that is not connected.
func New(opt Options) *Client {
	c := &Client{session: opt.Session, resume: opt.After > 0}
	c.link = link.New(
		dial.Options{
			URL: opt.URL, Token: opt.Token, TokenSource: opt.TokenSource, HTTPClient: opt.HTTPClient, Next: opt.Next,
		}.Link(func(err error) {
			if err != nil {
				c.handler.Lost(err)
			}
		}),
		link.Protocol[Frame]{
			Decode:   parse,
			Position: func(f Frame) (uint64, uint64) { return f.Seq, f.Seq },
			Resume:   c.query,
			Take:     c.take,
		})
	c.link.Skip(opt.After)
	return c
}

func parse(raw []byte) (Frame, error) {
	f := Frame{Raw: raw}
	if err := json.Unmarshal(raw, &f.Frame); err != nil {
		return f, fmt.Errorf("the server does not speak ORBIT: %w", err)
	}
	return f, nil
}

// Session returns the id of the session, once it is known.
func (c *Client) Session() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Seq returns the position of the newest frame that was shown.
func (c *Client) Seq() uint64 { return c.link.At() }

// Run connects and reads until ctx ends or the session cannot be continued. It does not retry the
// first connection, because an unused address fails there. It may be called once.
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
	q := url.Values{"deltas": {"true"}}
	if c.session != "" {
		q.Set("session", c.session)
	}
	if c.resume {
		q.Set("after", strconv.FormatUint(c.link.At(), 10))
	}
	return q, nil
}

// take updates the session from a frame, and shows the frame.
func (c *Client) take(conn *link.Conn, f Frame) error {
	c.mu.Lock()
	if f.Type == wire.AgentReady {
		if d := As[wire.ReadyData](f); d.SessionID != "" {
			if !c.resume { // else missed frames follow
				c.link.Skip(d.LastSeq)
			}
			c.session, c.resume = d.SessionID, true
		}
	}
	c.resume = c.resume || f.Seq > 0 && c.session != ""
	c.mu.Unlock()
	if f.Type == wire.AgentReady {
		conn.Ready()
	}
	c.handler.Frame(f)
	return nil
}

// Refusal reports whether the frame says that a message was not accepted: an error
// that belongs to no run and is not about history.
func Refusal(f Frame) bool {
	return f.Type == wire.Error && f.Execution() == "" && As[wire.ErrorData](f).FirstSeq == 0
}

// message is a text for the server.
type message struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Text string `json:"content"`
}

// Send sends the text until the server has accepted or refused it. The error is that of Send of
// package link.
func (c *Client) Send(text string) error {
	b, err := json.Marshal(message{ID: strings.ToLower(rand.Text()), Type: wire.UserMessage, Text: text})
	if err != nil {
		return err
	}
	return c.link.Send(link.Outgoing[Frame]{
		Frame: func() []byte { return b },
		Settled: func(f Frame) bool {
			return f.Type == wire.UserInput && As[wire.MessageData](f).Message == text || Refusal(f)
		},
	})
}

// Cancel asks the server to stop the active run; without a connection it returns false.
func (c *Client) Cancel() bool {
	b, err := json.Marshal(wire.CancelIn{Type: wire.Cancel})
	return err == nil && c.link.Tell(b)
}

// Answer answers a question, until the server has shown that it is answered. The error is
// that of Send of package link.
func (c *Client) Answer(question string, approve bool, feedback string) error {
	b, err := json.Marshal(wire.AnswerIn{
		Type: wire.Answer, ID: strings.ToLower(rand.Text()), QuestionID: question, Approved: approve, Feedback: feedback,
	})
	if err != nil {
		return err
	}
	return c.link.Send(link.Outgoing[Frame]{
		Frame:   func() []byte { return b },
		Settled: func(f Frame) bool { return f.Type == wire.AgentThinking || Refusal(f) },
	})
}
