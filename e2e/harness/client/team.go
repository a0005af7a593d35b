package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// TeamFrame is one frame of the protocol of agent teams, in either form.
type TeamFrame struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
	Source  string          `json:"event_source_type"` // of an envelope
	Raw     string          `json:"-"`

	Sequence uint64 `json:"-"` // its position; 0 = it has none
}

// Text returns a member of the payload that is a string.
func (f TeamFrame) Text(name string) string {
	var s string
	_ = json.Unmarshal(f.Member(name), &s) // other values have no text
	return s
}

// Member returns a member of the payload.
func (f TeamFrame) Member(name string) json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(f.Payload, &m) // other values have no members
	return m[name]
}

// Team watches a team, one of its members or any other run on a socket of the team
// protocol, and comes back after the last frame that it got whenever the connection
// breaks, if it is asked to. It is safe for concurrent use.
type Team struct {
	t     testing.TB
	opt   TeamOptions
	conn  *Reconnecting
	ended chan struct{}
	stop  context.CancelFunc

	mu         sync.Mutex
	frames     []TeamFrame // those with a position, in the order in which they came
	unnumbered []TeamFrame // the others
	broken     int         // connections lost
	faults     []string    // positions that did not grow
	news       chan struct{}
	last       error
	counts     proof.TeamCounts
}

// TeamOptions say what is watched.
type TeamOptions struct {
	Addr     string
	Path     string   // agent-team/<id>, agent/<id>, agent-team?watch=...
	Others   []string // further gateways to come back to, in turn
	Key      string
	After    *uint64
	Envelope bool
	Original bool // ask for nothing that the original does not know: no additions, no position
	Once     bool // do not come back
}

// WatchTeam opens the socket and reads until the test ends.
func WatchTeam(t testing.TB, opt TeamOptions) *Team {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &Team{t: t, opt: opt, ended: make(chan struct{}), stop: cancel, news: make(chan struct{}), counts: proof.TeamCounts{}}
	c.conn = NewReconnecting(ReconnectOptions{
		Addrs: append([]string{opt.Addr}, opt.Others...), Key: opt.Key, Path: c.path, Begin: c.begin, Take: c.take, Down: c.down,
	})
	go func() {
		defer close(c.ended)
		err := c.conn.Run(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.last == nil {
			c.last = err
		}
		c.tell()
	}()
	t.Cleanup(c.Close)
	return c
}

// Close ends the watcher.
func (c *Team) Close() {
	c.stop()
	<-c.ended
}

// begin wakes senders that wait for a connection.
func (c *Team) begin(func(string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell()
}

// down notes the end of a connection.
func (c *Team) down(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = err
	c.broken++
	c.tell()
	if c.opt.Once || websocket.CloseStatus(err) == 4004 {
		c.stop()
	}
}

func (c *Team) path() string {
	u, err := url.Parse("/ws/" + c.opt.Path)
	require.NoError(c.t, err)
	if c.opt.Original {
		return u.String()
	}
	q := u.Query()
	q.Set("additions", "true")
	if c.opt.Envelope {
		q.Set("format", "envelope")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.frames); n > 0 {
		q.Set("after", fmt.Sprint(c.frames[n-1].Sequence))
	} else if c.opt.After != nil {
		q.Set("after", fmt.Sprint(*c.opt.After))
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func (c *Team) take(text string) {
	raw, f := []byte(text), TeamFrame{Raw: text}
	var at struct {
		Sequence uint64 `json:"sequence"`
		Payload  struct {
			Envelope struct {
				Sequence uint64 `json:"sequence"`
			} `json:"team_stream_event_envelope"`
		} `json:"payload"`
	}
	_ = json.Unmarshal(raw, &at) // frames without a position
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Received(c.t, raw)
	if err := json.Unmarshal(raw, &f); err != nil {
		c.faults = append(c.faults, f.Raw)
	}
	f.Sequence = max(at.Sequence, at.Payload.Envelope.Sequence)
	switch n := len(c.frames); {
	case f.Sequence == 0:
		c.unnumbered = append(c.unnumbered, f)
	case n > 0 && f.Sequence <= c.frames[n-1].Sequence:
		c.faults = append(c.faults, fmt.Sprintf("%d after %d: %s", f.Sequence, c.frames[n-1].Sequence, f.Raw))
	default:
		c.frames = append(c.frames, f)
	}
	c.tell()
}

// tell wakes the waiters. The caller holds the lock.
func (c *Team) tell() {
	close(c.news)
	c.news = make(chan struct{})
}

// Say sends a frame, which has to fit its schema, and returns it; a nil payload sends
// none. It waits for a connection.
func (c *Team) Say(kind string, payload any) string {
	c.t.Helper()
	m := map[string]any{"type": kind}
	if payload != nil {
		m["payload"] = payload
	}
	raw, err := json.Marshal(m)
	require.NoError(c.t, err)
	proof.TeamSent(c.t, kind, raw)
	c.Raw(string(raw))
	return string(raw)
}

// Raw sends a text, whatever it is. It waits for a connection.
func (c *Team) Raw(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	for {
		c.mu.Lock()
		news := c.news
		c.mu.Unlock()
		if c.conn.Send(text) {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			require.FailNow(c.t, "no connection", "%v", c.Error())
		}
	}
}

// Until waits for a frame that ok accepts, among those with a position from the
// first on, and returns it.
func (c *Team) Until(what string, ok func(TeamFrame) bool) TeamFrame {
	c.t.Helper()
	return c.until(what, 0, func() []TeamFrame { return c.frames }, ok)
}

// UntilAfter is Until for frames after a position.
func (c *Team) UntilAfter(seq uint64, what string, ok func(TeamFrame) bool) TeamFrame {
	c.t.Helper()
	return c.until(what, 0, func() []TeamFrame { return c.frames }, func(f TeamFrame) bool { return f.Sequence > seq && ok(f) })
}

// Told waits for a frame without a position that ok accepts: a greeting, a snapshot or
// an answer.
func (c *Team) Told(what string, ok func(TeamFrame) bool) TeamFrame {
	c.t.Helper()
	return c.until(what, 0, func() []TeamFrame { return c.unnumbered }, ok)
}

func (c *Team) until(what string, from int, list func() []TeamFrame, ok func(TeamFrame) bool) TeamFrame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	for {
		c.mu.Lock()
		all, news := list(), c.news
		c.mu.Unlock()
		for ; from < len(all); from++ {
			if ok(all[from]) {
				return all[from]
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			require.FailNow(c.t, "it never came: "+what, "%v\n%s", c.Error(), c.story())
		}
	}
}

// Frames returns the frames with a position so far.
func (c *Team) Frames() []TeamFrame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]TeamFrame(nil), c.frames...)
}

// Unnumbered returns the frames without a position so far.
func (c *Team) Unnumbered() []TeamFrame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]TeamFrame(nil), c.unnumbered...)
}

// Seq returns the position of the last frame.
func (c *Team) Seq() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.frames); n > 0 {
		return c.frames[n-1].Sequence
	}
	return 0
}

// Losses returns how many connections broke, and what came twice or out of order.
func (c *Team) Losses() (broken int, faults []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken, append([]string(nil), c.faults...)
}

// Error returns what ended the last connection.
func (c *Team) Error() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// story is what came, a line a frame, from the last hundred.
func (c *Team) story() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, f := range append(c.unnumbered, c.frames[max(0, len(c.frames)-100):]...) {
		fmt.Fprintln(&b, f.Raw)
	}
	return b.String()
}

// Route returns the path of the member, or of the nested team, that a frame is about;
// empty is the watched team or agent itself.
func (f TeamFrame) Route() string {
	if f.Source == "" {
		return f.Text("member_route_key")
	}
	var route []string
	for at := []byte(f.Raw); ; {
		var e struct {
			Data struct {
				AgentName string          `json:"agent_name"`
				Node      string          `json:"sub_team_node_name"`
				Event     json.RawMessage `json:"sub_team_event"`
			} `json:"data"`
			Source string `json:"event_source_type"`
		}
		_ = json.Unmarshal(at, &e) // the watcher has checked it
		switch e.Source {
		case team.SourceSubTeam:
			route, at = append(route, e.Data.Node), e.Data.Event
			continue
		case team.SourceAgent:
			route = append(route, e.Data.AgentName)
		}
		return strings.Join(route, "/")
	}
}
