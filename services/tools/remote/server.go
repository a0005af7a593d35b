package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/calls"
)

const (
	// beat is the interval of heartbeats to a caller; a quarter of the silence after which the caller gives up, so that
	// three may be lost.
	beat = 2 * time.Second
	// apiVersion is the version of the service's protocol, shown by `nats micro`.
	apiVersion = "1.0.0"
	// waitersPerCall bounds the repeats of calls that the server answers concurrently.
	waitersPerCall = 4
)

// Host is a tool service from the view of its requests. It is safe for concurrent use.
type Host interface {
	tools.Toolbox
	// Begin returns the run of a call, started if it is new, and, with listen, a listener for its notifications.
	Begin(ctx context.Context, call tools.Call, listen bool) (*calls.Run, calls.Listener, error)
	// Find returns the run of that key, or nil.
	Find(key calls.Key) *calls.Run
}

// Config holds the dependencies and limits of a server.
type Config struct {
	Conn      *bus.Conn
	Directory *directory.Directory // the server answers a request once this copy has caught up with the sender's; nil: at once
	Logger    zerolog.Logger
	MaxCalls  int           // the host's maximum; four times as many callers may wait at once
	Beat      time.Duration // interval of a running call's heartbeats; 0 = 2 s
}

// Server answers the requests to a host. It is safe for concurrent use.
type Server struct {
	host  Host
	cfg   Config
	log   zerolog.Logger
	nc    *nats.Conn
	micro micro.Service
	subs  []*nats.Subscription // cancel and attach, which work until the end

	slots   chan struct{}
	answers sync.WaitGroup
	mu      sync.Mutex
	closed  bool // no more answers may start
	served  map[replyKey]bool
}

// replyKey identifies a reply subject in use.
type replyKey struct {
	run *calls.Run
	to  string
}

// Serve starts answering for the host.
func Serve(ctx context.Context, host Host, cfg Config) (*Server, error) {
	if cfg.Beat <= 0 {
		cfg.Beat = beat
	}
	nc := cfg.Conn.NATS()
	s := &Server{
		host: host, cfg: cfg, log: cfg.Logger, nc: nc,
		slots: make(chan struct{}, waitersPerCall*cfg.MaxCalls), served: map[replyKey]bool{},
	}
	var err error
	for subj, handle := range map[string]nats.MsgHandler{cancelSubject: s.cancel, attachSubject: s.attach} {
		sub, err := nc.Subscribe(subj, handle)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("listen on the bus: %w", err)
		}
		s.subs = append(s.subs, sub)
	}
	s.micro, err = micro.AddService(nc, micro.Config{
		Name: tools.ServiceName.String(), Version: apiVersion, QueueGroup: tools.ServiceName.String(),
		Description: "Runs tools of MCP servers and services",
	})
	if err == nil {
		err = errors.Join(
			s.micro.AddEndpoint("list", micro.HandlerFunc(s.list), micro.WithEndpointSubject(listSubject)),
			s.micro.AddEndpoint("servers", micro.HandlerFunc(s.servers), micro.WithEndpointSubject(seekSubject)),
			s.micro.AddEndpoint("call", micro.HandlerFunc(s.call), micro.WithEndpointSubject(callSubject)),
			cfg.Conn.Flush(ctx), // The NATS server knows the subscriptions when the service reports that it runs.
		)
	}
	if err != nil {
		s.Refuse()
		s.Close()
		return nil, fmt.Errorf("offer the service on the bus: %w", err)
	}
	return s, nil
}

// Refuse accepts no more requests; the server still answers those that have arrived.
func (s *Server) Refuse() {
	if s.micro == nil {
		return
	}
	if err := s.micro.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.log.Debug().Err(err).Msg("fail to leave bus")
	}
}

// Close waits for the remaining answers and ends the server.
func (s *Server) Close() {
	for _, sub := range s.subs {
		_ = sub.Unsubscribe() // Fails if the connection is closed, which ends the subscription, too.
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.answers.Wait()
}

// list answers one page of tools.
func (s *Server) list(req micro.Request) {
	s.answer(req, func(ctx context.Context, in listRequest) (reply, error) {
		room := int(s.nc.MaxPayload()) - envelope
		if in.Kind == "" && in.Server == "" {
			all, err := s.host.List(ctx, in.Tenant)
			out := reply{}
			out.Tools, out.More = page(all, func(t tools.Tool) string { return t.Name }, in.After, room)
			return out, err
		}
		server, all, err := s.host.ToolsOf(ctx, in.Tenant, in.Kind, in.Server)
		if err != nil {
			return reply{}, err
		}
		head, err := json.Marshal(server)
		out := reply{Server: &server}
		out.Tools, out.More = page(all, func(t tools.Tool) string { return t.Name }, in.After, room-len(head))
		return out, err
	})
}

// servers answers one page of servers.
func (s *Server) servers(req micro.Request) {
	s.answer(req, func(ctx context.Context, in listRequest) (reply, error) {
		all, err := s.host.Servers(ctx, in.Tenant, in.Kind)
		out := reply{}
		out.Servers, out.More = page(all, tools.Server.Order, in.After, int(s.nc.MaxPayload())-envelope)
		return out, err
	})
}

func (s *Server) answer(req micro.Request, say func(context.Context, listRequest) (reply, error)) {
	var in listRequest
	if err := json.Unmarshal(req.Data(), &in); err != nil {
		s.send(req.Reply(), faultReply(fault.New(fault.BadJSON)))
		return
	}
	s.when(req, func() {
		out, err := say(context.Background(), in)
		if err != nil {
			out = faultReply(fault.From(err, ""))
		}
		s.send(req.Reply(), out)
	})
}

// when calls do as soon as this process' directory has caught up with the request's sender. Later requests do not wait for
// an earlier one.
func (s *Server) when(req micro.Request, do func()) {
	ctx, seen := directory.Extract(context.Background(), req.Headers())
	dir := s.cfg.Directory
	if dir == nil || dir.Revision() >= seen {
		do()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return // the caller asks another instance
	}
	s.answers.Go(func() {
		if err := dir.Reach(ctx, seen); err != nil {
			s.send(req.Reply(), faultReply(fault.New(fault.ToolsDown).Wrap(err)))
			return
		}
		do()
	})
}

// page returns the elements after a place in the order, as many as fit and at least one, and whether more follow.
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

// call starts a call and answers it in a goroutine.
func (s *Server) call(req micro.Request) {
	var in tools.Call
	if err := json.Unmarshal(req.Data(), &in); err != nil {
		s.send(req.Reply(), faultReply(fault.New(fault.BadJSON)))
		return
	}
	s.when(req, func() {
		ctx := telemetry.Extract(context.Background(), req.Headers().Get(headerTrace))
		r, e, err := s.host.Begin(ctx, in, req.Headers().Get(headerNotify) != "")
		if err != nil {
			s.send(req.Reply(), faultReply(fault.From(err, "")))
			return
		}
		s.follow(r, req.Reply(), e)
	})
}

// attach answers a caller that has received nothing for a while, if this instance knows the call.
func (s *Server) attach(m *nats.Msg) {
	if r := s.find(m); r != nil && m.Reply != "" {
		s.follow(r, m.Reply, calls.Listener{})
	}
}

// cancel stops a call if this instance knows it. The callers get the outcome.
func (s *Server) cancel(m *nats.Msg) {
	if r := s.find(m); r != nil {
		r.Cancel(calls.ErrCancelled)
	}
}

func (s *Server) find(m *nats.Msg) *calls.Run {
	var in callRef
	if json.Unmarshal(m.Data, &in) != nil {
		return nil
	}
	return s.host.Find(in.key())
}

// follow sends a caller the signs of life and the notifications of a running call, and then its outcome.
func (s *Server) follow(r *calls.Run, to string, e calls.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := replyKey{r, to}
	if s.served[key] {
		e.Stop()
		s.publish(busy(to))
		return
	}
	full := false
	select {
	case s.slots <- struct{}{}:
	default:
		full = true
	}
	switch {
	case full:
		e.Stop()
		s.send(to, faultReply(fault.New(fault.Overloaded)))
		return
	case s.closed:
		e.Stop()
		<-s.slots
		return
	}
	s.served[key] = true
	s.answers.Go(func() {
		defer func() { <-s.slots }()
		defer s.forget(key)
		defer e.Stop()
		s.tell(r, to, e)
	})
}

// tell sends signs of life and notifications until the run ends, and then its outcome.
func (s *Server) tell(r *calls.Run, to string, e calls.Listener) {
	s.publish(busy(to))
	tick := time.NewTicker(s.cfg.Beat)
	defer tick.Stop()
	note := func(n tools.Notification) { s.note(to, n) }
	for {
		select {
		case <-tick.C:
			s.publish(busy(to))
		case n := <-e.C:
			note(n)
		case <-r.Done():
			e.Rest(note)
			res, err := r.Outcome()
			if err != nil {
				s.send(to, faultReply(fault.From(err, "")))
				return
			}
			s.send(to, reply{Result: &res})
			return
		}
	}
}

// note sends a notification.
func (s *Server) note(to string, n tools.Notification) {
	b, err := json.Marshal(n)
	if err != nil {
		s.log.Error().Err(err).Msg("fail to encode notification")
		return
	}
	m := nats.NewMsg(to)
	m.Header.Set(headerState, stateTold)
	m.Data = b
	s.publish(m)
}

func (s *Server) send(to string, r reply) {
	m, err := message(to, r, int(s.nc.MaxPayload()))
	if err != nil {
		s.log.Error().Err(err).Msg("fail to encode reply")
		return
	}
	s.publish(m)
}

func (s *Server) forget(key replyKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.served, key)
}

// publish sends a message. A caller that misses it asks again.
func (s *Server) publish(m *nats.Msg) {
	if m.Subject == "" {
		return // The request has no reply subject.
	}
	if err := s.nc.PublishMsg(m); err != nil {
		s.log.Debug().Err(err).Msg("fail to send reply")
	}
}
