package ws

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

// upgrade runs the handshake on a connection of ours.
func (h *Hub) upgrade(w http.ResponseWriter, r *http.Request, subprotocols []string) (*Socket, error) {
	s := newSocket(h)
	ws, err := websocket.Accept(&hijacker{ResponseWriter: w, s: s}, r, &websocket.AcceptOptions{
		Subprotocols:       subprotocols,
		InsecureSkipVerify: true, // the gateway has checked Origin and Host against its lists
		CompressionMode:    websocket.CompressionDisabled,
		OnPingReceived:     func(_ context.Context, p []byte) bool { s.pinged(p); return false },
		OnPongReceived:     func(_ context.Context, p []byte) { s.ponged(p) },
	})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1) // Read has its own, which leaves the close frame to us
	s.ws = ws
	s.in.Reset(conn{s.nc, s})
	return s, nil
}

// hijacker hands coder our connection instead of the server's.
type hijacker struct {
	http.ResponseWriter
	s *Socket
}

// Hijack takes the connection over from the HTTP server, with what it has read of
// it already.
func (j *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, brw, err := http.NewResponseController(j.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	s := j.s
	if n := brw.Reader.Buffered(); n > 0 {
		if p, err := brw.Reader.Peek(n); err == nil {
			s.early = append([]byte(nil), p...)
		}
	}
	s.attach(nc, sinkOf(beneath(nc)))
	c := conn{nc, s}
	s.in = bufio.NewReaderSize(c, readBuffer)
	return c, bufio.NewReadWriter(s.in, bufio.NewWriterSize(c, writeBuffer)), nil
}

// conn is the connection as coder sees it. It reads through, notes signs of life,
// and leaves writing and closing to the socket.
type conn struct {
	net.Conn
	s *Socket
}

// Read is called by the one goroutine that reads the socket.
func (c conn) Read(p []byte) (n int, err error) {
	s := c.s
	if s.late > maxLate {
		return 0, errLate // not the connection's: what follows is read elsewhere
	}
	if len(s.early) > 0 {
		n = copy(p, s.early)
		if s.early = s.early[n:]; len(s.early) == 0 {
			s.early = nil
		}
	} else {
		n, err = c.Conn.Read(p)
	}
	if n > 0 && !s.frames.take(p[:n]) {
		return 0, errFragments
	}
	if n > 0 {
		now := s.hub.now()
		s.heard.Store(now)
		if s.began.Load() == 0 {
			s.began.Store(now)
		}
		return n, nil // an error that came along comes again
	}
	if err != nil {
		s.ioErr = err
	}
	return 0, err
}

// Write takes a close frame: the only thing that coder is left to write, in answer
// to the peer's or because of an error in the protocol, before which the handler may
// speak: coder gives it 5 s. Otherwise it does not block.
func (c conn) Write(p []byte) (int, error) {
	if len(p) < 2 || p[0] != opClose || len(p) != 2+int(p[1]) {
		return 0, fmt.Errorf("ws: unexpected write of %d bytes", len(p))
	}
	code, valid := closeOf(p)
	if !valid {
		c.s.Finish(int(websocket.StatusInvalidFramePayloadData), "reason is not valid UTF-8")
		return len(p), nil
	}
	if code == int(websocket.StatusProtocolError) {
		c.s.broke()
	}
	c.s.finish(append([]byte(nil), p...), code, false)
	return len(p), nil
}

// Close is called by coder once both sides have sent their close frames as far as
// it knows, or when a control frame took too long.
func (c conn) Close() error {
	c.s.peerGone()
	return nil
}
