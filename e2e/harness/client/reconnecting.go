package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

const (
	// maxBackoff keeps the pauses of tests short.
	maxBackoff = 2 * time.Second
	// ping and pong notice a dead connection. A gateway answers a ping after the command before it, which may wait
	// 15 s for a leader of the bus.
	ping = 10 * time.Second
	pong = 20 * time.Second
)

// ReconnectOptions say where a Reconnecting connects, and with which frames it deals.
type ReconnectOptions struct {
	Addrs []string                     // gateways, in turn
	First int                          // index of the gateway of the first connection
	Key   string                       // an API key; empty = none
	Path  func() string                // path and query of the next connection, which name the position to resume from
	Begin func(send func(string) bool) // called on each new connection; may be nil
	Take  func(raw string)             // called for each frame, in order
	Down  func(err error)              // called at the end of each connection; may be nil
}

// Reconnecting is a client that connects again whenever its connection ends. It stands on link.Link and leaves the
// positions of frames to its owner, which checks them.
type Reconnecting struct {
	opt  ReconnectOptions
	link *link.Link[string]

	mu     sync.Mutex
	turn   int
	opened int
	ends   []string // reasons, by connection
}

// NewReconnecting returns a client that connects once Run runs.
func NewReconnecting(opt ReconnectOptions) *Reconnecting {
	r := &Reconnecting{opt: opt, turn: opt.First}
	r.link = link.New(link.Options{
		URL: r.url(), Next: r.url, Header: link.Header(opt.Key), MinBackoff: process.Poll, MaxBackoff: maxBackoff, Ping: ping, Pong: pong,
		OnUp: r.up, OnDown: r.down,
	}, link.Protocol[string]{
		Decode: func(raw []byte) (string, error) { return string(raw), nil },
		Begin: func(_ context.Context, c *link.Conn) error {
			c.Ready()
			if opt.Begin != nil {
				opt.Begin(r.Send)
			}
			return nil
		},
		Take: func(c *link.Conn, raw string) error {
			c.Ready() // the greeting may be read before Begin runs, and Take may answer it
			opt.Take(raw)
			return nil
		},
	})
	return r
}

// url returns the address of the next connection.
func (r *Reconnecting) url() string {
	path := r.opt.Path()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn++
	return "ws://" + r.opt.Addrs[(r.turn-1)%len(r.opt.Addrs)] + path
}

func (r *Reconnecting) up() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened++
}

func (r *Reconnecting) down(err error) {
	r.mu.Lock()
	r.ends = append(r.ends, fmt.Sprintf("%s: %v", time.Now().Format(time.TimeOnly), err))
	r.mu.Unlock()
	if r.opt.Down != nil {
		r.opt.Down(err)
	}
}

// Run keeps the connection until the context ends or coming back is pointless, and returns the reason.
func (r *Reconnecting) Run(ctx context.Context) error { return r.link.Run(ctx) }

// Send sends a frame if a connection is ready. The frame may be lost with the connection.
func (r *Reconnecting) Send(frame string) bool { return r.link.Tell([]byte(frame)) }

// Cut ends the connection without a close frame.
func (r *Reconnecting) Cut() { r.link.Cut() }

// Allow replaces the gateways of further connections.
func (r *Reconnecting) Allow(addrs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opt.Addrs = addrs
}

// Ends returns the reasons for which connections ended.
func (r *Reconnecting) Ends() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ends...)
}

// Returns returns the number of connections after the first.
func (r *Reconnecting) Returns() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.opened-1)
}
