package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Act is one thing that a client wants done.
type Act struct {
	command.Command
	Request bool // a request that its service answers at once, and not a command; it has no id
}

// Rule returns why the client may not have it done, nil if it may. It may complete the command.
type Rule func(ctx context.Context, c *Client, a *Act) error

// rules hold in every installation, in this order.
var rules = []Rule{rights, ownTenant, visible, size, exact}

// unborn are those that do not look at the log, which need not exist.
var unborn = []Rule{rights, ownTenant, size}

// Do sends commands: all of them, or none. The services get them in this order, and tell replyTo about refusals if it is not
// empty. Principal and time are filled in. The error is a fault; whether commands are stored is unknown only after BusUnavailable, and
// a repeat with the same ids is safe then.
func (c *Client) Do(ctx context.Context, replyTo string, cmds ...command.Command) error {
	ready := make([]command.Command, len(cmds))
	for i, cmd := range cmds {
		a := Act{Command: c.signed(cmd)}
		if err := c.may(ctx, &a, rules); err != nil {
			if r, ok := refused(a.Command, err); ok {
				c.Record(audit.Decided, r)
			}
			return err
		}
		ready[i] = a.Command
		ready[i].Source, ready[i].ReplyTo = c.e.Source, replyTo
	}
	if err := c.e.Commands.SendAll(ctx, ready...); err != nil {
		return err
	}
	for _, cmd := range ready {
		if r, ok := sent(cmd); ok {
			c.Record(audit.Command, r)
		}
	}
	return nil
}

// signed returns the command as one of the client.
func (c *Client) signed(cmd command.Command) command.Command {
	p := c.Principal()
	cmd.Principal, cmd.Operator = p.Subject, p.Has(auth.RoleOperator)
	if cmd.Time.IsZero() {
		cmd.Time = c.e.Clock().UTC()
	}
	return cmd
}

// MayBegin returns why the client may not have the commands done to a log that does not exist yet. It is asked before the log is made for
// them: commands that are refused make none.
func (c *Client) MayBegin(ctx context.Context, cmds ...command.Command) error {
	for _, cmd := range cmds {
		if err := c.may(ctx, &Act{Command: c.signed(cmd)}, unborn); err != nil {
			return err
		}
	}
	return nil
}

// may returns why the rules, and those of the installation, do not let the client have something done.
func (c *Client) may(ctx context.Context, a *Act, rules []Rule) error {
	for _, of := range [][]Rule{rules, c.e.Rules} {
		for _, rule := range of {
			if err := rule(ctx, c, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// Request is a question to a service, or something that it is to change at once.
type Request struct {
	Service, Verb id.Name
	In            any           // the argument of the service
	Within        time.Duration // how long its answer may take; zero = as rpc.Call waits
	Repeats       bool          // a second one does no harm: it is sent again while the service has no leader

	Changes bool            // the rules apply, and the audit log has it
	Key     id.Entity       // with Changes: of the entity that is changed, zero if that has no id yet
	Data    json.RawMessage // with Changes: the request as the client sent it, of which the audit log keeps names
}

// Ask sends a service a request, and decodes its answer into out.
func (c *Client) Ask(ctx context.Context, q Request, out any) error {
	if !q.Changes {
		return c.e.call(ctx, q, out)
	}
	a := Act{Command: c.signed(command.Command{Service: q.Service, Verb: q.Verb, Tenant: c.Principal().Tenant, Key: q.Key, Data: q.Data}), Request: true}
	err := c.may(ctx, &a, rules)
	if err == nil {
		err = c.e.call(ctx, q, out)
	}
	if r, ok := requested(a.Command, err); ok {
		c.Record(audit.Command, r)
	}
	return err
}

func (e *Edge) call(ctx context.Context, q Request, out any) error {
	switch {
	case q.Within > 0:
		return rpc.CallWithin(ctx, e.Bus, q.Within, q.Service, q.Verb, q.In, out)
	case q.Repeats:
		return rpc.Repeat(ctx, e.Bus, q.Service, q.Verb, q.In, out)
	}
	return rpc.Call(ctx, e.Bus, q.Service, q.Verb, q.In, out)
}

// encoded returns the data of a command.
func encoded(verb id.Name, data any) (json.RawMessage, error) {
	b, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode the data of %s: %w", verb, err)
	}
	return b, nil
}
