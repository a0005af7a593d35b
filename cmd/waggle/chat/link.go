// Package chat is the terminal client of the ORBIT dialect: it asks questions
// over a WebSocket, shows the answers as they are written, and comes back to its
// session when the connection is lost.
package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/proto-schemas/orbit"
)

const (
	// readLimit bounds a frame of the server: an answer is one event, and those
	// are far smaller.
	readLimit = 8 << 20
	// dialTimeout covers a slow TLS handshake over a bad line.
	dialTimeout = 10 * time.Second
	// pingInterval and pingTimeout notice a dead line within about half a minute.
	pingInterval = 20 * time.Second
	pingTimeout  = 10 * time.Second
	// maxBackoff keeps a client that waits for a restart from hammering it, and a
	// person from waiting long once it is back.
	maxBackoff = 5 * time.Second
	// giveUp is how long the server may stay away: longer than a rolling restart.
	giveUp = 2 * time.Minute
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
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, maxBackoff
	var lost time.Time
	for first := true; ; first = false {
		greeted, err := l.once(ctx, h)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if final(err, first && !greeted) {
			return closed(err)
		}
		if greeted {
			b.Reset()
			lost = time.Time{}
		}
		if lost.IsZero() {
			lost = time.Now()
			h.Lost(err)
		}
		if time.Since(lost) > giveUp {
			return fmt.Errorf("the server did not come back: %w", err)
		}
		if err := wait(ctx, b.NextBackOff()); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// refused is an answer of the HTTP server that coming back would not change.
type refused struct {
	status int
	err    error
}

func (r *refused) Error() string {
	hint := ""
	switch r.status {
	case http.StatusUnauthorized:
		hint = "; give an API key or token with --token or WAGGLE_TOKEN"
	case http.StatusNotFound:
		hint = "; check the path of --url and the session"
	}
	return fmt.Sprintf("the server refused the connection (HTTP %d %s)%s", r.status, http.StatusText(r.status), hint)
}

func (r *refused) Unwrap() error { return r.err }

// final reports whether trying again is pointless. Close codes from 4400 to 4499
// mean "not as you are", and so do the protocol's own complaints.
func final(err error, nobodyThere bool) bool {
	if _, ok := errors.AsType[*refused](err); ok || nobodyThere {
		return true
	}
	code := websocket.CloseStatus(err)
	switch code {
	case websocket.StatusProtocolError, websocket.StatusUnsupportedData,
		websocket.StatusInvalidFramePayloadData, websocket.StatusMessageTooBig:
		return true
	}
	return code >= 4400 && code < 4500
}

// closed puts the end of a connection into words.
func closed(err error) error {
	if c, ok := errors.AsType[websocket.CloseError](err); ok {
		return fmt.Errorf("the server closed the connection: %s (%d)", c.Reason, c.Code)
	}
	return err
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
	conn.SetReadLimit(readLimit)
	if err := l.attach(ctx, conn); err != nil {
		return false, err
	}
	defer l.detach()
	done := make(chan struct{})
	go func() { defer close(done); keepAlive(ctx, conn) }()
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
	target, err := l.target()
	if err != nil {
		return nil, err
	}
	header := http.Header{"User-Agent": {"waggle-chat"}}
	if l.opt.Token != "" {
		header.Set("Authorization", "Bearer "+l.opt.Token)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, target, &websocket.DialOptions{HTTPHeader: header}) //nolint:bodyclose // Dial closes it
	if err != nil && resp != nil && resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
		return nil, &refused{resp.StatusCode, err}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", l.opt.URL, err)
	}
	return conn, nil
}

func (l *Link) target() (string, error) {
	u, err := url.Parse(l.opt.URL)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return "", &refused{http.StatusNotFound, fmt.Errorf("%q is not a ws:// or wss:// URL", l.opt.URL)}
	}
	q := u.Query()
	q.Set("deltas", "true")
	l.mu.Lock()
	if l.session != "" {
		q.Set("session", l.session)
	}
	if l.resume {
		q.Set("after", strconv.FormatUint(l.after, 10))
	}
	l.mu.Unlock()
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// attach makes conn the connection and sends what the server may not have seen.
func (l *Link) attach(ctx context.Context, conn *websocket.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	for _, m := range l.pending {
		if err := writeJSON(ctx, conn, m); err != nil {
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
		_ = writeJSON(ctx, l.conn, m) // a failure ends the reader, and the message is sent again
	}
}

// Cancel asks the server to stop the run that is on. Without a connection it does
// nothing.
func (l *Link) Cancel(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = writeJSON(ctx, l.conn, orbit.CancelIn{Type: orbit.Cancel}) // a failure ends the reader
	}
}

func writeJSON(ctx context.Context, conn *websocket.Conn, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, b)
}

// keepAlive closes conn when the other side is silent.
func keepAlive(ctx context.Context, conn *websocket.Conn) {
	for wait(ctx, pingInterval) == nil {
		c, cancel := context.WithTimeout(ctx, pingTimeout)
		err := conn.Ping(c)
		cancel()
		if err != nil && ctx.Err() == nil {
			_ = conn.CloseNow()
			return
		}
	}
}
