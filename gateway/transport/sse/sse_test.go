package sse_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/gateway/transport/transporttest"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maxWait bounds every wait: machines may be busy.
const maxWait = 60 * time.Second

// handler hears of room and ticks.
type handler struct{ room, ticks chan struct{} }

func (h *handler) Room()          { signal(h.room) }
func (h *handler) Tick(time.Time) { signal(h.ticks) }

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// open returns a response and the client's end of it.
func open(t *testing.T, o sse.Options) (*sse.Response, *http.Response, *handler, func()) {
	t.Helper()
	h := &handler{make(chan struct{}, 1), make(chan struct{}, 1)}
	begun := make(chan *sse.Response, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := sse.New(w, o)
		begun <- out
		out.Serve(r.Context(), h)
	}))
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return <-begun, res, h, cancel
}

// openSocket is open for a response over a WebSocket. It also returns the body that the messages make.
func openSocket(t *testing.T, o sse.Options) (*sse.Response, io.Reader, *handler, func()) {
	t.Helper()
	h := &handler{make(chan struct{}, 1), make(chan struct{}, 1)}
	begun := make(chan *sse.Response, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.True(t, sse.Upgrades(r))
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		socket := sse.NewSocket(w, r, []string{"waggle"}, cancel)
		defer socket.Close()
		out := sse.New(socket, o)
		begun <- out
		out.Serve(ctx, h)
	}))
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithCancel(context.Background())
	conn, _, err := websocket.Dial(ctx, srv.URL, &websocket.DialOptions{Subprotocols: []string{"waggle", "other"}}) //nolint:bodyclose // of a handshake
	require.NoError(t, err)
	require.Equal(t, "waggle", conn.Subprotocol())
	cut := func() { _ = conn.CloseNow(); cancel() }
	t.Cleanup(cut)
	return <-begun, websocket.NetConn(ctx, conn, websocket.MessageBinary), h, cut
}

// read reads a body up to its end: the data of its messages and the last comment.
func read(body io.Reader) (messages []string, comment string) {
	in := bufio.NewReaderSize(body, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return messages, comment
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			messages = append(messages, strings.TrimSuffix(data, "\n"))
		}
		if c, ok := strings.CutPrefix(line, ": "); ok {
			comment = strings.TrimPrefix(strings.TrimSpace(c), "waggle ")
		}
	}
}

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) *transporttest.Link {
		out, res, h, cut := open(t, sse.Options{QueueBytes: transporttest.Bound}) //nolint:bodyclose // open has it closed
		return &transporttest.Link{
			Transport: out, Room: h.room, Cut: cut, Read: func() ([]string, string) { return read(res.Body) },
		}
	})
}

// TestTransportOverASocket: the same holds of a response that goes out over a WebSocket.
func TestTransportOverASocket(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) *transporttest.Link {
		out, body, h, cut := openSocket(t, sse.Options{QueueBytes: transporttest.Bound})
		return &transporttest.Link{
			Transport: out, Room: h.room, Cut: cut, Read: func() ([]string, string) { return read(body) },
		}
	})
}

// TestWireForm: lines of a text, its position and its event, heartbeats and the end, as an
// EventSource reads them.
func TestWireForm(t *testing.T) {
	out, res, h, _ := open(t, sse.Options{Heartbeat: 10 * time.Millisecond, Retry: 2500 * time.Millisecond}) //nolint:bodyclose // open has it closed
	require.Equal(t, sse.Media, res.Header.Get("Content-Type"))
	in := bufio.NewReader(res.Body)
	var lines []string
	until := func(last string) {
		for {
			line, err := in.ReadString('\n')
			require.NoError(t, err)
			if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, ": hb ") && line != "" && strings.TrimSpace(line) != ":" {
				lines = append(lines, line)
			}
			if line == last {
				return
			}
		}
	}
	until(": hb 0")
	<-h.ticks
	out.Send(
		transport.New([]byte("one\ntwo"), "run.started", transport.Position{Seq: 7}),
		transport.New([]byte("three"), "", transport.Position{Seq: 8, Part: 2}),
		transport.Text([]byte("four")),
	)
	out.End(fault.New(fault.Draining))
	until(": waggle DRAINING")
	require.Equal(t, []string{
		"retry: 2500", "id: 7", "event: run.started", "data: one", "data: two", "id: 8.2", "data: three", "data: four", ": waggle DRAINING",
	}, lines)
	require.Equal(t, fault.Draining, out.Code())
}

// TestAClientThatTakesNothing ends its response, and holds up nothing else.
// Written tells when a client has taken all, and when it never will.
func TestWritten(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 8<<20)         // more than the buffers of the kernel hold
	to, res, _, leave := open(t, sse.Options{}) //nolint:bodyclose // open closes it
	first, last := make(chan struct{}), make(chan struct{})
	require.Equal(t, 1, to.Send(transport.Text([]byte(large))))
	to.Written(func() { close(first) })
	select {
	case <-first:
		require.Fail(t, "nothing is read")
	default:
	}
	_, err := io.CopyN(io.Discard, res.Body, int64(len(large)))
	require.NoError(t, err)
	<-first
	require.Equal(t, 1, to.Send(transport.Text([]byte(large))))
	to.Written(func() { close(last) })
	leave()
	<-last
	<-to.Done()
	over := make(chan struct{})
	to.Written(func() { close(over) })
	<-over
}

func TestAClientThatTakesNothing(t *testing.T) {
	o := sse.Options{QueueBytes: 1 << 20, WriteStall: time.Second}
	t.Run("response", func(t *testing.T) {
		out, _, h, _ := open(t, o) //nolint:bodyclose // open has it closed
		takesNothing(t, out, h.room)
	})
	t.Run("socket", func(t *testing.T) {
		out, _, h, _ := openSocket(t, o)
		takesNothing(t, out, h.room)
	})
}

func takesNothing(t *testing.T, out *sse.Response, room <-chan struct{}) {
	m := transport.Text([]byte(strings.Repeat("x", 512<<10)))
	limit := time.After(maxWait)
	for {
		if out.Send(m) > 0 {
			continue
		}
		select {
		case <-out.Done():
			require.Equal(t, fault.PeerStuck, out.Code())
			require.Zero(t, out.Queued())
			return
		case <-room: // of a kernel that has taken some
		case <-limit:
			require.FailNow(t, "a client that takes nothing is not ended")
		}
	}
}
