package participants

import (
	"context"
	"errors"
	"time"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// reopen changes the socket to the inbox that the client comes back to.
func (p *Participant) reopen(ctx context.Context, o asp.Order, req command.OpenClientRequest) error {
	p.mu.Lock()
	former, old := p.presence, p.inbox
	p.mu.Unlock()
	if old == nil {
		return fault.New(fault.UnknownType)
	}
	if req.ClientID == old.log.Entity.String() && req.After == nil {
		seq := old.stream.Position() // it is where it wants to be
		req.After = &seq
	}
	reply, in, after, err := p.open(ctx, req)
	if err != nil {
		return err
	}
	old.stream.Close()
	p.Flush(ctx)
	if former != nil && former.registered().ID != reply.ClientID {
		former.leave() //nolint:contextcheck // ending takes a context of its own
	}
	if err := p.answer(o, reply); err != nil {
		return err
	}
	p.show(in, after)
	return nil
}

// Flush sends the client's position in its inbox to the service. A position that it cannot
// send waits for the next call.
func (p *Participant) Flush(ctx context.Context) {
	p.mu.Lock()
	in := p.inbox
	p.mu.Unlock()
	if in == nil {
		return
	}
	in.mu.Lock()
	has, stored := in.has, in.stored
	in.mu.Unlock()
	if has <= stored {
		return
	}
	if err := p.sendAck(ctx, in.log, has); err != nil {
		p.g.Logger.Debug().Err(err).Stringer("log", in.log).Msg("acknowledgement will be retried")
		return
	}
	p.g.Metrics.Acks.Inc()
	in.mu.Lock()
	in.stored = max(in.stored, has)
	in.mu.Unlock()
}

// carryOut does what a frame asks for.
func (p *Participant) carryOut(ctx context.Context, o asp.Order) error {
	if err := p.permit(o); err != nil {
		return err
	}
	switch {
	case o.Intent != nil:
		return p.act(ctx, p.logOf(o.Task), *o.Intent)
	case o.Ask != nil && binding.RequestOf(o.Ask).Long:
		return p.askLong(o)
	case o.Ask != nil:
		return p.ask(ctx, o)
	case o.Register != nil:
		self, err := p.register(ctx, *o.Register)
		if err != nil {
			return err
		}
		return p.answer(o, self)
	case o.Forward != nil:
		return p.forward(*o.Forward)
	case o.Leave:
		p.leave() //nolint:contextcheck // ending takes a context of its own
	default:
		p.put(o.Frames)
	}
	return nil
}

// ask asks a service and answers with what it says.
func (p *Participant) ask(ctx context.Context, o asp.Order) error {
	if req, ok := o.Ask.(dialect.OpenClient); ok {
		return p.reopen(ctx, o, command.OpenClientRequest(req))
	}
	var err error
	if o.Ask, err = p.shrinkAsked(ctx, o.Ask); err != nil {
		return err
	}
	reply, err := p.inquire(ctx, o)
	if err != nil {
		return err
	}
	reply, release, err := p.whole(ctx, o.Ask, reply)
	if err != nil {
		return err
	}
	defer release()
	p.put(p.codec.Answer(p.g.Link(p.id), o, reply))
	return nil
}

// Begin implements binding.Binding.
func (p *Participant) Begin() (err error) {
	if p.id, err = p.g.Recipients.Add(p); err != nil {
		return p.c.FaultOf(err)
	}
	p.reply = p.g.Recipients.ReplyTo(p.id)
	who := p.c.Client().Principal()
	p.mu.Lock()
	p.self = command.Participant{
		Kind: p.codec.Kind(), Tenant: who.Tenant, Principal: who.Subject,
		Gateway: p.g.Name.String(), Connection: p.id.String(),
	}
	p.idle, p.pinged = p.g.Clock(), p.g.Clock()
	p.mu.Unlock()
	if p.codec.Kind() == command.ParticipantClient {
		err = p.welcomeClient()
	} else {
		p.c.Force(transport.Text(p.codec.Welcome(p.g.Link(p.id), nil)))
	}
	if err != nil {
		return p.c.FaultOf(err)
	}
	p.c.Greeted()
	p.c.TakeUp(func() {})
	return nil
}

// Handle implements binding.Binding.
func (p *Participant) Handle(ctx context.Context, message []byte) error {
	p.busy(true)
	defer p.busy(false)
	if err := p.rate.Wait(ctx); err != nil {
		return err // the gateway stops
	}
	if err := strictjson.Check(message); err != nil {
		p.refuse(asp.Order{}, err)
		return err
	}
	orders, requestID, err := p.codec.Orders(message, p.inbound())
	return p.obey(ctx, orders, requestID, err)
}

// obey carries out what a frame asks for, or tells that it has no effect.
func (p *Participant) obey(ctx context.Context, orders []asp.Order, requestID string, err error) error {
	if d, quiet := errors.AsType[asp.Dropped](err); quiet {
		if f := p.drop(err); d.Ends {
			p.c.Finish(binding.ClosePolicy, string(f.Code))
		}
		return err
	}
	if err != nil {
		p.refuse(asp.Order{RequestID: requestID}, err)
		return err
	}
	for _, o := range orders {
		if o.Placed != nil {
			p.placements.add(*o.Placed)
		}
		if err := p.carryOut(ctx, o); err != nil {
			p.fail(o, err)
			return err
		}
	}
	return nil
}

// Tick implements binding.Binding.
func (p *Participant) Tick(now time.Time) {
	cfg := p.of.cfg
	p.mu.Lock()
	idle, presence, in := p.idle, p.presence, p.inbox
	ping := !p.pinged.IsZero() && now.Sub(p.pinged) >= cfg.Ping
	if ping {
		p.pinged = now
	}
	p.mu.Unlock()
	if !idle.IsZero() && now.Sub(idle) > cfg.Dead && p.c.Silence() > cfg.Dead {
		p.c.End(fault.New(fault.PeerSilent))
		return
	}
	if ping {
		p.c.Ping(nil)
		if frame := p.codec.Ping(p.g.Link(p.id)); frame != nil {
			p.c.Send(transport.Text(frame))
		}
	}
	if in != nil {
		in.probe()
	}
	if presence != nil {
		if p.work.tidy(now) {
			p.loaded()
		}
		presence.tick()
	}
}

// Close implements binding.Binding.
func (p *Participant) Close() {
	p.mail.end()
	p.cancel()
	p.wg.Wait()
	if p.id.IsZero() {
		return
	}
	p.g.Recipients.Remove(p.id)
	p.mu.Lock()
	presence, in, g := p.presence, p.inbox, p.run
	p.mu.Unlock()
	if in != nil {
		in.stream.Close()
	}
	if g != nil {
		g.stream.Close()
	}
	p.loseCalls()
	if presence != nil {
		presence.startGrace()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastAcks)
	defer cancel()
	p.Flush(ctx)
}
