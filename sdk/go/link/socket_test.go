package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/sdk/go/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frame is what both sides of the tests say.
type frame struct {
	Seq  uint64 `json:"seq,omitempty"`
	From uint64 `json:"from,omitempty"`
	ID   string `json:"id,omitempty"`
	Text string `json:"text,omitempty"`
}

func (f frame) bytes() []byte {
	b, _ := json.Marshal(f)
	return b
}

func decode(raw []byte) (f frame, err error) { return f, json.Unmarshal(raw, &f) }

// pipe is a socket in memory, with the server's end of it.
type pipe struct {
	address *url.URL
	header  http.Header
	down    chan []byte // to the client
	up      chan []byte // to the server
	deaf    atomic.Bool // pings have no answer

	once sync.Once
	gone chan struct{}
	err  error // result of further reads; set before gone is closed
}

func newPipe() *pipe {
	return &pipe{down: make(chan []byte), up: make(chan []byte, 1<<10), gone: make(chan struct{})}
}

// end ends the pipe for both sides.
func (p *pipe) end(err error) { p.once.Do(func() { p.err = err; close(p.gone) }) }

// leave ends it as a server does.
func (p *pipe) leave(code websocket.StatusCode) {
	p.end(websocket.CloseError{Code: code, Reason: "bye"})
}

// say sends a frame to the client and reports whether the client is there.
func (p *pipe) say(f frame) bool {
	select {
	case p.down <- f.bytes():
		return true
	case <-p.gone:
		return false
	}
}

// hear returns the next frame of the client, false when the client is gone.
func (p *pipe) hear() (frame, bool) {
	select {
	case b := <-p.up:
		f, _ := decode(b)
		return f, true
	default:
	}
	select {
	case b := <-p.up:
		f, _ := decode(b)
		return f, true
	case <-p.gone:
		return frame{}, false
	}
}

// after is where the client wants to continue.
func (p *pipe) after() uint64 {
	n, _ := strconv.ParseUint(p.address.Query().Get("after"), 10, 64)
	return n
}

func (p *pipe) Read(ctx context.Context) (websocket.MessageType, []byte, error) {
	select {
	case b := <-p.down:
		return websocket.MessageText, b, nil
	case <-p.gone:
		return 0, nil, p.err
	case <-ctx.Done():
		p.end(ctx.Err())
		return 0, nil, ctx.Err()
	}
}

func (p *pipe) Write(ctx context.Context, _ websocket.MessageType, b []byte) error {
	select {
	case <-p.gone:
		return io.ErrClosedPipe
	default:
	}
	select {
	case p.up <- b:
		return nil
	case <-p.gone:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) Ping(ctx context.Context) error {
	if !p.deaf.Load() {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.gone:
		return io.ErrClosedPipe
	}
}

func (p *pipe) Close(code websocket.StatusCode, _ string) error {
	p.end(websocket.CloseError{Code: code})
	return nil
}

func (p *pipe) CloseNow() error {
	p.end(io.ErrUnexpectedEOF)
	return nil
}

// server runs one script for each connection, the last one for all that follow.
type server struct {
	scripts []func(p *pipe)
	wg      sync.WaitGroup

	mu    sync.Mutex
	conns []*pipe
}

func serve(t testing.TB, scripts ...func(p *pipe)) *server {
	s := &server{scripts: scripts}
	t.Cleanup(s.wg.Wait)
	return s
}

// dial is Options.Dial.
func (s *server) dial(_ context.Context, address string, header http.Header) (link.Socket, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	p := newPipe()
	p.address, p.header = u, header
	s.mu.Lock()
	script := s.scripts[min(len(s.conns), len(s.scripts)-1)]
	s.conns = append(s.conns, p)
	s.mu.Unlock()
	if script == nil {
		return nil, errors.New("connection refused")
	}
	s.wg.Go(func() { script(p) })
	return p, nil
}

// client is a link that resumes by ?after=, and what it was given.
type client struct {
	*link.Link[frame]
	got  []frame
	stop func(frame) bool // ends the link, if set
}

func connect(opt link.Options, exact bool, stop func(frame) bool) *client {
	c := &client{stop: stop}
	if opt.URL == "" {
		opt.URL = "ws://a/"
	}
	c.Link = link.New(opt, link.Protocol[frame]{
		Decode: decode,
		Exact:  exact,
		Position: func(f frame) (uint64, uint64) {
			if f.From > 0 {
				return f.From, f.Seq
			}
			return f.Seq, f.Seq
		},
		Resume: func() (url.Values, error) { return url.Values{"after": {strconv.FormatUint(c.At(), 10)}}, nil },
		Take: func(conn *link.Conn, f frame) error {
			conn.Ready()
			c.got = append(c.got, f)
			if c.stop != nil && c.stop(f) {
				return link.Final(errDone)
			}
			return nil
		},
	})
	return c
}

var errDone = errors.New("done")
