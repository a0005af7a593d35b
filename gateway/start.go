package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/gateway/cspreport"
	"github.com/waggle-dev/waggle/gateway/events"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/reuse"
	"github.com/waggle-dev/waggle/internal/sight"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// New returns a gateway that is not started, or an error that names the option
// which cannot be used. Without authentication it refuses any address but a
// loopback one.
func New(cfg Config, dep Deps) (*Server, error) {
	if err := errors.Join(cfg.check(), dep.check(), cfg.checkLegacy(dep)); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	dep = dep.withDefaults()
	if dep.Signer != nil {
		dep.Commands = dep.Commands.Signing(dep.Signer.Sign)
	}
	s := &Server{
		cfg: cfg, dep: dep, fail: make(chan error, 1), conns: map[connection]struct{}{}, drainPatience: drainPatience,
	}
	if s.cells = s.newForwarder(); s.cells != nil {
		s.dep.Commands = dep.Commands.Within(s.cells.Continue)
	}
	s.arrivals = arrival.New(cfg.MaxConnections)
	s.sight = &sight.Sight{Policy: dep.Access, Log: dep.Log}
	s.announcements = events.NewAnnouncements(dep.Conn, s.sight, dep.Logger)
	s.foreign.Log = dep.Logger
	var err error
	if s.proxies, err = cfg.proxies(); err != nil {
		return nil, err
	}
	s.room = answer.NewRoom(0)
	if s.inboxes, err = admission.NewInboxes(cfg.Inboxes, dep.Clock); err != nil {
		return nil, err
	}
	if s.requests, err = admission.NewRequests(admission.Limits{Connections: cfg.Requests, Rate: cfg.RequestRate}, dep.Clock); err != nil {
		return nil, err
	}
	if s.name, err = id.ParseName(dep.Conn.Instance()); err != nil {
		return nil, fmt.Errorf("gateway: the connection's instance: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.short = reuse.New(s.ctx)
	s.refusals = audit.NewGatherer(s.dep.Audit)
	if s.gate, err = s.newGate(); err != nil {
		return nil, err
	}
	s.met = newMetrics(s)
	for _, d := range cspreport.Directives { // each has a series from the start
		s.met.reports.WithLabelValues(d)
	}
	if s.pageReports, err = cspreport.New(dep.Logger, dep.Clock, func(d string) { s.met.reports.WithLabelValues(d).Inc() }, func(w http.ResponseWriter, err error) {
		s.refuse(w, s.asFault(err))
	}); err != nil {
		return nil, err
	}
	s.share()
	s.http = s.httpServer(s.routes())
	return s, s.met.register()
}

// Start listens, joins the directory and serves.
func (s *Server) Start(ctx context.Context) error {
	l, err := s.listen(ctx, s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	extra, err := s.listenExtra(ctx)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	shut := func() error { return errors.Join(l.Close(), closeExtra(extra)) }
	if err := s.shared.Recipients.Subscribe(s.dep.Conn); err != nil {
		return errors.Join(fmt.Errorf("gateway: %w", err), shut())
	}
	lease, err := s.join(ctx)
	if err == nil && s.cells != nil {
		err = s.cells.Start(ctx, s.name, s.sendAwayTenants)
	}
	if err != nil {
		s.leave(lease) //nolint:contextcheck // ending takes a context of its own
		s.shared.Recipients.Close()
		return errors.Join(fmt.Errorf("gateway: %w", err), shut())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		s.shared.Recipients.Close()
		s.leave(lease) //nolint:contextcheck // ending takes a context of its own
		return errors.Join(errEnded, shut())
	}
	s.hub = ws.NewHub(ws.Options{
		QueueBytes: s.cfg.QueueBytes, ReadLimit: s.cfg.ReadLimit, PingInterval: s.cfg.PingInterval,
		PongTimeout: s.cfg.PongTimeout, MessageTimeout: s.cfg.MessageTimeout, WriteStall: s.cfg.WriteStall,
		LargeMessages: s.cfg.Participants.LargeFrames,
	})
	s.listener, s.lease = l, lease
	if s.dep.Directory != nil {
		s.unwatch = s.dep.Directory.Watch(s.membersChanged)
		s.wg.Go(func() { s.workers.Run(s.ctx) })
	}
	s.wg.Go(s.flushAll)
	if s.dep.swarm() {
		s.wg.Go(s.swarm.Run)
	}
	s.serveExtra(extra)
	s.wg.Go(func() {
		if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.fail <- fmt.Errorf("gateway: %w", err)
		}
	})
	s.dep.Logger.Info().Stringer("addr", l.Addr()).Bool("anonymous", s.gate.Anonymous).Msg("listening for clients")
	return nil
}

const (
	// drainPatience is the time that requests in progress have before their socket is sent
	// to another gateway. A request takes milliseconds, unless its service is down.
	drainPatience = time.Second
	// drainSaying is the time to tell the client about requests that were cut off.
	drainSaying = time.Second
)

// Drain refuses new sockets, asks every client to reconnect to another gateway, spread over
// Config.DrainSpread, and returns when all clients have left. It answers probes until then:
// /readyz says that the gateway is draining.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	lease := s.lease
	s.lease = nil
	s.mu.Unlock()
	s.leave(lease) //nolint:contextcheck // ending takes a context of its own
	if s.cells != nil {
		s.cells.Drain()
	}
	if err := s.sendAway(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.http.Shutdown(ctx), s.shutdownExtra(ctx)); err != nil {
		return fmt.Errorf("gateway: end HTTP: %w", err)
	}
	return nil
}

// sendAway closes the sockets one after the other and waits until all have ended.
func (s *Server) sendAway(ctx context.Context) error {
	all := s.open()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for i, c := range all {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("gateway: %d sockets left: %w", len(all)-i, ctx.Err())
		case <-s.ctx.Done():
			return nil
		}
		c.retire(fault.New(fault.Draining))
		pause.Reset(s.cfg.DrainSpread / time.Duration(len(all)))
	}
	for _, c := range all {
		select {
		case <-c.left():
		case <-ctx.Done():
			return fmt.Errorf("gateway: wait for sockets: %w", ctx.Err())
		}
	}
	return nil
}

// retire asks the client of a socket to reconnect, after the requests in progress. It cuts off
// long requests and asks the client to repeat them. It does not block.
func (c *conn) retire(why *fault.Fault) {
	if c.backlog.still() {
		c.End(why)
		return
	}
	c.s.async(func() {
		c.backlog.quiet(c.s.drainPatience)
		c.cut(fault.Newf(why.Code, "The gateway closed the connection before it finished this request. Reconnect and send it again."))
		c.backlog.quiet(drainSaying)
		c.End(why)
	})
}
