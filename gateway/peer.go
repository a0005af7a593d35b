package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var (
	_ manner    = (*peer)(nil)
	_ ws.Prober = (*conn)(nil)
)

// peer is the manner of a socket on which one participant of a swarm speaks: a
// client, which is shown its inbox, an agent or a service. What its frames ask for is
// done in their order, but for what takes as long as a tool runs.
type peer struct {
	c     *conn
	codec dialect.Peers
	id    id.Name // of the connection
	reply string  // where asides to it go
	rate  *rate.Limiter
	work  *work
	mail  mail

	placements placements

	asks      chan struct{} // a slot for each long request
	answering sync.Mutex    // held by the one that is being answered

	ctx    context.Context //nolint:containedctx // the life of the socket, for long requests
	cancel context.CancelFunc
	wg     sync.WaitGroup // long requests

	mu     sync.Mutex
	room   chan struct{} // closed when the queue has room again
	self   command.Peer  // as registered; Online is false before
	place  *place        // nil before
	inbox  *inbox        // of a client
	glance *glance       // the run that a client watches; nil = none
	turn   bool          // which of the two gets room first
	idle   time.Time     // since when no frame is being handled; zero = one is
	pinged time.Time     // when the last ping was sent
}

func newPeer(c *conn, codec dialect.Peers) *peer {
	cfg := c.s.cfg.Peers
	// Peers are not told that they are too fast but read more slowly: an error that they
	// do not expect ends programs that use the SDKs.
	c.messages = rate.NewLimiter(rate.Inf, 0)
	p := &peer{
		c: c, codec: codec, rate: rate.NewLimiter(rate.Limit(cfg.Rate), cfg.Burst),
		asks: make(chan struct{}, cfg.Asks), work: newWork(cfg.Calls), room: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(c.ctx)
	return p
}

// begin implements manner.
func (p *peer) begin() (err error) {
	if p.id, err = p.c.s.meet(p); err != nil {
		return p.c.faultOf(err)
	}
	p.widen()
	p.reply = subject.ReplyTo(p.c.s.name, p.id)
	who := p.c.who()
	p.mu.Lock()
	p.self = command.Peer{
		Kind: p.codec.Kind(), Tenant: who.Tenant, Principal: who.Subject,
		Gateway: p.c.s.name.String(), Connection: p.id.String(),
	}
	p.idle, p.pinged = p.c.s.dep.Clock(), p.c.s.dep.Clock()
	p.mu.Unlock()
	if p.codec.Kind() == command.PeerClient {
		err = p.welcomeClient()
	} else {
		p.c.sock.Force(transport.Text(p.codec.Welcome(p.at(), nil)))
	}
	if err != nil {
		return p.c.faultOf(err)
	}
	p.c.greeted()
	p.c.takeUp(func() {})
	return nil
}

// at returns what frames may say of the socket.
func (p *peer) at() dialect.Link {
	now := p.c.s.dep.Clock()
	return dialect.Link{ConnectionID: p.id.String(), Now: now, Uptime: now.Sub(p.c.s.born)}
}

// settle implements manner. A peer's frames are taken up at once: who is not there to
// answer them is said for each.
func (p *peer) settle() {}

// handle implements manner.
func (p *peer) handle(ctx context.Context, message []byte) error {
	p.busy(true)
	defer p.busy(false)
	if err := p.rate.Wait(ctx); err != nil {
		return err // the gateway stops
	}
	if err := strictjson.Check(message); err != nil {
		p.refuse("", err)
		return err
	}
	orders, requestID, err := p.codec.Orders(message, p.inbound())
	return p.obey(ctx, orders, requestID, err)
}

// inbound returns what the codec may know of the socket.
func (p *peer) inbound() dialect.PeerInbound {
	return dialect.PeerInbound{
		Peer: p.who(), OnlyTask: p.work.only(), OnlyCall: p.work.onlyCall(), LastTask: p.work.latest(),
		Placed: p.placements.find, Watched: p.watched(), NewID: newID, Now: p.c.s.dep.Clock(),
	}
}

// obey carries out what a frame asks for, or tells that it has no effect.
func (p *peer) obey(ctx context.Context, orders []dialect.Order, requestID string, err error) error {
	if d, quiet := errors.AsType[dialect.Dropped](err); quiet {
		if f := p.drop(err); d.Ends {
			p.c.sock.Finish(closePolicy, string(f.Code))
		}
		return err
	}
	if err != nil {
		p.refuse(requestID, err)
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

// fail says that an order could not be carried out: to its sender, if that waits for an
// answer. An end of a task or a call, or a place, that our side has lost for now ends the
// socket: the peer comes back, and what it had is decided then.
func (p *peer) fail(o dialect.Order, err error) {
	if !o.Quiet {
		p.refuse(o.RequestID, err)
		return
	}
	f := p.drop(err)
	end := o.Command != nil && o.Command.Verb == command.FinishTask || o.Forward != nil && o.Forward.Final
	switch {
	case f.Retryable() && (end || o.Register != nil):
		p.c.end(f)
	case o.Register != nil:
		p.c.sock.Finish(closePolicy, string(f.Code))
	}
}

// drop counts a frame that has no effect, of which its sender is not told.
func (p *peer) drop(err error) *fault.Fault {
	f := p.c.faultOf(err)
	p.c.s.met.dropped.WithLabelValues(string(f.Code)).Inc()
	p.c.s.dep.Logger.Debug().Str("code", string(f.Code)).Str("peer", p.who().ID).Str("connection", p.id.String()).Msg("drop frame of peer")
	return f
}

func (p *peer) busy(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle = p.c.s.dep.Clock(); on {
		p.idle = time.Time{}
	}
}

// who returns the peer as registered.
func (p *peer) who() command.Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.self
}

// refuse tells the peer that a frame of its has no effect.
func (p *peer) refuse(requestID string, err error) {
	f := p.c.faultOf(err)
	p.c.s.met.faults.WithLabelValues(string(f.Code)).Inc()
	p.c.sock.Force(transport.Text(p.codec.Refuse(p.at(), requestID, f)))
}

// put sends frames that the peer has asked for, however large, and waits until the
// queue has room for them.
func (p *peer) put(payloads [][]byte) {
	frames := make([]*transport.Message, 0, len(payloads))
	for _, b := range payloads {
		frames = append(frames, transport.Text(b))
	}
	for {
		p.mu.Lock()
		room := p.room
		p.mu.Unlock()
		if frames = frames[p.c.sock.Send(frames...):]; len(frames) == 0 {
			return
		}
		select {
		case <-room:
		case <-p.c.sock.Done():
			return
		}
	}
}

// low implements manner.
func (p *peer) low() {
	p.mu.Lock()
	close(p.room)
	p.room = make(chan struct{})
	in, g := p.inbox, p.glance
	p.turn = !p.turn
	turn := p.turn
	p.mu.Unlock()
	if g != nil && turn {
		g.stream.Resume()
	}
	if in != nil {
		in.stream.Resume()
	}
	if g != nil && !turn {
		g.stream.Resume()
	}
}

// tick implements manner.
func (p *peer) tick(now time.Time) {
	cfg := p.c.s.cfg.Peers
	p.mu.Lock()
	idle, place, in := p.idle, p.place, p.inbox
	ping := !p.pinged.IsZero() && now.Sub(p.pinged) >= cfg.Ping
	if ping {
		p.pinged = now
	}
	p.mu.Unlock()
	if !idle.IsZero() && now.Sub(idle) > cfg.Dead && p.c.sock.Silence() > cfg.Dead {
		p.c.end(fault.New(fault.PeerSilent))
		return
	}
	if ping {
		p.c.sock.Ping(nil)
		if frame := p.codec.Ping(p.at()); frame != nil {
			p.c.sock.Send(transport.Text(frame))
		}
	}
	if in != nil {
		in.probe()
	}
	if place != nil {
		if p.work.tidy(now) {
			p.loaded()
		}
		place.tick()
	}
}

// close implements manner.
func (p *peer) close() {
	p.mail.end()
	p.cancel()
	p.wg.Wait()
	if p.id.IsZero() {
		return
	}
	p.c.s.part(p.id)
	p.mu.Lock()
	place, in, g := p.place, p.inbox, p.glance
	p.mu.Unlock()
	if in != nil {
		in.stream.Close()
	}
	if g != nil {
		g.stream.Close()
	}
	p.loseCalls()
	if place != nil {
		place.linger()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastAcks)
	defer cancel()
	p.flushAcks(ctx)
}

// Pong implements ws.Prober.
func (c *conn) Pong(payload []byte) {
	p, ok := c.manner.(*peer)
	if !ok {
		return
	}
	p.mu.Lock()
	in := p.inbox
	p.mu.Unlock()
	if in != nil {
		in.ponged(payload)
	}
}

// register takes the peer's place in the directory, or changes what it says there,
// and returns the peer as it is listed.
func (p *peer) register(ctx context.Context, want command.Peer) (command.Peer, error) {
	p.mu.Lock()
	self, place := p.self, p.place
	p.mu.Unlock()
	if self.Kind == command.PeerClient {
		want.ID = self.ID // the service has given it
	}
	switch {
	case want.ID == "":
		return self, fault.Newf(fault.InvalidField, "Say who registers.").At("id")
	case self.Online && want.ID != self.ID:
		return self, fault.Newf(fault.InvalidField, "This connection is registered with another id. Open another connection for another peer.").At("id")
	}
	want.Kind, want.Tenant, want.Principal, want.Gateway, want.Connection = self.Kind, self.Tenant, self.Principal, self.Gateway, self.Connection
	want.Online, want.Since, want.Load, want.Incarnation = true, self.Since, p.work.load(), self.Incarnation
	if want.Status == "" {
		want.Status = command.StatusActive
	}
	want.Capabilities, want.Tools = slices.Clone(want.Capabilities), slices.Clone(want.Tools)
	if place == nil || !place.held() {
		return p.settleDown(ctx, want)
	}
	if err := place.change(func(listed *command.Peer) {
		want.Since = listed.Since
		*listed = want
	}); err != nil {
		return self, err
	}
	p.become(place)
	return place.who(), place.confirm(ctx)
}

// settleDown takes a new place.
func (p *peer) settleDown(ctx context.Context, want command.Peer) (command.Peer, error) {
	if want.Kind == command.PeerAgent {
		want.Incarnation = p.c.s.incarnation(want)
	}
	place, err := p.c.s.take(ctx, want, p.id)
	if err != nil {
		return p.who(), err
	}
	p.become(place)
	return place.who(), nil
}

func (p *peer) become(at *place) {
	self := at.who()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.self, p.place = self, at
}

// leave gives up the peer's place: it does not come back, and its calls end at once. Its
// socket stays.
func (p *peer) leave() {
	p.mu.Lock()
	place := p.place
	p.place, p.self.Online = nil, false
	p.mu.Unlock()
	p.loseCalls()
	if place != nil {
		place.leave()
	}
}

// loaded tells the directory how much the peer has to do.
func (p *peer) loaded() {
	p.mu.Lock()
	place := p.place
	p.mu.Unlock()
	if place == nil {
		return
	}
	if err := place.change(func(listed *command.Peer) { listed.Load = p.work.load() }); err != nil {
		p.c.s.dep.Logger.Warn().Err(err).Msg("fail to publish load of peer")
	}
}

// loseCalls tells the callers of a service whose socket has ended that no results come.
func (p *peer) loseCalls() {
	f := fault.New(fault.ServiceLost)
	for callID, inbox := range p.work.end() {
		p.tellCaller(inbox, command.CallNews{
			CallID: callID, ServiceID: p.who().ID, Final: true, Code: string(f.Code), Error: f.Public(),
		})
	}
}

func (p *peer) tellCaller(inbox string, news command.CallNews) {
	err := p.publish(inbox, news)
	if errors.Is(err, nats.ErrMaxPayload) && news.Final {
		f := fault.Newf(fault.MessageTooBig, "The result is too large: it has %d bytes. Ask for less at once.", len(news.Result))
		err = p.publish(inbox, command.CallNews{
			CallID: news.CallID, ServiceID: news.ServiceID, Final: true, Code: string(f.Code), Error: f.Public(),
		})
	}
	if err != nil {
		p.c.s.dep.Logger.Warn().Err(err).Str("call", news.CallID).Msg("fail to tell caller about call")
	}
}

// publish sends news as they are: what a service says is not made longer by escapes
// that only pages need.
func (p *peer) publish(inbox string, news command.CallNews) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(news); err != nil {
		return fmt.Errorf("encode news of a call: %w", err)
	}
	return p.c.s.dep.Conn.NATS().Publish(inbox, bytes.TrimSpace(b.Bytes()))
}
