// Package teamtools offers the team's tools to its members: messages to colleagues, the task board,
// and the member's to-do list.
//
// The team service carries the calls out. A [Client] sends them there and waits for the results;
// [Client.Toolbox] joins the team's tools with those of the tool providers that the member may use,
// so that a job treats all tools alike. The package keeps no state of a team.
//
// A call is a command to the team, which executes it once by the call's id and answers with a direct message. So a worker
// may ask again, and a lost answer neither loses nor doubles a message to a colleague.
package teamtools

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/tools"
)

const (
	// defaultMaxWait is how long an answer is waited for before the team is asked
	// again: longer than a partition of commands takes to be handed over (3 s).
	defaultMaxWait = 5 * time.Second
	// linkBytes of randomness tell the clients of one instance apart.
	linkBytes = 12

	source = "waggle/worker"
)

// Config configures a client.
type Config struct {
	Conn     *bus.Conn
	Commands *command.Sender
	Instance id.Name
	NewID    func() string // unique ids of commands
	Now      func() time.Time
	MaxWait  time.Duration // before the team is asked again; 0 = 5 s
	Logger   zerolog.Logger
}

// Client asks teams to do what their members want. It is safe for concurrent use
// between Start and Stop.
type Client struct {
	cfg  Config
	link id.Name // in the place of a connection
	sub  *nats.Subscription

	mu      sync.Mutex
	waiting map[question]map[chan event.TeamActedData]bool
}

// question identifies an answer. Another team than the asked one may answer, because a nested team
// forwards messages to colleagues outside.
type question struct {
	tenant id.Tenant
	call   string
}

// New returns a client that is not started.
func New(cfg Config) (*Client, error) {
	if cfg.MaxWait <= 0 {
		cfg.MaxWait = defaultMaxWait
	}
	link, err := id.ParseName("team-" + strings.ToLower(rand.Text()[:linkBytes]))
	if err != nil {
		return nil, fmt.Errorf("team tools: %w", err)
	}
	return &Client{cfg: cfg, link: link, waiting: map[question]map[chan event.TeamActedData]bool{}}, nil
}

// Start listens for answers.
func (c *Client) Start() error {
	sub, err := c.cfg.Conn.NATS().Subscribe(subject.Direct(c.cfg.Instance, c.link), c.hear)
	if err != nil {
		return fmt.Errorf("team tools: listen for answers: %w", err)
	}
	c.sub = sub
	return nil
}

// Stop ends the subscription. Open calls wait until their contexts end.
func (c *Client) Stop() error {
	if c.sub == nil || !c.sub.IsValid() {
		return nil
	}
	if err := c.sub.Unsubscribe(); err != nil {
		return fmt.Errorf("team tools: %w", err)
	}
	return nil
}

// hear delivers an answer to all waiting calls.
func (c *Client) hear(m *nats.Msg) {
	var e event.Event
	if err := json.Unmarshal(m.Data, &e); err != nil || e.Type != event.TeamActed {
		c.cfg.Logger.Warn().Err(err).Str("subject", m.Subject).Msg("direct message dropped: not decodable")
		return
	}
	log, err := subject.ParseName(e.Subject)
	if err != nil || log.Kind != id.KindTeam {
		c.cfg.Logger.Warn().Err(err).Msg("team reply dropped: not from a team")
		return
	}
	d, err := event.As[event.TeamActedData](e)
	if err != nil {
		c.cfg.Logger.Warn().Err(err).Str("log", e.Subject).Msg("team reply dropped: not decodable")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.waiting[question{log.Tenant, d.CallID}] {
		select {
		case ch <- d:
		default: // it has one already, and all answers to a call are the same
		}
	}
}

// expect returns where the answers to a question arrive, until forget is called.
func (c *Client) expect(q question) (answers chan event.TeamActedData, forget func()) {
	answers = make(chan event.TeamActedData, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[q] == nil {
		c.waiting[q] = map[chan event.TeamActedData]bool{}
	}
	c.waiting[q][answers] = true
	return answers, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting[q], answers)
		if len(c.waiting[q]) == 0 {
			delete(c.waiting, q)
		}
	}
}

// act lets the team do a call, and asks again until it gets the result or ctx ends. The team does a
// call once, so that repeats only return its result. act waits for a team service that is away.
func (c *Client) act(ctx context.Context, m Member, call tools.Call) (tools.Result, error) {
	answers, forget := c.expect(question{m.Tenant, call.ID})
	defer forget()
	for {
		if err := c.ask(ctx, m, call); err != nil && ctx.Err() == nil {
			if f, ok := errors.AsType[*fault.Fault](err); !ok || !f.Retryable() {
				return tools.Result{}, err
			}
			c.cfg.Logger.Warn().Err(err).Str("call", call.ID).Msg("team request will be retried")
		}
		again := time.NewTimer(c.cfg.MaxWait)
		select {
		case d := <-answers:
			again.Stop()
			return result(d)
		case <-ctx.Done():
			again.Stop()
			return tools.Result{}, fault.New(fault.ToolCancelled).Wrap(context.Cause(ctx))
		case <-again.C:
		}
	}
}

// ask sends one command. Its id is new each time, because the bus drops a repeat without an answer.
func (c *Client) ask(ctx context.Context, m Member, call tools.Call) error {
	raw, err := json.Marshal(cmd.TeamAct{
		Member: m.Name, AgentID: m.AgentID, RunID: m.RunID, CallID: call.ID, Tool: call.Tool, Arguments: object(call.Arguments), Tainted: call.Tainted,
	})
	if err != nil {
		return fmt.Errorf("encode a call of %s: %w", call.Tool, err)
	}
	return c.cfg.Commands.Send(ctx, cmd.Command{
		ID: "act." + c.cfg.NewID(), Service: cmd.Team, Verb: cmd.ActTeam, Tenant: m.Tenant, Key: m.Team,
		Source: source, Time: c.cfg.Now(), Data: raw, ReplyTo: subject.ReplyTo(c.cfg.Instance, c.link),
	})
}

// result is an answer as a tool's.
func result(d event.TeamActedData) (tools.Result, error) {
	switch {
	case d.Code != "" && d.Message != "":
		return tools.Result{}, fault.Newf(fault.Code(d.Code), "%s", d.Message)
	case d.Code != "":
		return tools.Result{}, fault.New(fault.Code(d.Code))
	}
	return tools.Result{Text: d.Result, Bytes: len(d.Result), Untrusted: d.Untrusted}, nil
}
