package process

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/telemetry"
)

// lookEvery is how often the files of the configuration are compared with what was read
// last: often enough for whoever withdraws a key to see it happen, and some kilobytes to
// read. With the second within which gateways ask for withdrawn credentials, and one more
// look because files are read when they have stopped changing, a socket lives on for
// three seconds and a bit.
const lookEvery = time.Second

// errSwitch is for what a running process cannot do to those who are connected.
var errSwitch = errors.New("auth: authentication was off when the process started; to switch it on, restart it")

// reloader reads the configuration again when its files change, or when it is told to,
// and puts the credentials in it in place of those before. What cannot be used changes
// nothing. All other settings wait for the next start.
type reloader struct {
	p     *process
	every time.Duration
	done  prometheus.Counter
	fails prometheus.Counter
	bad   prometheus.Gauge

	life   context.Context //nolint:containedctx // the life of the component, ended by Stop
	cancel context.CancelFunc
	mu     sync.Mutex
	work   sync.WaitGroup

	applied config.Stamp  // of the files that were read last, good or bad
	seen    config.Stamp  // at the last look
	auth    config.Auth   // in force
	rest    config.Config // the other settings, as they were read last
	trouble string        // why they are not used; empty: they are
}

// reloader registers its metrics. The files are as they were when the process started.
func (p *process) reloader() (*reloader, error) {
	outcomes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waggle_config_reloads_total", Help: "How often the configuration was read again; what is not ok changed nothing.",
	}, []string{"outcome"})
	r := &reloader{
		p: p, every: lookEvery, done: outcomes.WithLabelValues("ok"), fails: outcomes.WithLabelValues("refused"),
		bad: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "waggle_config_refused", Help: "1 while the files of the configuration cannot be used, and the credentials before them stay in force.",
		}),
		auth: p.Config.Auth, rest: others(p.Config),
	}
	r.life, r.cancel = context.WithCancel(context.Background())
	if p.Source != nil {
		r.applied, r.seen = p.Source.Stamp(), p.Source.Stamp()
	}
	if err := telemetry.Register(p.registry, "the configuration", outcomes, r.bad); err != nil {
		return nil, err
	}
	return r, nil
}

// Name implements lifecycle.Component.
func (*reloader) Name() string { return "reloader" }

// Start implements lifecycle.Component.
func (r *reloader) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil {
		return errors.New("reloader: started after stop")
	}
	r.work.Go(r.run)
	return nil
}

// Drain implements lifecycle.Component: keys that are withdrawn now are withdrawn.
func (*reloader) Drain(context.Context) error { return nil }

// Stop implements lifecycle.Component.
func (r *reloader) Stop() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.work.Wait()
}

// Failed implements lifecycle.Component.
func (*reloader) Failed() <-chan error { return nil }

func (r *reloader) run() {
	t := time.NewTicker(r.every)
	defer t.Stop()
	for {
		select {
		case <-r.life.Done():
			return
		case <-t.C:
			r.look()
		case <-r.p.Hangup:
			r.p.Logger.Info().Msg("reload configuration after SIGHUP")
			r.trouble = ""
			r.read()
		}
	}
}

// look reads the files if they have changed and are the same for the second time: an
// editor that is in the middle of writing must not withdraw the keys that it has not
// written yet. While something cannot be used it is tried again at every look: a key set
// that is named there may have come.
func (r *reloader) look() {
	if r.p.Source == nil {
		return
	}
	stamp, err := r.p.Source.StampNow()
	switch {
	case err != nil:
		r.refuse(err)
	case stamp != r.seen:
		r.seen = stamp
	case stamp != r.applied || r.trouble != "":
		r.read()
	}
}

// read puts what the files say in force, or says why not.
func (r *reloader) read() {
	if r.p.Source == nil {
		return
	}
	l, err := r.p.Source.Again()
	if err != nil {
		r.refuse(err)
		return
	}
	r.applied, r.seen = l.Stamp(), l.Stamp()
	if err := l.Validate(r.p.Use); err != nil {
		r.refuse(err)
		return
	}
	if err := r.apply(l.Config); err != nil {
		r.refuse(err)
		return
	}
	r.done.Inc()
	r.bad.Set(0)
	r.trouble = ""
}

// apply puts the credentials of c in force.
func (r *reloader) apply(c config.Config) error {
	if rest := others(c); !reflect.DeepEqual(rest, r.rest) {
		r.rest = rest
		r.p.Logger.Warn().Msg("ignore changed settings until next start")
	}
	if !r.p.Use.Has(config.RoleGateway) || reflect.DeepEqual(c.Auth, r.auth) {
		return nil
	}
	a, ok := r.p.auth.(auth.Reloader)
	if !ok {
		return errSwitch
	}
	next := Auth(c.Auth)
	next.Logger = r.p.Logger
	if err := a.Reload(r.life, next); err != nil {
		return err
	}
	r.auth = c.Auth
	r.p.Logger.Info().Int("api_keys", len(c.Auth.APIKeys)).Bool("jwt", next.JWT != nil).Msg("reload credentials")
	return nil
}

// refuse says, once for each reason, why what the files say is not used.
func (r *reloader) refuse(err error) {
	r.bad.Set(1)
	if err.Error() == r.trouble {
		return
	}
	r.trouble = err.Error()
	r.fails.Inc()
	r.p.Logger.Error().Err(err).Msg("reject configuration, keep earlier credentials")
}

// others returns the settings that are used from the next start on.
func others(c config.Config) config.Config {
	c.Auth = config.Auth{}
	return c
}
