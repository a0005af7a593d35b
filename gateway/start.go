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
		cfg: cfg, dep: dep, fail: make(chan error, 1), conns: newConnections(cfg.MaxConnections), drainMaxWait: drainMaxWait,
	}
	s.met = newMetrics(s)
	s.answers = &answers{logger: dep.Logger, refused: s.met.refused}
	if s.cells = s.newForwarder(); s.cells != nil {
		s.dep.Commands = dep.Commands.Within(s.cells.Continue)
	}
	s.arrivals = arrival.New(cfg.MaxConnections)
	s.sight = &sight.Sight{Policy: dep.Access, Log: dep.Log}
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
	s.ready = &readiness{conn: dep.Conn, directory: dep.Directory, topology: dep.Topology, logger: dep.Logger, conns: s.conns, ctx: s.ctx}
	s.refusals = audit.NewGatherer(s.dep.Audit)
	if s.gate, err = s.newGate(); err != nil {
		return nil, err
	}
	for _, d := range cspreport.Directives { // each has a series from the start
		s.met.reports.WithLabelValues(d)
	}
	if s.pageReports, err = cspreport.New(dep.Logger, dep.Clock, func(d string) { s.met.reports.WithLabelValues(d).Inc() }, func(w http.ResponseWriter, err error) {
		s.refuse(w, s.asFault(err))
	}); err != nil {
		return nil, err
	}
	s.door = &door{
		answers: s.answers, gate: s.gate, foreign: &s.foreign, proxies: s.proxies, requests: s.requests, quota: dep.Quota, pages: dep.Pages,
		readLimit: cfg.ReadLimit, came: s.met.requests,
	}
	s.elsewhere = &elsewhere{answers: s.answers, cells: s.cells, gate: s.gate, requests: s.requests, conns: s.conns, ctx: s.ctx}
	s.listeners = &listeners{cfg: cfg, arrivals: s.arrivals, logger: dep.Logger, fail: s.fail}
	s.share()
	s.streams = &streams{
		answers: s.answers, door: s.door, conns: s.conns, shared: s.shared, announcements: events.NewAnnouncements(dep.Conn, s.sight, dep.Logger, dep.Clock),
		auth: dep.Auth, cfg: cfg, ctx: s.ctx,
	}
	s.http = s.httpServer(s.routes())
	return s, s.met.register()
}

// Start listens, joins the directory and serves.
func (s *Server) Start(ctx context.Context) error {
	if err := s.listeners.open(ctx, s.extraServer); err != nil {
		return err
	}
	if err := s.shared.Recipients.Subscribe(s.dep.Conn); err != nil {
		return errors.Join(fmt.Errorf("gateway: %w", err), s.listeners.close())
	}
	lease, err := s.join(ctx)
	if err == nil {
		err = s.census.Start()
	}
	if err == nil && s.cells != nil {
		err = s.cells.Start(ctx, s.name, s.conns.sendAwayTenants)
	}
	if err != nil {
		s.leave(lease) //nolint:contextcheck // ending takes a context of its own
		s.shared.Recipients.Close()
		return errors.Join(fmt.Errorf("gateway: %w", err), s.listeners.close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns.isStopped() {
		s.shared.Recipients.Close()
		s.leave(lease) //nolint:contextcheck // ending takes a context of its own
		return errors.Join(errEnded, s.listeners.close())
	}
	s.hub = ws.NewHub(ws.Options{
		QueueBytes: s.cfg.QueueBytes, ReadLimit: s.cfg.ReadLimit, PingInterval: s.cfg.PingInterval,
		PongTimeout: s.cfg.PongTimeout, MessageTimeout: s.cfg.MessageTimeout, WriteStall: s.cfg.WriteStall,
		LargeMessages: s.cfg.Participants.LargeFrames,
	})
	s.lease = lease
	if s.dep.Directory != nil {
		s.unwatch = s.dep.Directory.Watch(s.ready.membersChanged)
		s.conns.work.Go(func() { s.workers.run(s.ctx) })
	}
	s.conns.work.Go(func() { s.conns.flush(s.ctx, s.cfg.AckInterval) })
	s.conns.work.Go(func() { s.conns.logLags(s.ctx, lagInterval, s.dep.Clock, s.dep.Logger) })
	if s.dep.swarm() {
		s.conns.work.Go(s.swarm.Run)
	}
	s.listeners.serve(s.http, &s.conns.work)
	s.dep.Logger.Info().Stringer("addr", s.Addr()).Bool("anonymous", s.gate.Anonymous).Msg("listening for clients")
	return nil
}

// lagInterval is the interval of looks for viewers that lag: people read the lines.
const lagInterval = time.Second

const (
	// drainMaxWait is the time that requests in progress have before their socket is sent
	// to another gateway. A request takes milliseconds, unless its service is down.
	drainMaxWait = time.Second
	// drainSaying is the time to tell the client about requests that were cut off.
	drainSaying = time.Second
)

// Drain refuses new sockets, asks every client to reconnect to another gateway, spread over
// Config.DrainSpread, and returns when all clients have left. It answers probes until then:
// /readyz says that the gateway is draining.
func (s *Server) Drain(ctx context.Context) error {
	s.conns.drain()
	s.mu.Lock()
	lease := s.lease
	s.lease = nil
	s.mu.Unlock()
	s.leave(lease) //nolint:contextcheck // ending takes a context of its own
	if s.cells != nil {
		s.cells.Drain()
	}
	if err := s.conns.sendAway(ctx, s.cfg.DrainSpread, s.ctx.Done()); err != nil {
		return err
	}
	if err := errors.Join(s.http.Shutdown(ctx), s.listeners.shutdown(ctx)); err != nil {
		return fmt.Errorf("gateway: end HTTP: %w", err)
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
	c.s.conns.async(func() {
		c.backlog.quiet(c.s.drainMaxWait)
		c.cut(fault.Newf(why.Code, "The gateway closed the connection before it finished this request. Reconnect and send it again."))
		c.backlog.quiet(drainSaying)
		c.End(why)
	})
}
