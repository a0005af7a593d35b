package load

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/chaos/verify"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// chat is a client of the ORBIT dialect: it asks one question after the other, every
// second one of which makes the model pay.
type chat struct {
	l      *Load
	Tenant string
	who    string
	conn   *client.Reconnecting

	mu      sync.Mutex
	session string
	last    uint64
	asking  map[string]string // frames by text that the server may not have seen
	runs    map[string]string // execution to text
	ended   map[string]int    // by text
	asked   []string
	seen    []verify.Seen
	gaps    []string
	news    chan struct{}
	over    chan struct{}  // closed when it has done its work
	refused map[string]int // times that the server had no bus, by code
}

type orbitFrame struct {
	Type      string `json:"type"`
	Seq       uint64 `json:"seq"`
	Execution string `json:"execution_id"`
	Data      struct {
		Message string `json:"message"`
		Session string `json:"session_id"`
		Code    string `json:"code"`
	} `json:"data"`
}

// orbitOf decodes a frame. Other texts get no type.
func orbitOf(raw string) (f orbitFrame) {
	_ = json.Unmarshal([]byte(raw), &f) // the check of the frames reports a missing one
	return f
}

func newChat(ctx context.Context, l *Load, tenant string, i int) *chat {
	c := &chat{
		l: l, Tenant: tenant, who: l.nameOf(tenant, "chat", i), asking: map[string]string{}, runs: map[string]string{},
		ended: map[string]int{}, refused: map[string]int{}, news: make(chan struct{}, 1), over: make(chan struct{}),
	}
	c.conn = client.NewReconnecting(client.ReconnectOptions{Addrs: l.addrs(), First: i, Key: site.KeyOf(tenant), Path: c.path, Take: c.take})
	go func() { _ = c.conn.Run(ctx) }() // a client that gives up gets no answer, which ask reports
	return c
}

// Name returns the session, empty before it exists.
func (c *chat) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// position returns the last event that it has seen.
func (c *chat) position() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *chat) path() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == "" {
		return "/ws?deltas=true"
	}
	return fmt.Sprintf("/ws?deltas=true&session=%s&after=%d", c.session, c.last)
}

func (c *chat) take(raw string) {
	f := orbitOf(raw)
	c.mu.Lock()
	switch {
	case f.Type == "agent_ready":
		c.session = f.Data.Session
		defer c.again()
	case f.Seq > 0:
		c.note(f, raw)
	case f.Type == "error" && f.Data.Code == string(fault.BusUnavailable):
		c.refused[f.Data.Code]++
		time.AfterFunc(refusalPause, c.again)
	}
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// refusalPause is how long a client waits before it sends a message again that the server has refused for now.
const refusalPause = time.Second

// again sends the messages that the server may not have taken.
func (c *chat) again() {
	c.mu.Lock()
	frames := slices.Collect(maps.Values(c.asking))
	c.mu.Unlock()
	for _, frame := range frames {
		c.conn.Send(frame)
	}
}

// note takes a frame of the log. c.mu is held.
func (c *chat) note(f orbitFrame, raw string) {
	if f.Seq <= c.last {
		c.gaps = append(c.gaps, fmt.Sprintf("%s: %d after %d", c.who, f.Seq, c.last))
	}
	c.last = f.Seq
	c.seen = append(c.seen, verify.Seen{Seq: f.Seq, Raw: raw})
	switch f.Type {
	case "user_input":
		delete(c.asking, f.Data.Message)
		c.runs[f.Execution] = f.Data.Message
	case "agent_response", "error":
		if text, ok := c.runs[f.Execution]; ok {
			c.ended[text]++
		}
	}
}

func (c *chat) work(ctx context.Context, stop <-chan struct{}) error {
	defer close(c.over)
	for !stopped(stop) {
		began := time.Now()
		if err := c.ask(ctx); err != nil {
			return err
		}
		c.l.ended(c.who+" in "+c.Name(), began)
	}
	return nil
}

// ask asks the next question and waits for the end of its run.
func (c *chat) ask(ctx context.Context) error {
	c.mu.Lock()
	n := len(c.asked)
	text := fmt.Sprintf("%s asks %d", c.who, n)
	if n%2 == 1 {
		text = fmt.Sprintf("pay for %s/%d", c.who, n)
	}
	messageID := uuid.NewString()
	c.asked = append(c.asked, messageID)
	there := c.session != ""
	frame, err := json.Marshal(map[string]string{"type": "user_message", "content": text, "id": messageID})
	c.asking[text] = string(frame)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if there {
		c.conn.Send(string(frame))
	}
	return c.until(ctx, text)
}

// until waits for the end of the run of a text.
func (c *chat) until(ctx context.Context, text string) error {
	for {
		c.mu.Lock()
		n, session, last := c.ended[text], c.session, c.last
		c.mu.Unlock()
		if n > 0 {
			return nil
		}
		select {
		case <-c.news:
		case <-ctx.Done():
			return fmt.Errorf("session %s at %d: %q has no answer: %w", session, last, text, ctx.Err())
		}
	}
}

func (c *chat) report() verify.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	session, last := c.session, c.last
	return verify.Report{
		Who: c.who, Tenant: c.Tenant, Kind: "ORBIT", Logs: []string{c.Tenant + ".session." + session},
		Seen: append([]verify.Seen(nil), c.seen...), Gaps: c.gaps, Asked: c.asked, Ended: c.ended, Returns: c.conn.Returns(), Why: c.conn.Ends(),
		Refused: maps.Clone(c.refused), Loose: looseChat,
		Again: func(ctx context.Context, addr string) ([]verify.Seen, error) {
			return replay(ctx, addr, fmt.Sprintf("/ws?deltas=true&session=%s&after=0", session), site.KeyOf(c.Tenant), last, func(raw string) uint64 {
				return orbitOf(raw).Seq
			})
		},
	}
}

// looseChat tells pieces of texts.
func looseChat(raw string) (of, text string, loose bool) {
	var f struct {
		Type string `json:"type"`
		Data struct {
			ID   string `json:"message_id"`
			Text string `json:"text"`
		} `json:"data"`
	}
	if json.Unmarshal([]byte(raw), &f) != nil || f.Type != "agent_delta" {
		return "", "", false
	}
	return f.Data.ID, f.Data.Text, true
}

// replay connects for the first time and returns the frames up to a position.
func replay(ctx context.Context, addr, path, key string, last uint64, seq func(raw string) uint64) ([]verify.Seen, error) {
	for {
		out, err := replayOnce(ctx, addr, path, key, last, seq)
		if err == nil || ctx.Err() != nil {
			return out, err
		}
		if err := process.Rest(ctx, process.Poll); err != nil {
			return nil, err
		}
	}
}

func replayOnce(ctx context.Context, addr, path, key string, last uint64, seq func(raw string) uint64) ([]verify.Seen, error) {
	conn, err := dialSocket(ctx, addr, path, key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.CloseNow() }()
	var out []verify.Seen
	for {
		if n := len(out); last == 0 || n > 0 && out[n-1].Seq >= last {
			return out, nil
		}
		_, raw, err := conn.Read(ctx)
		if err != nil {
			return out, fmt.Errorf("replay of %s after %d frames: %w", path, len(out), err)
		}
		if at := seq(string(raw)); at > 0 {
			out = append(out, verify.Seen{Seq: at, Raw: string(raw)})
		}
	}
}
