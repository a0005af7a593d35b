// Package process assembles one waggle process: the bus and the roles that run on it. It passes every dependency of a role
// explicitly; each role has one file.
//
// A process without the gateway role opens no port unless addr names one: operators start any number of services on one
// machine without choosing ports.
package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/cmd/waggle/process/listener"
	"github.com/waggle-dev/waggle/cmd/waggle/process/own"
	"github.com/waggle-dev/waggle/cmd/waggle/process/signing"
	"github.com/waggle-dev/waggle/cmd/waggle/rates"
	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
	"github.com/waggle-dev/waggle/services/model"
)

// Options select the configuration and the roles to run. Config has been validated for Use.
type Options struct {
	Config config.Config
	Use    config.For
	// Source is the origin of Config; with nil the process never reads Config again.
	Source *config.Loaded
	// Hangup makes the process read the configuration again at once; it may be nil.
	Hangup  <-chan os.Signal
	Version string
	Logger  zerolog.Logger
	// Registry holds the metrics; with nil the process creates its own.
	Registry *prometheus.Registry
	Ready    func(Running) // called once all components run; may be nil
}

// Running holds the addresses of a process.
type Running struct {
	Addr net.Addr // gateway, or health; nil = the process does not listen
	// Telemetry serves metrics and profiles; nil = they are not served.
	Telemetry net.Addr
	NATSURL   string // the embedded NATS server; empty without one
	Model     string // the worker's model; empty without the role
	// StartToken admits web pages to a gateway without authentication; empty with authentication.
	StartToken string
}

// process holds the parts that the roles share.
type process struct {
	Options
	conn      *bus.Conn
	clock     *bus.Clock // for all comparisons with other processes' times
	log       *eventlog.Store
	commands  *command.Sender
	directory *directory.Directory
	auth      auth.Authenticator
	audit     *audit.Writer
	signing   *signing.Keys
	instance  id.Name
	registry  *prometheus.Registry
	rates     *rates.Rates
	bus       busMetrics
	opened    model.Model  // of the role worker; nil: not opened
	daily     *quota.Daily // of all roles; nil: not opened, or unlimited
	running   Running
	addr      func() net.Addr // the listening component's address
	internal  func() net.Addr // of metrics and profiles
	closers   []func()
}

// Run runs the process until ctx ends and then drains it, or until a component fails. A second signal during the drain stops
// it at once.
func Run(ctx context.Context, o Options) (err error) {
	p := &process{Options: o, registry: o.Registry, addr: nowhere, internal: nowhere}
	if p.registry == nil {
		p.registry = telemetry.NewRegistry()
	}
	defer p.close()
	if err := vacant(ctx, o.Config); err != nil {
		return err
	}
	if err := p.measure(); err != nil {
		return err
	}
	flush, err := telemetry.StartTracing(ctx, "waggle", o.Version)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() { p.flush(context.WithoutCancel(ctx), flush) })
	if err := p.open(ctx); err != nil {
		return err
	}
	parts, err := p.parts(ctx)
	if err != nil {
		return err
	}
	g := lifecycle.NewGroup(o.Logger, o.Config.Shutdown)
	g.Shorten(p.drainTime)
	g.Add(parts...)
	return hint(g.Run(ctx), o.Config)
}

// mutedDrain bounds the drain of a process that cannot write: its work cannot end, and another process will do it.
const mutedDrain = 5 * time.Second

// drainTime returns how long the drain may take.
func (p *process) drainTime() time.Duration {
	if p.conn.Trouble() != nil {
		return min(mutedDrain, p.Config.Shutdown)
	}
	return p.Config.Shutdown
}

// hint says instead of an error that is common at a first start what to do about it.
func hint(err error, c config.Config) error {
	switch {
	case !errors.Is(err, syscall.EADDRINUSE):
		return err
	case errors.Is(err, listener.ErrTelemetry):
		return taken(c.Telemetry.Addr, "--telemetry-addr or WAGGLE_TELEMETRY_ADDR")
	}
	return taken(c.Addr, "--addr or WAGGLE_ADDR")
}

func taken(addr, by string) error {
	return fmt.Errorf("%s is taken, perhaps by another \"waggle up\"; choose another address with %s", addr, by)
}

// vacant checks that no other process listens at the addresses of this one, before any part of it has begun to work.
func vacant(ctx context.Context, c config.Config) error {
	for _, l := range []struct{ addr, by string }{
		{c.Addr, "--addr or WAGGLE_ADDR"}, {c.Telemetry.Addr, "--telemetry-addr or WAGGLE_TELEMETRY_ADDR"},
	} {
		if l.addr == "" {
			continue
		}
		var lc net.ListenConfig
		at, err := lc.Listen(ctx, "tcp", l.addr)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return taken(l.addr, l.by)
		case err == nil:
			if err := at.Close(); err != nil {
				return err
			}
		}
	}
	return nil // other errors are those of the part that listens there
}

// Connect connects to the NATS server that the configuration names, as an operator.
func Connect(ctx context.Context, c config.Config, name string, log zerolog.Logger) (*bus.Conn, error) {
	return dialAs(ctx, c, name, permission.Operator, log)
}

// ConnectFully connects with all rights: with the key of "waggle up" that has them, or with the credentials of the configuration.
func ConnectFully(ctx context.Context, c config.Config, name string, log zerolog.Logger) (*bus.Conn, error) {
	return dialAs(ctx, c, name, "", log)
}

// ConnectToRestore connects as the user that creates the streams.
func ConnectToRestore(ctx context.Context, c config.Config, log zerolog.Logger) (*bus.Conn, error) {
	return dialAs(ctx, c, "waggle/restore", permission.Bootstrap, log)
}

// dialAs connects as a role to the NATS server that the configuration names. Without a role, answers arrive at the inbox of an
// ordinary client.
func dialAs(ctx context.Context, c config.Config, name string, as permission.Role, log zerolog.Logger) (*bus.Conn, error) {
	n, err := own.WithKey(c, as)
	if err != nil {
		return nil, err
	}
	inbox := ""
	if as != "" {
		inbox = permission.Inbox(as)
	}
	return dial(ctx, bus.Config{
		URL: n.URL, Name: name, InboxPrefix: inbox, Creds: n.Creds, NKeySeedFile: n.NKey, Partitions: c.Partitions(),
		TLSCA: n.TLSCA, TLSCert: n.TLSCert, TLSKey: n.TLSKey, Logger: log,
	})
}

// dial connects, and adds the remedy to the reason why it cannot.
func dial(ctx context.Context, c bus.Config) (*bus.Conn, error) {
	conn, err := bus.Connect(ctx, c)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, nats.ErrAuthorization) && c.NKeySeedFile == "" && c.Creds == "":
		return nil, fmt.Errorf("NATS at %s asks for credentials; name the seed of the role's key with WAGGLE_NATS_NKEY "+
			"(for the server of a \"waggle up\", give the command its data folder with --data or WAGGLE_DATA): %w", config.RedactURLs(c.URL), err)
	default:
		return nil, fmt.Errorf("NATS at %s cannot be reached; start it, or correct --nats or WAGGLE_NATS: %w", config.RedactURLs(c.URL), err)
	}
}

// open connects to the bus and prepares it.
func (p *process) open(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	p.closers = append(p.closers, p.conn.Close, p.watchBus())
	var err error
	if p.instance, err = id.ParseName(p.conn.Instance()); err != nil {
		return err
	}
	if err := p.prepare(ctx); err != nil {
		return fmt.Errorf("prepare the streams: %w", err)
	}
	if p.clock, err = bus.NewClock(ctx, p.conn, p.streams()...); err != nil {
		return err
	}
	p.closers = append(p.closers, p.clock.Close)
	return p.share(ctx)
}

// connect connects to the embedded NATS server, which it starts, or to that of the configuration.
func (p *process) connect(ctx context.Context) error {
	if !p.Use.Embedded {
		arrived := p.remind(config.RedactURLs(p.Config.NATS.URL))
		defer arrived()
		as := p.role()
		if p.beside() {
			as = "" // the processes of "up" wait for answers where no single role may send them
		}
		conn, err := dialAs(ctx, p.Config, "waggle/"+p.name(), as, p.Logger)
		p.conn = conn
		return err
	}
	srv, err := p.embed()
	if err != nil {
		return err
	}
	p.conn, err = dial(ctx, bus.Config{
		URL: srv.ClientURL(), Name: "waggle/" + p.name(), NKeySeedFile: keys.SeedFile(own.KeyFolder(p.Config), own.EveryRole), InProcess: srv, Trouble: srv.Trouble, Partitions: p.Config.Partitions(), Logger: p.Logger,
	})
	return err
}

// prepare creates the streams, or waits until bootstrap has created them.
func (p *process) prepare(ctx context.Context) error {
	if p.Use.Embedded {
		if err := bus.Bootstrap(ctx, p.conn, Topology(p.Config)); err != nil {
			return err
		}
		return bus.Replace(ctx, p.conn)
	}
	if p.Config.NATS.Bootstrap == config.BootstrapAuto && !p.beside() {
		return bus.Bootstrap(ctx, p.conn, Topology(p.Config))
	}
	return bus.Await(ctx, p.conn, Topology(p.Config), p.streams()...)
}

// beside reports whether the process helps a running "waggle up", which makes the streams and has a key for it.
func (p *process) beside() bool { return !p.Use.Embedded && own.Beside(p.Config) }

// role returns the user of the process on the bus: a process with several roles has no user.
func (p *process) role() permission.Role {
	if len(p.Use.Roles) != 1 {
		return ""
	}
	return permission.Role(p.Use.Roles[0])
}

// streams returns the streams that the roles of the process use.
func (p *process) streams() []string {
	var out []string
	for _, r := range p.Use.Roles {
		if l, ok := permission.Of(permission.Role(r), p.Config.Partitions()); ok {
			out = append(out, l.Streams...)
		}
	}
	return out
}

// reminder is the interval at which a process logs that it still waits for NATS.
const reminder = 5 * time.Second

// remind logs the wait for NATS until arrived is called.
func (p *process) remind(url string) (arrived func()) {
	p.Logger.Info().Str("url", url).Msg("connecting to NATS")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		t := time.NewTicker(reminder)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				p.Logger.Warn().Str("url", url).Msg("waiting for NATS")
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// openSigning reads the keys that sign and verify commands.
func (p *process) openSigning() error {
	c, err := own.Signing(p.Config, p.Use.Embedded)
	if err == nil {
		p.signing, err = signing.Open(c, p.Use.Has(config.RoleGateway), p.now)
	}
	return err
}

// name describes the process in the connection lists of NATS.
func (p *process) name() string {
	if len(p.Use.Roles) == len(config.Roles) {
		return "all"
	}
	name := p.Use.Roles[0]
	for _, r := range p.Use.Roles[1:] {
		name += "+" + r
	}
	return name
}

// Topology returns the configured topology of the streams.
func Topology(c config.Config) bus.Topology {
	t := bus.DefaultTopology()
	t.Replicas = c.NATS.Replicas
	if c.NATS.EventMaxAge > 0 {
		t.EventMaxAge = c.NATS.EventMaxAge
	}
	if c.NATS.EventMaxBytes > 0 {
		t.EventMaxBytes = c.NATS.EventMaxBytes
	}
	t.ObjectMaxBytes = c.NATS.ObjectMaxBytes
	if c.Audit.MaxAge > 0 {
		t.AuditMaxAge = c.Audit.MaxAge
	}
	if c.Audit.MaxBytes > 0 {
		t.AuditMaxBytes = c.Audit.MaxBytes
	}
	return t
}

// share opens the parts that several roles use.
func (p *process) share(ctx context.Context) (err error) {
	// A process with the role tools alone does not read logs.
	if slices.Contains(p.streams(), subject.Partition(0).EventStream()) {
		p.log, err = eventlog.New(p.conn, eventlog.Options{Logger: p.Logger, Registry: p.registry})
		if err != nil {
			return fmt.Errorf("open the event log: %w", err)
		}
		p.closers = append(p.closers, p.log.Close)
	}
	p.directory, err = directory.Open(ctx, p.conn)
	if err != nil {
		return fmt.Errorf("open the directory: %w", err)
	}
	p.directory.Stamp(p.Version, runtime.Version())
	p.closers = append(p.closers, p.directory.Close)
	p.commands = command.NewSender(p.conn)
	if err := p.openSigning(); err != nil {
		return err
	}
	if err := p.openAudit(); err != nil { //nolint:contextcheck // the audit log outlives the start
		return fmt.Errorf("open the audit log: %w", err)
	}
	if p.Use.Has(config.RoleGateway) {
		p.auth, err = authenticator(ctx, p.Config, p.Logger)
	}
	return err
}

// now returns the time by the bus' clock.
func (p *process) now() time.Time { return p.clock.Now() }

// builder creates a component without starting it.
type builder func(context.Context) (lifecycle.Component, error)

// builders returns the builders of each role but the gateway, in the order of starting.
func (p *process) builders() map[string][]builder {
	return map[string][]builder{
		config.RoleTools: {p.tools}, config.RoleWorker: {p.worker, p.trials, p.letters(config.RoleWorker)},
		config.RolePipeline: {p.pipeline, p.letters(config.RolePipeline)},
		config.RoleSession:  {p.session, p.survey, p.installation, p.letters(config.RoleSession)},
		config.RoleTask:     {p.task, p.letters(config.RoleTask)},
		config.RoleTeam:     {p.members, p.team, p.letters(config.RoleTeam)},
	}
}

func (p *process) parts(ctx context.Context) ([]lifecycle.Component, error) {
	var out []lifecycle.Component
	add := func(role string, build builder) error {
		c, err := build(ctx)
		if err != nil {
			return fmt.Errorf("role %s: %w", role, err)
		}
		out = append(out, c)
		return nil
	}
	if t := p.telemetry(); t != nil {
		out = append(out, t)
	}
	p.rates = rates.New(p.conn, p.registry)
	out = append(out, p.rates)
	builders := p.builders()
	for _, role := range p.Use.Roles {
		for _, build := range builders[role] {
			if err := add(role, build); err != nil {
				return nil, err
			}
		}
	}
	// The assistant's tasks need all other roles and not the gateway: it drains after the gateway has stopped accepting
	// requests, and before the other roles.
	if p.Use.Has(config.RoleWorker) && p.Config.Assistant.Enabled {
		if err := add(config.RoleWorker, p.assistant); err != nil {
			return nil, err
		}
	}
	if p.Use.Has(config.RoleGateway) {
		if err := add(config.RoleGateway, p.gateway); err != nil {
			return nil, err
		}
	}
	r, err := p.reloader()
	if err != nil {
		return nil, err
	}
	out = append(out, r)
	if !p.Use.Has(config.RoleGateway) && p.Config.Addr != "" {
		h := listener.NewHealth(p.Config.Addr, p.ready)
		p.addr = h.Addr
		out = append(out, h)
	}
	return append(out, &announcer{tell: p.announce}), nil
}

// ready returns the reason why the process cannot work now, or nil.
func (p *process) ready() error {
	if !p.conn.Up() {
		return errors.New("not connected to NATS")
	}
	return p.conn.Trouble()
}

func (p *process) announce() {
	p.running.Addr, p.running.Telemetry = p.addr(), p.internal()
	p.Logger.Info().Strs("roles", p.Use.Roles).Msg("components running")
	if p.Ready != nil { // writes the last lines of the start
		p.Ready(p.running)
	}
}

func (p *process) close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		p.closers[i]()
	}
}
