package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/waggle-dev/waggle/gateway/approval"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/trail"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// accept returns the handler that opens the sockets of a route.
func (s *Server) accept(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.problem(w, fault.New(fault.NotFound))
			return
		}
		c := newConn(s, route, r)
		if s.upgrade(c, w, r) {
			s.short.Go(c.serve) // the socket outlives its request: the handler returns, which frees its request and stack
		}
	}
}

// serve opens the connection and starts the goroutine that reads it. The opening needs a large
// stack, which ends with this goroutine; the one that reads gets by with a small stack.
func (c *conn) serve() {
	if c.begun() {
		go c.listen()
		return
	}
	c.conclude()
	c.depart()
}

// begun opens the connection and reports whether to read from it.
func (c *conn) begun() bool {
	defer c.recovered()
	if err := c.open(); err != nil {
		c.failed(err)
		c.backlog.drop()
		return false
	}
	c.work()
	return true
}

// listen reads the socket until it ends. It answers heartbeats at once.
func (c *conn) listen() {
	c.listens = true
	defer c.depart()
	defer c.conclude()
	defer c.recovered()
	for {
		message, err := c.Read()
		if o, ok := errors.AsType[*ws.Oversize](err); ok {
			c.s.met.frames.Inc()
			c.s.met.received.Add(float64(o.Size))
			c.take(received{oversize: o, release: func() {}})
			continue
		}
		if err != nil {
			c.backlog.done() // the fault follows the answers to earlier messages
			c.failed(err)
			return
		}
		c.s.met.frames.Inc()
		c.s.met.received.Add(float64(len(message)))
		if !c.heartbeat(message) {
			kept, release := c.Keep(message)
			c.take(received{message: kept, release: release})
		}
	}
}

// conclude waits until the socket, which is closing, has ended, and records its end.
func (c *conn) conclude() {
	c.arrival.Yield()
	<-c.Done()
	c.backlog.done()
	c.binding.Close()
	c.s.met.closed(c.CloseCode())
	c.ended()
}

// failed ends the socket for a fault; any other error means that it has ended.
func (c *conn) failed(err error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		c.End(f)
		return
	}
	c.s.dep.Logger.Debug().Err(err).Msg("connection closed")
}

// open authenticates the client and starts the binding.
func (c *conn) open() error {
	if c.denied != nil {
		c.turnedAway(c.denied)
		return c.denied
	}
	if err := c.identify(); err != nil {
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			c.turnedAway(f)
		}
		return err
	}
	c.accepted()
	c.Limit(c.policy.Limits)
	return c.binding.Begin()
}

// identify takes the credentials of the first message, {"type":"auth",
// "token":"..."}, unless the handshake carried some.
func (c *conn) identify() error {
	if c.identified() {
		return nil
	}
	message, err := c.Read()
	if err != nil {
		return err
	}
	var m map[string]json.RawMessage // a struct would also take "TOKEN" for token
	var kind, token string
	if strictjson.Check(message) != nil || json.Unmarshal(message, &m) != nil ||
		json.Unmarshal(m["type"], &kind) != nil || kind != authMessage || json.Unmarshal(m["token"], &token) != nil {
		return fault.New(fault.Unauthenticated)
	}
	if err := c.authenticate(c.arrival.Within(c.ctx), token); err != nil {
		return c.FaultOf(err)
	}
	return nil
}

// transmit sends commands.
func (c *conn) transmit(ctx context.Context, replyTo string, cmds ...command.Command) error {
	cmds, err := c.s.ready(ctx, c.Principal(), &c.questions, cmds, c.Record)
	if err != nil {
		return err
	}
	if err := c.s.send(ctx, replyTo, cmds); err != nil {
		return err
	}
	for _, cmd := range cmds {
		c.sent(cmd)
	}
	return nil
}

// send sends all commands of a request, or none.
func (s *Server) send(ctx context.Context, replyTo string, cmds []command.Command) error {
	for i := range cmds {
		cmds[i].Source, cmds[i].ReplyTo = s.shared.Source, replyTo
	}
	return s.dep.Commands.SendAll(ctx, cmds...)
}

// ready returns the commands as the principal may send them: all of them, or none. It records answers that it refuses.
func (s *Server) ready(
	ctx context.Context, p auth.Principal, shown *stream.Questions, cmds []command.Command, record func(id.Name, audit.Record),
) ([]command.Command, error) {
	cmds = slices.Clone(cmds)
	questions := approval.Questions{Log: s.dep.Log, Streams: s.shared.Streams}
	for i := range cmds {
		err := s.mayReach(ctx, p, cmds[i])
		if err == nil {
			err = questions.Exact(ctx, shown, &cmds[i])
		}
		if err == nil {
			continue
		}
		if r, ok := trail.Refused(cmds[i], err); ok {
			record(audit.Decided, r)
		}
		return nil, err
	}
	return cmds, nil
}

// mayReach returns why the principal may not send the command.
func (s *Server) mayReach(ctx context.Context, p auth.Principal, cmd command.Command) error {
	if cmd.Tenant != p.Tenant {
		return fault.New(fault.Forbidden)
	}
	if seen, err := s.sight.SeesCommand(ctx, p, cmd); err != nil || !seen {
		if err != nil {
			return err
		}
		return fault.New(fault.SessionNotFound)
	}
	if len(cmd.Data) > binding.MaxCommand {
		return fault.Newf(fault.InvalidField, "The message is too long. Send at most %d KB of text at once.", binding.MaxCommand>>10)
	}
	return nil
}

// Command implements binding.Services.
func (c *conn) Command(ctx context.Context, replyTo string, cmds ...command.Command) error {
	if len(cmds) > 0 && !c.MayAct() {
		return fault.New(fault.Forbidden)
	}
	return c.transmit(ctx, replyTo, cmds...)
}

// Acknowledge implements binding.Services.
func (c *conn) Acknowledge(ctx context.Context, cmd command.Command) error {
	return c.transmit(ctx, "", cmd)
}
