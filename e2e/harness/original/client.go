package original

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// reconnectPause is how long the client of the original waits before it connects again.
const reconnectPause = time.Second

// Client is the client of the original on real sockets: it comes back a second after its
// socket has ended, and says nothing about where it stands.
type Client struct {
	t      testing.TB
	url    string
	mu     sync.Mutex
	client *View
	cut    func(raw string) bool
	cuts   int
	errs   []error
}

// Connect connects the client, which knows the members by name, to the team until the test ends.
func Connect(t testing.TB, addr, team string, members ...string) *Client {
	t.Helper()
	v := &Client{t: t, url: "ws://" + addr + "/ws/agent-team/" + team, client: NewView(members...)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.stay(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return v
}

func (v *Client) stay(ctx context.Context) {
	for ctx.Err() == nil {
		v.read(ctx)
		select {
		case <-time.After(reconnectPause):
		case <-ctx.Done():
		}
	}
}

// read shows one connection to its end.
func (v *Client) read(ctx context.Context) {
	conn, _, err := websocket.Dial(ctx, v.url, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(8 << 20)
	for {
		_, raw, err := conn.Read(ctx)
		if err != nil || !v.take(raw) {
			return
		}
	}
}

// take shows a message, unless the connection breaks with it.
func (v *Client) take(raw []byte) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cut != nil && v.cut(string(raw)) {
		v.cut = nil
		v.cuts++
		return false
	}
	if err := v.client.Receive(raw); err != nil {
		v.errs = append(v.errs, err)
	}
	return true
}

// CutAt breaks the connection at the next message that is meant, which is lost.
func (v *Client) CutAt(meant func(raw string) bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cut = meant
}

// Sees returns what a person sees, and how often the connection was broken.
func (v *Client) Sees() (text string, cuts int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.client.Sees(), v.cuts
}

// Trouble returns what the client had no place for.
func (v *Client) Trouble() (list []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, err := range v.errs {
		list = append(list, err.Error())
	}
	return append(list, v.client.Dropped...)
}
