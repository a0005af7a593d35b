package sse

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Upgrades reports whether a request asks for a WebSocket.
func Upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// Socket is the writer of a response that goes out over a WebSocket: for clients whose proxy holds responses back until their
// end. Each write is one binary message, and all of them together are the body of the response.
//
// It is for New alone. Only SetWriteDeadline may be called while another method runs.
type Socket struct {
	w       http.ResponseWriter
	r       *http.Request
	offered []string
	gone    func()

	ws *websocket.Conn

	mu sync.Mutex
	nc net.Conn // beneath ws
}

// NewSocket returns the writer of the response to a request that Upgrades. The handshake happens in WriteHeader. offered are the
// subprotocols that the server may choose; gone is called when the client has left.
func NewSocket(w http.ResponseWriter, r *http.Request, offered []string, gone func()) *Socket {
	return &Socket{w: w, r: r, offered: offered, gone: gone}
}

// Header implements http.ResponseWriter.
func (s *Socket) Header() http.Header { return s.w.Header() }

// WriteHeader answers the handshake. If that fails, the client has its answer, and Write returns an error.
func (s *Socket) WriteHeader(int) {
	ws, err := websocket.Accept(&hijacker{s.w, s}, s.r, &websocket.AcceptOptions{
		Subprotocols:       s.offered,
		InsecureSkipVerify: true, // the gateway has checked Origin and Host against its lists
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return
	}
	s.ws = ws
	context.AfterFunc(ws.CloseRead(context.Background()), s.gone) // a client has nothing to say
}

// errHandshake means that the client has no WebSocket.
var errHandshake = errors.New("the handshake has failed")

// Write implements http.ResponseWriter.
func (s *Socket) Write(p []byte) (int, error) {
	if s.ws == nil {
		return 0, errHandshake
	}
	if err := s.ws.Write(context.Background(), websocket.MessageBinary, p); err != nil { // the connection has a deadline
		return 0, fmt.Errorf("write a message: %w", err)
	}
	return len(p), nil
}

// FlushError is called by http.ResponseController. Each message is on its way.
func (*Socket) FlushError() error { return nil }

// SetReadDeadline is called by http.ResponseController. The library reads without one.
func (*Socket) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is called by http.ResponseController.
func (s *Socket) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nc == nil {
		return nil
	}
	return s.nc.SetWriteDeadline(t)
}

// Close ends the WebSocket after the response. It waits up to 5 s for the client.
func (s *Socket) Close() {
	if s.ws == nil {
		return
	}
	_ = s.SetWriteDeadline(time.Time{})               // the library has its own
	_ = s.ws.Close(websocket.StatusNormalClosure, "") // the client may have left
}

// hijacker keeps the connection that a handshake takes over.
type hijacker struct {
	http.ResponseWriter
	s *Socket
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	h.s.nc = nc
	return nc, rw, nil
}
