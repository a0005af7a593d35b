package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/chaos/verify"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

const (
	agentsPerTenant = 2
	taskTime        = 120 * time.Millisecond // of an agent
	// answer is how long a client waits for the answer to a request after it has come
	// back before it takes the request to be lost with its connection. An accepted request
	// is in the log and has come again by then.
	answer = 8 * time.Second
)

type swarmFrame struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Request string `json:"requestId"`
	Seq     uint64 `json:"seq"`
	Content struct {
		Client string `json:"clientId"`
		Token  string `json:"resumeToken"`
		Task   string `json:"taskId"`
		Status string `json:"status"`
		Code   string `json:"code"`
	} `json:"content"`
}

func swarmJSON(frameID, kind string, content any) string {
	raw, err := json.Marshal(map[string]any{"id": frameID, "type": kind, "content": content})
	if err != nil {
		panic(err) // maps of texts have a JSON form
	}
	return string(raw)
}

// worker is the name that the agents of a tenant share.
func (l *Load) worker(tenant string) string { return l.nameOf(tenant, "worker", 0) }

// swarmClient gives tasks to the agents, three at a time.
type swarmClient struct {
	l      *Load
	tenant string
	who    string
	conn   *client.Reconnecting

	mu      sync.Mutex
	id      string
	token   string
	last    uint64
	opened  time.Time
	tasks   map[string]string // request to accepted task
	refused map[string]string // request to code
	ended   map[string]int    // by task
	asked   []string          // accepted tasks
	lost    int
	seen    []verify.Seen
	gaps    []string
	news    chan struct{}
}

const atATime = 3

func newSwarmClient(ctx context.Context, l *Load, tenant string, i int) *swarmClient {
	c := &swarmClient{
		l: l, tenant: tenant, who: l.nameOf(tenant, "swarm", i), tasks: map[string]string{}, refused: map[string]string{},
		ended: map[string]int{}, news: make(chan struct{}, 1),
	}
	c.conn = client.NewReconnecting(client.ReconnectOptions{Addrs: l.addrs(), First: i, Key: site.KeyOf(tenant), Path: c.path, Take: c.take})
	go func() { _ = c.conn.Run(ctx) }() // a client that gives up gets no answer, which settle reports
	return c
}

func (c *swarmClient) path() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id == "" {
		return "/ws/asp/client"
	}
	return "/ws/asp/client?" + url.Values{"clientId": {c.id}, "resumeToken": {c.token}, "after": {strconv.FormatUint(c.last, 10)}}.Encode()
}

func (c *swarmClient) take(raw string) {
	var f swarmFrame
	_ = json.Unmarshal([]byte(raw), &f) // the check of the frames reports a missing one
	if f.Type == "ping" {
		c.conn.Send(`{"type":"pong"}`)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case f.Type == "orchestrator.client.welcome":
		c.id, c.opened = f.Content.Client, time.Now()
		if f.Content.Token != "" {
			c.token = f.Content.Token
			process.Secret("a resume token", c.token)
		}
	case f.Seq > 0:
		if f.Seq <= c.last {
			c.gaps = append(c.gaps, fmt.Sprintf("%s: %d after %d", c.who, f.Seq, c.last))
		}
		c.last = f.Seq
		c.seen = append(c.seen, verify.Seen{Seq: f.Seq, Raw: raw})
	}
	switch f.Type {
	case "client.agent.task.create.response":
		c.tasks[f.Request] = f.Content.Task
		c.asked = append(c.asked, f.Content.Task)
	case "client.agent.task.result":
		if f.Seq > 0 { // without, it comes once more for the SDK
			c.ended[f.Content.Task]++
		}
	case "error":
		if f.Request != "" {
			c.refused[f.Request] = f.Content.Code
		}
	}
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *swarmClient) work(ctx context.Context, stop <-chan struct{}) error {
	open := map[string]time.Time{} // requests by when they were sent
	for n := 0; ; n++ {
		for len(open) >= atATime || stopped(stop) && len(open) > 0 {
			if err := c.settle(ctx, open); err != nil {
				return err
			}
		}
		if stopped(stop) {
			return nil
		}
		request := fmt.Sprintf("%s/%d", c.who, n)
		frame := swarmJSON(request, "client.agent.task.create.request", map[string]any{
			"agentName": c.l.worker(c.tenant), "taskData": map[string]string{"for": request}, "queueTimeout": 60_000,
		})
		for !c.ready() || !c.conn.Send(frame) {
			if err := c.wait(ctx); err != nil {
				return err
			}
		}
		open[request] = time.Now()
	}
}

func (c *swarmClient) ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id != ""
}

// wait waits for news, or a moment.
func (c *swarmClient) wait(ctx context.Context) error {
	t := time.NewTimer(process.Poll)
	defer t.Stop()
	select {
	case <-c.news:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// settle waits until a request is over: its task has ended, it was refused, or it was
// lost with its connection before it was accepted.
func (c *swarmClient) settle(ctx context.Context, open map[string]time.Time) error {
	before := len(open)
	for len(open) == before {
		c.mu.Lock()
		for request, sent := range open {
			task, accepted := c.tasks[request]
			_, refused := c.refused[request]
			switch {
			case accepted && c.ended[task] > 0:
				delete(open, request)
				c.l.ended(c.id+" with "+task, sent)
			case accepted:
			case refused, c.opened.After(sent) && time.Since(c.opened) > answer:
				delete(open, request)
				c.lost++
			}
		}
		c.mu.Unlock()
		if len(open) == before {
			if err := c.wait(ctx); err != nil {
				return fmt.Errorf("client %s at %d: open requests %v: %w", c.id, c.last, open, err)
			}
		}
	}
	return nil
}

func (c *swarmClient) report() verify.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := url.Values{"clientId": {c.id}, "resumeToken": {c.token}, "after": {"0"}}
	last := c.last
	refusals := map[string]int{}
	for _, code := range c.refused {
		refusals[code]++
	}
	logs := []string{c.tenant + ".inbox." + c.id}
	for _, task := range c.tasks {
		logs = append(logs, c.tenant+".task."+task)
	}
	return verify.Report{
		Who: c.who, Tenant: c.tenant, Kind: "ASP", Logs: logs, Seen: append([]verify.Seen(nil), c.seen...), Gaps: c.gaps,
		Asked: c.asked, Ended: c.ended, Unknown: c.lost, Returns: c.conn.Returns(), Why: c.conn.Ends(), Refused: refusals,
		Loose: func(string) (string, string, bool) { return "", "", false },
		Again: func(ctx context.Context, addr string) ([]verify.Seen, error) {
			return replay(ctx, addr, "/ws/asp/client?"+q.Encode(), site.KeyOf(c.tenant), last, func(raw string) uint64 {
				var f swarmFrame
				_ = json.Unmarshal([]byte(raw), &f) // others have no position
				return f.Seq
			})
		},
	}
}
