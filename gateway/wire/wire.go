// Package wire is the gateway's WebSocket sockets.
package wire

import (
	"errors"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Frame is a complete, unmasked text frame of a server: header and payload.
type Frame []byte

// Text returns the frame of one text message.
func Text(payload []byte) Frame { return payload }

// Options of a Hub.
type Options struct {
	Shards         int
	QueueBytes     int
	ReadLimit      int64
	PingInterval   time.Duration
	PongTimeout    time.Duration
	MessageTimeout time.Duration
	WriteStall     time.Duration
	CloseTimeout   time.Duration
}

// Stats are counters of a hub.
type Stats struct {
	Sockets, QueuedBytes         int64
	Writes, Frames, BytesWritten uint64
}

// Handler is told what happens to a socket besides its messages.
type Handler interface {
	Low()
	Tick(now time.Time)
	Control() bool
	Ended(f *fault.Fault)
}

// Hub owns sockets.
type Hub struct{}

// Socket is one connection.
type Socket struct{}

var errSkeleton = errors.New("wire: not there yet")

func NewHub(Options) *Hub { return &Hub{} }
func (h *Hub) Close()     {}
func (h *Hub) Accept(w http.ResponseWriter, r *http.Request, subprotocols []string) (*Socket, error) {
	return nil, errSkeleton
}
func (h *Hub) Stats() Stats                      { return Stats{} }
func (s *Socket) Bind(h Handler)                 {}
func (s *Socket) Read() ([]byte, error)          { return nil, errSkeleton }
func (s *Socket) Send(frames ...Frame) int       { return 0 }
func (s *Socket) Force(f Frame) bool             { return false }
func (s *Socket) Finish(code int, reason string) {}
func (s *Socket) Abort()                         {}
func (s *Socket) Done() <-chan struct{}          { return nil }
func (s *Socket) Queued() int                    { return 0 }
func (s *Socket) CloseCode() int                 { return 0 }
func (s *Socket) Subprotocol() string            { return "" }
