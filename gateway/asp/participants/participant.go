package participants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// lastAcks bounds the time for which a connection that has ended stays for its
// acknowledgement: without it the client is shown events again.
const lastAcks = 3 * time.Second

var (
	_ binding.Binding = (*Participant)(nil)
	_ edge.Recipient  = (*Participant)(nil)
)

// Participant is the client of one connection: a client of the swarm, which is shown its
// inbox, an agent or a service. Its frames are handled in order, except for requests that
// take as long as a tool runs.
type Participant struct {
	of     *Swarm
	g      *binding.Gateway
	c      binding.Connection
	target *binding.Target // that a client watches; nil = none
	codec  *asp.Codec
	id     id.Name // of the connection
	reply  string  // subject of direct messages
	rate   *rate.Limiter
	work   *work
	mail   mail

	placements placements

	asks      chan struct{} // a slot for each long request
	answering sync.Mutex    // held by the one that is being answered

	ctx    context.Context //nolint:containedctx // the life of the socket, for long requests
	cancel context.CancelFunc
	wg     sync.WaitGroup // long requests

	mu       sync.Mutex
	room     chan struct{}       // closed when the queue has room again
	self     command.Participant // as registered; Online is false before
	presence *presence           // nil before
	inbox    *inbox              // of a client
	run      *watched            // the run that a client watches; nil = none
	turn     bool                // which of the two gets room first
	idle     time.Time           // since when no frame is being handled; zero = one is
	pinged   time.Time           // when the last ping was sent
}

// Bind returns the binding of a connection. The target is the run that a client watches
// beside its inbox, nil = none.
func (s *Swarm) Bind(c binding.Connection, codec *asp.Codec, target *binding.Target) *Participant {
	cfg := s.cfg
	p := &Participant{
		of: s, g: s.g, c: c, target: target, codec: codec, rate: rate.NewLimiter(rate.Limit(cfg.Rate), cfg.Burst),
		asks: make(chan struct{}, cfg.Asks), work: newWork(cfg.Calls), room: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(c.Context())
	return p
}

// Name implements binding.Binding.
func (p *Participant) Name() string { return p.codec.Name() }

// Fail implements binding.Binding.
func (p *Participant) Fail(f *fault.Fault, now time.Time) []byte {
	return logCodec{p.codec}.Fail(f, now)
}

// Principal implements edge.Recipient.
func (p *Participant) Principal() auth.Principal { return p.c.Client().Principal() }

// Unmetered implements binding.Binding: all frames have the rate of the participant.
func (p *Participant) Unmetered(context.Context, []byte) bool { return false }

// Settle implements binding.Binding. A participant's frames are taken up at once: who is not there to
// answer them is said for each.
func (p *Participant) Settle() {}

// inbound returns what the codec may know of the socket.
func (p *Participant) inbound() asp.Inbound {
	return asp.Inbound{
		Participant: p.registered(), OnlyTask: p.work.only(), OnlyCall: p.work.onlyCall(), LastTask: p.work.latest(),
		Placed: p.placements.find, Watched: p.watched(), NewID: edge.NewID, Now: p.g.Clock(),
	}
}

// fail says that an order could not be carried out: to its sender, if that waits for an
// answer. An end of a task or a call, or a presence, that our side has lost for now ends the
// socket: the participant comes back, and what it had is decided then.
func (p *Participant) fail(o asp.Order, err error) {
	if !o.Unanswered {
		p.refuse(o, err)
		return
	}
	f := p.drop(err)
	end := o.Forward != nil && o.Forward.Final
	if o.Intent != nil {
		_, end = o.Intent.Data.(dialect.FinishTask)
	}
	switch {
	case f.Retryable() && (end || o.Register != nil):
		p.c.End(f)
	case o.Register != nil:
		p.c.Finish(binding.ClosePolicy, string(f.Code))
	}
}

// drop counts a frame that has no effect, of which its sender is not told.
func (p *Participant) drop(err error) *fault.Fault {
	f := p.c.FaultOf(err)
	p.g.Metrics.Dropped.WithLabelValues(string(f.Code)).Inc()
	p.g.Logger.Debug().Str("code", string(f.Code)).Str("participant", p.registered().ID).Str("connection", p.id.String()).Msg("participant frame dropped")
	return f
}

func (p *Participant) busy(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle = p.g.Clock(); on {
		p.idle = time.Time{}
	}
}

// registered returns the participant as it registered itself.
func (p *Participant) registered() command.Participant {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.self
}

// refuse tells the participant that an order of its has no effect, or a frame that became none: its order has a RequestID only.
func (p *Participant) refuse(o asp.Order, err error) {
	f := p.c.FaultOf(err)
	p.g.Metrics.Faults.WithLabelValues(string(f.Code)).Inc()
	p.c.Force(transport.Text(p.codec.Refuse(p.g.Link(p.id), o, f)))
}

// put sends frames that the participant has asked for, however large, and waits until the
// queue has room for them.
func (p *Participant) put(payloads [][]byte) {
	frames := make([]*transport.Message, 0, len(payloads))
	for _, b := range payloads {
		frames = append(frames, transport.Text(b))
	}
	for {
		p.mu.Lock()
		room := p.room
		p.mu.Unlock()
		if frames = frames[p.c.Send(frames...):]; len(frames) == 0 {
			return
		}
		select {
		case <-room:
		case <-p.c.Done():
			return
		}
	}
}

// Room implements binding.Binding.
func (p *Participant) Room() {
	p.mu.Lock()
	in, g := p.inbox, p.run
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
	p.mu.Lock()
	close(p.room) // last: who waits for it finds what the streams have left
	p.room = make(chan struct{})
	p.mu.Unlock()
}

// Pong implements binding.Binding.
func (p *Participant) Pong(payload []byte) {
	p.mu.Lock()
	in := p.inbox
	p.mu.Unlock()
	if in != nil {
		in.ponged(payload)
	}
}

// register takes the participant's presence in the directory, or changes what it says there,
// and returns the participant as it is listed.
func (p *Participant) register(ctx context.Context, want command.Participant) (command.Participant, error) {
	p.mu.Lock()
	self, presence := p.self, p.presence
	p.mu.Unlock()
	if self.Kind == command.ParticipantClient {
		want.ID = self.ID // the service has given it
	}
	switch {
	case want.ID == "":
		return self, fault.Newf(fault.InvalidField, "A registration needs an id.").At("id")
	case self.Online && want.ID != self.ID:
		return self, fault.Newf(fault.InvalidField, "This connection is registered with another id. Open another connection for another participant.").At("id")
	}
	want.Kind, want.Tenant, want.Principal, want.Gateway, want.Connection = self.Kind, self.Tenant, self.Principal, self.Gateway, self.Connection
	want.Online, want.Since, want.Load, want.Incarnation = true, self.Since, p.work.load(), self.Incarnation
	if err := p.of.cfg.reserved(want); err != nil {
		return self, err
	}
	if want.Status == "" {
		want.Status = command.StatusActive
	}
	want.Capabilities, want.Tools = slices.Clone(want.Capabilities), slices.Clone(want.Tools)
	if presence == nil || !presence.held() {
		return p.enter(ctx, want)
	}
	if err := presence.change(func(listed *command.Participant) {
		want.Since = listed.Since
		*listed = want
	}); err != nil {
		return self, err
	}
	p.become(presence)
	return presence.registered(), presence.confirm(ctx)
}

// enter takes a new presence.
func (p *Participant) enter(ctx context.Context, want command.Participant) (command.Participant, error) {
	if want.Kind == command.ParticipantAgent {
		want.Incarnation = p.of.incarnation(want)
	}
	presence, err := p.of.take(ctx, want, p.id)
	if err != nil {
		return p.registered(), err
	}
	p.become(presence)
	return presence.registered(), nil
}

func (p *Participant) become(at *presence) {
	self := at.registered()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.self, p.presence = self, at
}

// leave gives up the participant's presence: it does not come back, and its calls end at once. Its
// socket stays.
func (p *Participant) leave() {
	p.mu.Lock()
	presence := p.presence
	p.presence, p.self.Online = nil, false
	p.mu.Unlock()
	p.loseCalls()
	if presence != nil {
		presence.leave()
	}
}

// loaded tells the directory how much the participant has to do.
func (p *Participant) loaded() {
	p.mu.Lock()
	presence := p.presence
	p.mu.Unlock()
	if presence == nil {
		return
	}
	if err := presence.change(func(listed *command.Participant) { listed.Load = p.work.load() }); err != nil {
		p.g.Logger.Warn().Err(err).Msg("failed to publish participant load")
	}
}

// loseCalls tells the callers of a service whose socket has ended that no results come.
func (p *Participant) loseCalls() {
	f := fault.New(fault.ServiceLost)
	for callID, inbox := range p.work.end() {
		p.tellCaller(inbox, command.CallNews{
			CallID: callID, ServiceID: p.registered().ID, Final: true, Code: string(f.Code), Error: f.Public(),
		})
	}
}

func (p *Participant) tellCaller(inbox string, news command.CallNews) {
	err := p.publish(inbox, news)
	if errors.Is(err, nats.ErrMaxPayload) && news.Final {
		f := fault.Newf(fault.MessageTooBig, "The result is too large: it has %d bytes. Ask for less at a time.", len(news.Result))
		err = p.publish(inbox, command.CallNews{
			CallID: news.CallID, ServiceID: news.ServiceID, Final: true, Code: string(f.Code), Error: f.Public(),
		})
	}
	if err != nil {
		p.g.Logger.Warn().Err(err).Str("call", news.CallID).Msg("failed to notify caller of tool call")
	}
}

// publish sends updates about a call to who made it.
func (p *Participant) publish(inbox string, news command.CallNews) error {
	b, err := plainjson.Marshal(news)
	if err != nil {
		return fmt.Errorf("encode news of a call: %w", err)
	}
	return p.g.Bus.NATS().Publish(inbox, b)
}

// inbox is the log of a client on its socket, and how far the client has it.
type inbox struct {
	p      *Participant
	log    subject.Log
	codec  logCodec
	stream *stream.Stream

	mu     sync.Mutex
	asked  string // payload of the ping whose pong says that the client has all up to probed
	probed uint64
	has    uint64 // the client has said so
	stored uint64 // and the service was told
}

// ponged takes a pong. One that answers to nothing says nothing.
func (in *inbox) ponged(payload []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.asked != "" && string(payload) == in.asked {
		in.asked, in.has = "", max(in.has, in.probed)
	}
}

// logOf returns the log of a task of the participant's own tenant; without a task, of the
// watched run.
func (p *Participant) logOf(task string) subject.Log {
	if task == "" {
		return p.watched()
	}
	return subject.Log{Tenant: p.c.Client().Principal().Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(task)}
}

// answer answers with what the gateway says itself.
func (p *Participant) answer(o asp.Order, reply any) error {
	data, err := json.Marshal(reply)
	if err != nil {
		return fmt.Errorf("encode the answer to %s: %w", o.Type, err)
	}
	p.put(p.codec.Answer(p.g.Link(p.id), o, data))
	return nil
}

// watched is the run that a client of the swarm watches, beside its inbox.
type watched struct {
	g      *binding.Gateway
	c      binding.Connection
	log    subject.Log
	codec  logCodec
	stream *stream.Stream

	unopened *edge.Unopened // the session of the log, unless it existed when the socket opened
}

// unopened returns the session of a log that the socket shows and may have to open; nil = nothing is to be opened.
func (p *Participant) unopened(log subject.Log) *edge.Unopened {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || p.run.log != log {
		return nil
	}
	return p.run.unopened
}

// watched returns the log of the run that the socket shows, zero without one.
func (p *Participant) watched() subject.Log {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return subject.Log{}
	}
	return p.run.log
}
