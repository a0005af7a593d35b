package load

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/chaos/verify"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// team is a client of a team of three, one of which is a team of one. It talks to each
// member in turn.
type team struct {
	l      *Load
	tenant string
	who    string
	conn   *client.Reconnecting

	mu      sync.Mutex
	id      string
	last    uint64
	texts   map[string]int // answers of members, by text
	ended   map[string]int
	asked   []string
	open    map[string]string // frames that the server may not have seen
	refused map[string]int    // times that the server had no bus, by code
	all     map[string]bool   // texts that were sent
	seen    []verify.Seen
	gaps    []string
	news    chan struct{}
}

var targets = []string{"Lead", "Helper", "inner/Deep"}

func newTeam(l *Load, tenant string, i int) *team {
	c := &team{
		l: l, tenant: tenant, who: l.nameOf(tenant, "team", i), texts: map[string]int{}, ended: map[string]int{},
		open: map[string]string{}, all: map[string]bool{}, refused: map[string]int{}, news: make(chan struct{}, 1),
	}
	return c
}

// create makes the team.
func (c *team) create(ctx context.Context) error {
	raw, err := json.Marshal(map[string]any{
		"name": c.who, "coordinator": "Lead", "members": []any{
			map[string]any{"name": "Lead", "role": "leads"},
			map[string]any{"name": "Helper", "role": "helps"},
			map[string]any{"name": "inner", "role": "is deep", "team": map[string]any{
				"name": "inner", "coordinator": "Deep", "members": []any{map[string]any{"name": "Deep", "role": "is deep"}},
			}},
		},
	})
	if err != nil {
		return err
	}
	for turn := 0; ; turn++ {
		addrs := c.l.addrs()
		text, err := site.Request(ctx, http.MethodPost, "http://"+addrs[turn%len(addrs)]+"/api/v1/teams", site.KeyOf(c.tenant), string(raw))
		var v struct {
			TeamID string `json:"team_id"`
		}
		if err == nil && json.Unmarshal([]byte(text), &v) == nil && v.TeamID != "" {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.id = v.TeamID
			return nil
		}
		if err := process.Rest(ctx, process.Poll); err != nil {
			return fmt.Errorf("found a team: %w: %s", err, text)
		}
	}
}

func (c *team) path() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("/ws/agent-team/%s?after=%d", c.id, c.last)
}

// again sends what the server may not have seen.
func (c *team) again(send func(string) bool) {
	c.mu.Lock()
	var frames []string
	for _, f := range c.open {
		frames = append(frames, f)
	}
	c.mu.Unlock()
	for _, f := range frames {
		send(f)
	}
}

type teamFrame struct {
	Type    string `json:"type"`
	Payload struct {
		Content  string `json:"content"`
		Code     string `json:"code"`
		Envelope struct {
			Sequence uint64 `json:"sequence"`
		} `json:"team_stream_event_envelope"`
	} `json:"payload"`
}

func (c *team) take(raw string) {
	var f teamFrame
	_ = json.Unmarshal([]byte(raw), &f) // the check of the frames reports a missing one
	at := f.Payload.Envelope.Sequence
	c.mu.Lock()
	defer c.mu.Unlock()
	if at > 0 {
		if at <= c.last {
			c.gaps = append(c.gaps, fmt.Sprintf("%s: %d after %d", c.who, at, c.last))
		}
		c.last = at
		c.seen = append(c.seen, verify.Seen{Seq: at, Raw: raw})
	}
	if f.Type == "ERROR" && f.Payload.Code == string(fault.BusUnavailable) {
		c.refused[f.Payload.Code]++
		time.AfterFunc(refusalPause, func() { c.again(c.conn.Send) })
	}
	if f.Type == "ASSISTANT_COMPLETE" {
		for text := range c.all {
			if strings.Contains(f.Payload.Content, text) {
				c.texts[text]++
			}
		}
	}
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *team) work(ctx context.Context, stop <-chan struct{}) error {
	if err := c.create(ctx); err != nil {
		return err
	}
	lineCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.l.t.Cleanup(cancel)
	c.conn = client.NewReconnecting(client.ReconnectOptions{
		Addrs: c.l.addrs(), Key: site.KeyOf(c.tenant), Path: c.path, Take: c.take, Begin: c.again,
	})
	go func() { _ = c.conn.Run(lineCtx) }() // a client that gives up gets no answer, which until reports
	for n := 0; !stopped(stop); n++ {
		began, text := time.Now(), fmt.Sprintf("%s asks %d.", c.who, n)
		messageID := uuid.NewString()
		frame, err := json.Marshal(map[string]any{"type": "SEND_MESSAGE", "payload": map[string]any{
			"content": text, "target_member_path": strings.Split(targets[n%len(targets)], "/"), "message_id": messageID,
		}})
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.asked = append(c.asked, messageID)
		c.open[text], c.all[text] = string(frame), true
		c.mu.Unlock()
		c.conn.Send(string(frame))
		if err := c.until(ctx, text); err != nil {
			return err
		}
		c.l.ended(c.who+": "+text, began)
	}
	return nil
}

func (c *team) until(ctx context.Context, text string) error {
	for {
		c.mu.Lock()
		n, team, last := c.texts[text], c.id, c.last
		if n > 0 {
			c.ended[text] = n
			delete(c.open, text)
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		select {
		case <-c.news:
		case <-ctx.Done():
			return fmt.Errorf("team %s at %d: %q has no answer: %w", team, last, text, ctx.Err())
		}
	}
}

func (c *team) report() verify.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	for text := range c.ended {
		c.ended[text] = c.texts[text]
	}
	id, last := c.id, c.last
	return verify.Report{
		Who: c.who, Tenant: c.tenant, Kind: "team", Logs: []string{c.tenant + ".team." + id}, Seen: append([]verify.Seen(nil), c.seen...),
		Gaps: c.gaps, Asked: c.asked, Ended: c.ended, Returns: c.conn.Returns(), Why: c.conn.Ends(),
		Refused: maps.Clone(c.refused), Loose: looseTeam,
		Again: func(ctx context.Context, addr string) ([]verify.Seen, error) {
			return replay(ctx, addr, "/ws/agent-team/"+id+"?after=0", site.KeyOf(c.tenant), last, func(raw string) uint64 {
				var f teamFrame
				_ = json.Unmarshal([]byte(raw), &f) // others have no position
				return f.Payload.Envelope.Sequence
			})
		},
	}
}

// looseTeam tells pieces of texts.
func looseTeam(raw string) (of, text string, loose bool) {
	var f struct {
		Type    string `json:"type"`
		Payload struct {
			ID    string `json:"id"`
			Delta string `json:"delta"`
		} `json:"payload"`
	}
	if json.Unmarshal([]byte(raw), &f) != nil || f.Type != "SEGMENT_CONTENT" {
		return "", "", false
	}
	return f.Payload.ID, f.Payload.Delta, true
}
