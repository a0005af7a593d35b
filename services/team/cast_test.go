package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// cast plays the members of all teams: it takes the commands of the member service and
// writes the agents' logs.
type cast struct {
	r     *rig
	store *eventlog.Store

	mu     sync.Mutex
	actors map[subject.Log]*actor
	play   func(a *actor, run string, m cmd.UserMessage) error // a run; nil: reply
	heard  []cmd.Command
}

// actor is one agent.
type actor struct {
	log  subject.Log
	name string

	mu    sync.Mutex
	w     *eventlog.Writer
	ids   map[string]bool
	n     int
	runs  []string          // that have not ended
	asked map[string]string // principal that answered, by question
}

func newCast(r *rig) *cast {
	r.T.Helper()
	c := &cast{r: r, store: r.Store(), actors: map[subject.Log]*actor{}}
	r.Run(command.NewOrdered(r.Conn, r.Dir, command.OrderedConfig{
		Service: cmd.Member, Instance: id.MustName("cast"), Logger: zerolog.Nop(),
	}, c.handle), nil)
	return c
}

func (c *cast) actor(log subject.Log) *actor {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.actors[log]; a != nil {
		return a
	}
	a := &actor{log: log, ids: map[string]bool{}, asked: map[string]string{}}
	a.w = c.store.Writer(log, a.observe)
	c.actors[log] = a
	return a
}

// plays sets what agents do with messages.
func (c *cast) plays(f func(a *actor, run string, m cmd.UserMessage) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.play = f
}

// commands returns the commands of a verb that agents got.
func (c *cast) commands(verb id.Name) []cmd.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []cmd.Command
	for _, one := range c.heard {
		if one.Verb == verb {
			out = append(out, one)
		}
	}
	return out
}

func (a *actor) observe(e *eventlog.Entry) {
	a.ids[e.ID] = true
	a.n++
	switch e.Type {
	case event.MemberCreated:
		if d, err := event.As[event.MemberCreatedData](e.Event); err == nil {
			a.name = d.Name
		}
	case event.MessageReceived:
		if d, err := event.As[event.MessageReceivedData](e.Event); err == nil {
			a.runs = append(a.runs, d.RunID)
		}
	case event.RunCompleted, event.RunCancelled, event.RunFailed:
		a.runs = a.runs[1:]
	case event.InputAnswered:
		if d, err := event.As[event.InputAnsweredData](e.Event); err == nil {
			a.asked[d.InputID] = d.By
		}
	}
}

// run returns the oldest run that has not ended.
func (a *actor) run() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runs[0]
}

// put appends an event once. An empty id makes a new one.
func (a *actor) put(ctx context.Context, eventID string, data event.Data) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.putLocked(ctx, eventID, data)
}

func (a *actor) putLocked(ctx context.Context, eventID string, data event.Data) error {
	return a.w.Append(ctx, func() ([]event.Event, error) {
		if eventID == "" {
			eventID = fmt.Sprintf("e%d", a.n+1)
		}
		if a.ids[eventID] {
			return nil, nil
		}
		e, err := event.New(a.log, eventID, "cast", time.Now(), data)
		return []event.Event{e}, err
	})
}

func (c *cast) handle(ctx context.Context, m cmd.Command, _ command.Delivery) error {
	c.mu.Lock()
	c.heard = append(c.heard, m)
	c.mu.Unlock()
	a := c.actor(subject.Log{Tenant: m.Tenant, Kind: id.KindMember, Entity: m.Key})
	switch m.Verb {
	case cmd.CreateMember:
		var d event.MemberCreatedData
		return errors.Join(m.Decode(&d), a.put(ctx, "created", d))
	case cmd.SendMessage:
		return c.receive(ctx, a, m)
	case cmd.Cancel:
		return a.cancel(ctx, m)
	case cmd.Answer:
		return c.respond(ctx, a, m)
	case cmd.CloseMember:
		return errors.Join(a.cancel(ctx, m), a.put(ctx, "closed", event.MemberClosedData{Reason: "closed"}))
	}
	return nil
}

func (c *cast) receive(ctx context.Context, a *actor, m cmd.Command) error {
	var d cmd.UserMessage
	if err := m.Decode(&d); err != nil {
		return err
	}
	run := "run_" + m.ID
	err := a.put(ctx, m.ID+".received", event.MessageReceivedData{
		MessageID: m.ID, RunID: run, Content: d.Content, Principal: m.Principal, Sender: d.Sender, Attachments: d.Attachments,
	})
	if err != nil {
		return err
	}
	if err := a.put(ctx, run+".started", event.RunStartedData{RunID: run, MessageID: m.ID, Content: d.Content}); err != nil {
		return err
	}
	c.mu.Lock()
	play := c.play
	c.mu.Unlock()
	if play == nil {
		play = reply
	}
	return play(a, run, d)
}

// reply answers at once.
func reply(a *actor, run string, m cmd.UserMessage) error {
	return a.says(context.Background(), run, "you said: ", m.Content)
}

// leave does not answer by itself.
func leave(*actor, string, cmd.UserMessage) error { return nil }

// says is a whole answer.
func (a *actor) says(ctx context.Context, run string, texts ...string) error {
	err := a.put(ctx, run+".message", event.MessageStartedData{MessageID: run + ".m", RunID: run, Attempt: 1, Role: "assistant"})
	all := ""
	for i, text := range texts {
		all += text
		err = errors.Join(err, a.put(ctx, fmt.Sprintf("%s.d%d", run, i), event.MessageDeltaData{MessageID: run + ".m", RunID: run, Attempt: 1, Text: text}))
	}
	return errors.Join(err,
		a.put(ctx, run+".text", event.MessageCompletedData{MessageID: run + ".m", RunID: run, Attempt: 1, Role: "assistant", Content: all, StopReason: "end"}),
		a.put(ctx, run+".done", event.RunCompletedData{RunID: run, Attempt: 1, MessageID: run + ".m", Content: all}))
}

func (a *actor) cancel(ctx context.Context, m cmd.Command) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.runs) > 0 {
		run := a.runs[0]
		if err := a.putLocked(ctx, run+".done", event.RunCancelledData{RunID: run, Reason: "stop", By: m.Principal}); err != nil {
			return err
		}
	}
	return nil
}

// respond lets the first answer count.
func (c *cast) respond(ctx context.Context, a *actor, m cmd.Command) error {
	var d cmd.AnswerQuestion
	if err := m.Decode(&d); err != nil {
		return err
	}
	a.mu.Lock()
	by, answered := a.asked[d.InputID]
	a.mu.Unlock()
	if !answered {
		return a.put(ctx, d.InputID+".answered", event.InputAnsweredData{InputID: d.InputID, CommandID: m.ID, Decision: event.DecisionApprove, By: m.Principal, CallID: d.CallID})
	}
	gateway, connection, err := subject.ParseReplyTo(m.ReplyTo)
	if err != nil {
		return command.Permanent(err)
	}
	e, err := event.New(a.log, m.ID, "cast", time.Now(), event.CommandRefusedData{CommandID: m.ID, Code: string(fault.InputAnswered), InputID: d.InputID, AnsweredBy: by})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return c.r.Conn.NATS().Publish(subject.Direct(gateway, connection), raw)
}
