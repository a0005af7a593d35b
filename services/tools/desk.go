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
func openDesk(s *Service, nc *nats.Conn) (*desk, error) {
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
		Name: serviceName.String(), Version: apiVersion, QueueGroup: serviceName.String(),
		Description: "Runs tools of MCP servers",
	})
	if err == nil {
		err = errors.Join(
			d.micro.AddEndpoint("list", micro.HandlerFunc(d.list), micro.WithEndpointSubject(listSubject)),
			d.micro.AddEndpoint("call", micro.HandlerFunc(d.call), micro.WithEndpointSubject(callSubject)),
			nc.Flush(), // The server knows of the subscriptions when the service says that it runs.
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
	var in listRequest
	if err := json.Unmarshal(req.Data(), &in); err != nil {
		d.send(req.Reply(), faultReply(fault.New(fault.BadJSON)))
		return
	}
	all, err := d.s.List(context.Background(), in.Tenant)
	if err != nil {
		d.send(req.Reply(), faultReply(fault.From(err, "")))
		return
	}
	d.send(req.Reply(), page(all, in.After, int(d.nc.MaxPayload())-envelope))
}

// page returns the tools after a name, as many as fit and at least one.
func page(all []Tool, after string, room int) reply {
	var out reply
	for _, t := range all {
		if t.Name <= after {
			continue
		}
		b, err := json.Marshal(t)
		if err != nil || len(b)+1 > room && len(out.Tools) > 0 {
			out.More = true
			break
		}
		room -= len(b) + 1
		out.Tools = append(out.Tools, t)
	}
	return out
}

// call starts a call and leaves its answer to a goroutine.
func (d *desk) call(req micro.Request) {
	var in Call
	if err := json.Unmarshal(req.Data(), &in); err != nil {
		d.send(req.Reply(), faultReply(fault.New(fault.BadJSON)))
		return
	}
	ctx := telemetry.Extract(context.Background(), req.Headers().Get(headerTrace))
	r, err := d.s.begin(ctx, in)
	if err != nil {
		d.send(req.Reply(), faultReply(fault.From(err, "")))
		return
	}
	d.follow(r, req.Reply())
}

// attach answers a caller that has heard nothing for a while, if its call is known here.
func (d *desk) attach(m *nats.Msg) {
	if r := d.find(m); r != nil && m.Reply != "" {
		d.follow(r, m.Reply)
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

// follow tells a caller that its call runs until it can tell the outcome.
func (d *desk) follow(r *run, to string) {
	if !r.addReply(to) {
		d.publish(busy(to))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.slots <- struct{}{}:
	default:
		r.dropReply(to)
		d.send(to, faultReply(fault.New(fault.Overloaded)))
		return
	}
	if d.closed {
		return
	}
	d.answers.Go(func() {
		defer func() { <-d.slots }()
		defer r.dropReply(to)
		d.tell(r, to)
	})
}

// tell sends signs of life until the run is done, and then its outcome.
func (d *desk) tell(r *run, to string) {
	d.publish(busy(to))
	tick := time.NewTicker(d.beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.publish(busy(to))
		case <-r.done:
			if r.err != nil {
				d.send(to, faultReply(r.err))
				return
			}
			d.send(to, reply{Result: &r.result})
			return
		}
	}
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
