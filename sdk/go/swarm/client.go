package swarm

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

// clientPath is where clients connect.
const clientPath = "/ws/asp/client"

// maxResults bounds the remembered ids of results: more than the server sends within the 15 ms
// after which it repeats one.
const maxResults = 256

// replayMaxWait bounds the wait, after a reconnect, for an answer that the missed events contain:
// these arrive at once.
const replayMaxWait = 10 * time.Second

// ClientOptions describe a client and its callbacks. All but Options is optional.
type ClientOptions struct {
	Options
	Name         string   // shown to other clients
	Type         string   // such as web or cli
	Version      string   // of the program
	Capabilities []string // of the program

	// Resume makes it the client that it was in another process: see Client.Resume.
	Resume *Resume
	// OnEvent is called with each event, one at a time, in order, on a goroutine of its own. It may
	// call the client. While it runs, up to Buffer messages wait. The client requests later ones
	// again if the server can repeat them, which holds for all about tasks. Others are lost.
	OnEvent func(Event)
	Buffer  int // DefaultBuffer if 0
}

// Resume holds the data by which a client resumes as itself.
type Resume struct {
	ClientID string `json:"clientId"`
	Token    string `json:"resumeToken"` // a secret
	After    uint64 `json:"after"`       // position of the last event that the client got
}

// Client gives tasks to agents. Its methods are safe for concurrent use.
type Client struct {
	opt   ClientOptions
	link  *caller
	queue *queue // nil without OnEvent
	wg    sync.WaitGroup

	welcomed chan struct{} // on the connection that is being made

	mu      sync.Mutex
	resume  Resume // After: what has been queued for OnEvent
	met     bool   // the server has greeted once
	tasks   map[string]*Handle
	errID   string   // of the last task.error: see take
	results []string // ids of the last results: see again
}

var _ role = (*Client)(nil)

// Dial connects to the server and returns once it has greeted. ctx is for that alone.
// From then on the client is connected until Close, or until the server says that
// coming back is pointless. Unlike then, a first attempt that fails is an error.
func Dial(ctx context.Context, opt ClientOptions) (*Client, error) {
	base, err := opt.withDefaults(clientPath)
	if err != nil {
		return nil, err
	}
	c := &Client{opt: opt, tasks: map[string]*Handle{}, welcomed: make(chan struct{}, 1)}
	if opt.Resume != nil {
		c.resume = *opt.Resume
	}
	c.opt.Options = base
	if opt.OnEvent != nil {
		c.queue = newQueue(opt.Buffer)
	}
	base.hasty = true
	c.link = newCaller(context.WithoutCancel(ctx), c.observed(base), c)
	if c.queue != nil {
		c.wg.Go(func() { c.queue.deliver(c.show, func() { c.link.Cut() }) })
	}
	c.wg.Go(func() { c.over(c.link.run()) })
	if _, err := c.link.up(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// observed returns the options with the events of connections.
func (c *Client) observed(o Options) Options {
	connected, lost := o.OnConnect, o.OnDisconnect
	o.OnConnect = func() { c.offer(item{name: EventConnected}); connected() }
	o.OnDisconnect = func(err error) { c.offer(item{name: EventDisconnected, err: err}); lost(err) }
	return o
}

// Close ends the connection and all waiting calls, and returns after OnEvent has returned: OnEvent
// must not call it. The client's tasks continue; see Resume.
func (c *Client) Close() error {
	c.link.bye()
	if c.queue != nil {
		c.queue.close()
	}
	c.wg.Wait()
	return nil
}

// Done is closed when the client is closed, or its server says that coming back is
// pointless: Err says why.
func (c *Client) Done() <-chan struct{} { return c.link.Done() }

// Err returns why the client has ended, nil if it has not.
func (c *Client) Err() error { return c.link.failure() }

// ID returns the client's id.
func (c *Client) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resume.ClientID
}

// Resume returns the data by which another process resumes as this client, after the last event
// from which OnEvent has returned. It is the zero value if the server does not offer that.
func (c *Client) Resume() Resume {
	c.mu.Lock()
	r := c.resume
	c.mu.Unlock()
	if r.Token == "" {
		return Resume{}
	}
	if c.queue != nil {
		r.After = min(r.After, c.queue.shown(r.After))
	}
	return r
}

// query implements role.
func (c *Client) query() url.Values {
	select {
	case <-c.welcomed: // of a connection that did not last
	default:
	}
	if c.queue != nil {
		c.queue.begin()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resume.Token == "" {
		return nil
	}
	return url.Values{
		"clientId": {c.resume.ClientID}, "resumeToken": {c.resume.Token}, "after": {strconv.FormatUint(c.resume.After, 10)},
	}
}

// greet implements role.
func (c *Client) greet(ctx context.Context, s *link.Conn) error {
	select {
	case <-c.welcomed:
	case <-s.Done():
		return link.ErrLost
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.opt.Name == "" {
		return nil
	}
	_, err := c.link.register(ctx, s, request{
		kind: asp.ClientRegister, want: []string{asp.RegisterResponse},
		content: map[string]any{
			"clientName": c.opt.Name, "clientType": c.opt.Type, "version": c.opt.Version, "capabilities": append([]string{}, c.opt.Capabilities...),
		},
	})
	return err
}

// welcome notes the client's id before the client handles later frames. A client with a new id gets
// no more events of its former tasks.
func (c *Client) welcome(w Welcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	another := c.met && w.ClientID != c.resume.ClientID
	c.met = true
	if c.resume.ClientID != w.ClientID {
		c.resume = Resume{ClientID: w.ClientID}
	}
	if w.ResumeToken != "" {
		c.resume.Token = w.ResumeToken
	}
	if another {
		for id, h := range c.tasks {
			h.settle(TaskResult{TaskID: id}, ErrInterrupted)
			delete(c.tasks, id)
		}
	}
}

// over settles what waits when the link has ended.
func (c *Client) over(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, h := range c.tasks {
		h.settle(TaskResult{TaskID: id}, err)
		delete(c.tasks, id)
	}
}

// take implements role.
func (c *Client) take(m Message) {
	switch m.Type {
	case asp.ClientWelcome:
		if w, err := as[Welcome](m); err == nil && w.ClientID != "" {
			c.welcome(w)
			select {
			case c.welcomed <- struct{}{}:
			default: // it has greeted before
			}
		}
	case asp.TaskResult:
		if c.again(m) {
			return
		}
		c.finish(m)
	}
	c.offer(item{message: &m})
}

// again reports whether a result with the same id has come before: the server repeats results
// for clients that need it.
func (c *Client) again(m Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Seq == 0 && m.RequestID == "" && slices.Contains(c.results, m.ID) {
		return true
	}
	c.results = append(c.results, m.ID)
	c.results = c.results[max(0, len(c.results)-maxResults):]
	return false
}

// offer queues an item for OnEvent and notes the position. It drops repeats, which follow a broken
// connection.
func (c *Client) offer(i item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := i.message
	if m != nil {
		switch {
		case m.Seq > 0 && m.Seq <= c.resume.After, m.Type == asp.TaskError && m.ID == c.errID:
			return
		case m.Type == asp.TaskError:
			c.errID = m.ID // the frame of the same event that has the seq follows
		}
	}
	if c.queue != nil && !c.queue.offer(i) {
		return
	}
	if m != nil && m.Seq > 0 {
		c.resume.After = m.Seq
	}
}
