package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// beat is how often a caller hears that its call runs; a quarter of the silence
	// that makes it give up, so that three may be lost.
	beat = 2 * time.Second
	// apiVersion is the version of the service's protocol, shown by `nats micro`.
	apiVersion = "1.0.0"
	// waitersPerCall bounds the repeats of calls that are answered side by side.
	waitersPerCall = 4
)

// desk answers requests from the bus.
type desk struct {
	s     *Service
	nc    *nats.Conn
	micro micro.Service
	subs  []*nats.Subscription // cancel and attach, which work until the end
	beat  time.Duration

	slots   chan struct{}
	answers sync.WaitGroup
	mu      sync.Mutex
	closed  bool // nothing is added to answers any more
}

// openDesk begins to answer.
func openDesk(ctx context.Context, s *Service, conn *bus.Conn) (*desk, error) {
	nc := conn.NATS()
	d := &desk{s: s, nc: nc, beat: s.beat, slots: make(chan struct{}, waitersPerCall*s.cfg.MaxCalls)}
	var err error
	for subj, handle := range map[string]nats.MsgHandler{cancelSubject: d.cancel, attachSubject: d.attach} {
		sub, err := nc.Subscribe(subj, handle)
		if err != nil {
			d.close()
			return nil, fmt.Errorf("listen on the bus: %w", err)
		}
		d.subs = append(d.subs, sub)
	}
	d.micro, err = micro.AddService(nc, micro.Config{
		Name: ServiceName.String(), Version: apiVersion, QueueGroup: ServiceName.String(),
		Description: "Runs tools of MCP servers and services",
	})
	if err == nil {
		err = errors.Join(
			d.micro.AddEndpoint("list", micro.HandlerFunc(d.list), micro.WithEndpointSubject(listSubject)),
			d.micro.AddEndpoint("servers", micro.HandlerFunc(d.servers), micro.WithEndpointSubject(seekSubject)),
			d.micro.AddEndpoint("call", micro.HandlerFunc(d.call), micro.WithEndpointSubject(callSubject)),
			conn.Flush(ctx), // The server knows of the subscriptions when the service says that it runs.
		)
	}
	if err != nil {
		d.refuse()
		d.close()
		return nil, fmt.Errorf("offer the service on the bus: %w", err)
	}
	return d, nil
}

// refuse takes no more requests; those that have arrived are answered.
func (d *desk) refuse() {
	if d.micro == nil {
		return
	}
	if err := d.micro.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		d.s.log.Debug().Err(err).Msg("leaving the bus")
	}
}

// close ends what refuse has left, when every answer is out.
func (d *desk) close() {
	for _, sub := range d.subs {
		_ = sub.Unsubscribe() // Fails if the connection is closed, which does it as well.
	}
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.answers.Wait()
}

// list answers one page of tools.
func (d *desk) list(req micro.Request) {
	d.answer(req, func(ctx context.Context, in listRequest) (reply, error) {
		room := int(d.nc.MaxPayload()) - envelope
		if in.Kind == "" && in.Server == "" {
			all, err := d.s.List(ctx, in.Tenant)
			out := reply{}
			out.Tools, out.More = page(all, func(t Tool) string { return t.Name }, in.After, room)
			return out, err
		}
		server, all, err := d.s.ToolsOf(ctx, in.Tenant, in.Kind, in.Server)
		if err != nil {
			return reply{}, err
		}
		head, err := json.Marshal(server)
		out := reply{Server: &server}
		out.Tools, out.More = page(all, func(t Tool) string { return t.Name }, in.After, room-len(head))
		return out, err
	})
}

// servers answers one page of servers.
func (d *desk) servers(req micro.Request) {
	d.answer(req, func(ctx context.Context, in listRequest) (reply, error) {
		all, err := d.s.Servers(ctx, in.Tenant, in.Kind)
		out := reply{}
		out.Servers, out.More = page(all, Server.order, in.After, int(d.nc.MaxPayload())-envelope)
		return out, err
	})
}

func (d *desk) answer(req micro.Request, say func(context.Context, listRequest) (reply, error)) {
	var in listRequest
	if err := json.Unmarshal(req.Data(), &in); err != nil {
		d.send(req.Reply(), faultReply(fault.New(fault.BadJSON)))
		return
	}
	d.when(req, func() {
		out, err := say(context.Background(), in)
		if err != nil {
			out = faultReply(fault.From(err, ""))
		}
		d.send(req.Reply(), out)
	})
}

// when calls do as soon as this process has seen of the directory what the request's
// sender has. Requests after one that has to wait do not wait for it.
func (d *desk) when(req micro.Request, do func()) {
	ctx, seen := directory.Extract(context.Background(), req.Headers())
	w := d.s.swarm
	if w == nil || w.dir.Revision() >= seen {
		do()
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return // the caller asks another instance
	}
	d.answers.Go(func() {
		if err := w.dir.Reach(ctx, seen); err != nil {
			d.send(req.Reply(), faultReply(fault.New(fault.ToolsDown).Wrap(err)))
			return
		}
		do()
	})
}

// page returns what comes after a place in the order, as much as fits and at least
// one, and whether there is more.
func page[T any](all []T, order func(T) string, after string, room int) (some []T, more bool) {
	for _, t := range all {
		if order(t) <= after {
			continue
		}
		b, err := json.Marshal(t)
		if err != nil || len(b)+1 > room && len(some) > 0 {
			return some, true
		}
		room -= len(b) + 1
		some = append(some, t)
	}
	return some, false
}

// call starts a call and leaves its answer to a goroutine.
func (d *desk) call(req micro.Request) {
	var in Call
	if err := json.Unmarshal(req.Data(), &in); err != nil {
		d.send(req.Reply(), faultReply(fault.New(fault.BadJSON)))
		return
	}
	d.when(req, func() {
		ctx := telemetry.Extract(context.Background(), req.Headers().Get(headerTrace))
		r, e, err := d.s.begin(ctx, in, req.Headers().Get(headerNotify) != "")
		if err != nil {
			d.send(req.Reply(), faultReply(fault.From(err, "")))
			return
		}
		d.follow(r, req.Reply(), e)
	})
}

// attach answers a caller that has heard nothing for a while, if its call is known here.
func (d *desk) attach(m *nats.Msg) {
	if r := d.find(m); r != nil && m.Reply != "" {
		d.follow(r, m.Reply, ear{})
	}
}

// cancel stops a call, if it is known here. Its callers get the outcome.
func (d *desk) cancel(m *nats.Msg) {
	if r := d.find(m); r != nil {
		r.cancel(errCancelled)
	}
}

func (d *desk) find(m *nats.Msg) *run {
	var in callRef
	if json.Unmarshal(m.Data, &in) != nil {
		return nil
	}
	return d.s.calls.find(in.key())
}

// follow tells a caller that its call runs, and what e hears, until it can tell the
// outcome.
func (d *desk) follow(r *run, to string, e ear) {
	if e.stop == nil {
		e.stop = func() {}
	}
	if !r.addReply(to) {
		e.stop()
		d.publish(busy(to))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	full := false
	select {
	case d.slots <- struct{}{}:
	default:
		full = true
	}
	if full || d.closed {
		e.stop()
		r.dropReply(to)
	}
	if full {
		d.send(to, faultReply(fault.New(fault.Overloaded)))
	}
	if full || d.closed {
		return
	}
	d.answers.Go(func() {
		defer func() { <-d.slots }()
		defer r.dropReply(to)
		defer e.stop()
		d.tell(r, to, e)
	})
}

// tell sends signs of life and notifications until the run is done, and then its
// outcome.
func (d *desk) tell(r *run, to string, e ear) {
	d.publish(busy(to))
	tick := time.NewTicker(d.beat)
	defer tick.Stop()
	note := func(n Notification) { d.note(to, n) }
	for {
		select {
		case <-tick.C:
			d.publish(busy(to))
		case n := <-e.notes:
			note(n)
		case <-r.done:
			empty(e.notes, note)
			if r.err != nil {
				d.send(to, faultReply(r.err))
				return
			}
			d.send(to, reply{Result: &r.result})
			return
		}
	}
}

// note sends a notification.
func (d *desk) note(to string, n Notification) {
	b, err := json.Marshal(n)
	if err != nil {
		d.s.log.Error().Err(err).Msg("a notification cannot be encoded")
		return
	}
	m := nats.NewMsg(to)
	m.Header.Set(headerState, stateTold)
	m.Data = b
	d.publish(m)
}

func (d *desk) send(to string, r reply) {
	m, err := message(to, r, int(d.nc.MaxPayload()))
	if err != nil {
		d.s.log.Error().Err(err).Msg("a reply cannot be encoded")
		return
	}
	d.publish(m)
}

// publish sends a message. A caller that misses it asks again.
func (d *desk) publish(m *nats.Msg) {
	if m.Subject == "" {
		return // Sent without a reply subject: nobody wants to know.
	}
	if err := d.nc.PublishMsg(m); err != nil {
		d.s.log.Debug().Err(err).Msg("a reply was not sent")
	}
}
