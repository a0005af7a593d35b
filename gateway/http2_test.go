package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// TestStreamsOfOneConnection: a hundred streams share one connection of HTTP/2 in clear text. The client of one takes nothing,
// and loses it; the others get everything, one that ends takes no other along, and the connection serves further requests.
func TestStreamsOfOneConnection(t *testing.T) {
	const streams, texts = 100, 12
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.QueueBytes, c.WriteStall = 64<<10, 8*time.Second
	})
	var dialed atomic.Int64
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	tr := &http.Transport{
		Protocols: &protocols, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialed.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	client := &http.Client{Transport: tr}
	ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
	defer cancel()
	name, l := r.thread(running("one")...)
	open := func(path string) *http.Response { // the cleanup closes its body
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.addr+path, nil)
		require.NoError(t, err)
		res, err := client.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = res.Body.Close() })
		require.Equal(t, 2, res.ProtoMajor)
		return res
	}
	require.Equal(t, http.StatusNotFound, open("/agui/threads/none").StatusCode) //nolint:bodyclose // open has it closed
	all := make([]*http.Response, streams)
	for i := range all {
		all[i] = open("/agui/threads/" + name) //nolint:bodyclose // open has it closed
		require.Equal(t, http.StatusOK, all[i].StatusCode)
	}
	long := strings.Repeat("x", 16<<10)
	go func() {
		_ = r.append(l, unique(), event.MessageStartedData{MessageID: "m", RunID: "w-one", Attempt: 1})
		for i := range texts {
			_ = r.append(l, unique(), event.MessageDeltaData{MessageID: "m", RunID: "w-one", Attempt: 1, Text: fmt.Sprint(i, long)})
		}
	}()
	var g errgroup.Group
	for i, res := range all[1:] {
		g.Go(func() error {
			in, seen := bufio.NewReaderSize(res.Body, 64<<10), 0
			for seen < texts {
				line, err := in.ReadString('\n')
				if err != nil {
					return fmt.Errorf("stream %d after %d texts: %w", i, seen, err)
				}
				if strings.HasPrefix(line, "data: ") {
					seen += strings.Count(line, long)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	eventually(t, "the stalled one is gone", func() bool { return r.metric("waggle_gateway_connections") < streams })
	require.EqualValues(t, streams-1, r.metric("waggle_gateway_connections"), "no other is")
	require.NoError(t, r.append(l, unique(), event.RunCompletedData{RunID: "w-one", MessageID: "m"}))
	eventually(t, "the others have ended", func() bool { return r.metric("waggle_gateway_connections") == 0 })
	require.Equal(t, http.StatusNotFound, open("/agui/threads/none").StatusCode, "the connection lives") //nolint:bodyclose // open has it closed
	require.EqualValues(t, 1, dialed.Load())
}

// TestResetsEndTheirConnection: a client of HTTP/2 that begins requests and drops them at once loses its connection, and one that
// reads its answers keeps it.
func TestResetsEndTheirConnection(t *testing.T) {
	const requests = 2000
	r := start(t)
	reads := r.begins(t)
	for range requests {
		require.NoError(t, reads.request())
		<-reads.answered
	}
	require.NoError(t, reads.conn.Close())
	<-reads.ended
	drops := r.begins(t)
	for range 200_000 {
		if drops.request() != nil || drops.frames.WriteRSTStream(drops.stream, http2.ErrCodeCancel) != nil {
			break // the gateway has closed it
		}
		select {
		case <-drops.answered:
		default:
		}
	}
	for over := false; !over; {
		select {
		case <-drops.answered:
		case <-drops.ended:
			over = true
		}
	}
}

// beginner is a client of HTTP/2 that begins requests.
type beginner struct {
	conn     net.Conn
	frames   *http2.Framer
	stream   uint32 // of the last request
	fields   []byte
	answered chan struct{}
	ended    chan struct{} // the connection has
}

// begins opens a connection for requests of /livez.
func (r *rig) begins(t *testing.T) *beginner {
	t.Helper()
	nc, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	_, err = io.WriteString(nc, http2.ClientPreface)
	require.NoError(t, err)
	b := &beginner{conn: nc, stream: 1, frames: http2.NewFramer(nc, nc), answered: make(chan struct{}, 1), ended: make(chan struct{})}
	require.NoError(t, b.frames.WriteSettings())
	var block bytes.Buffer
	head := hpack.NewEncoder(&block)
	for _, h := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "localhost"}, {":path", "/livez"}} {
		require.NoError(t, head.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	b.fields = block.Bytes()
	go b.read()
	return b
}

// read tells of each answer, until the connection ends.
func (b *beginner) read() {
	defer close(b.ended)
	for {
		frame, err := b.frames.ReadFrame()
		if err != nil {
			return
		}
		if end, ok := frame.(interface{ StreamEnded() bool }); ok && end.StreamEnded() {
			b.answered <- struct{}{}
		}
	}
}

// request begins the next request.
func (b *beginner) request() error {
	b.stream += 2
	return b.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: b.stream, BlockFragment: b.fields, EndStream: true, EndHeaders: true})
}
