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

// lookEvery is the interval at which the reloader compares the configuration files with those that it read last: short
// enough that an operator sees a withdrawn key take effect, and a read of some kilobytes. A socket lives on for a little over three
// seconds after its key was withdrawn: gateways ask for withdrawn credentials every second, and the reloader reads files one
// look after they have stopped changing.
const lookEvery = time.Second

// errSwitch refuses a change that a running process cannot apply to its connections.
var errSwitch = errors.New("auth: authentication was off when the process started; restart it to switch authentication on")

// reloader reads the configuration again when its files change or on a signal, and replaces the credentials in force.
// An unusable configuration changes nothing. All other settings wait for the next start.
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

	applied config.Stamp  // the files of the last read, good or bad
	seen    config.Stamp  // the files at the last look
	auth    config.Auth   // the credentials in force
	rest    config.Config // the other settings of the last read
	trouble string        // the reason why the files are not used; empty if they are
	signing string        // the same of the signing keys
}

// reloader creates the reloader and registers its metrics. The files count as unchanged since the process started.
func (p *process) reloader() (*reloader, error) {
	outcomes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waggle_config_reloads_total", Help: "Reloads of the configuration. A refused one changes nothing.",
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

// Drain implements lifecycle.Component. The reloader runs until Stop, so that a drain applies withdrawn keys, too.
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
			r.lookSigning()
		case <-r.p.Hangup:
			r.p.Logger.Info().Msg("configuration reload requested by SIGHUP")
			r.trouble = ""
			r.read()
		}
	}
}

// look reads the files if they have changed and are the same at a second look: an editor that is still writing must not
// withdraw the keys that it has not written yet. Unusable files are read again at every look: a key set that they name may
// have appeared.
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

// lookSigning uses the signing keys of replaced files. It logs, once for each reason, why they are not used.
func (r *reloader) lookSigning() {
	before, _ := r.p.signing.State()
	err := r.p.signing.Look()
	if now, public := r.p.signing.State(); now != before {
		r.p.Logger.Info().Strs("accepted", public).Msg("signing keys rotated")
	}
	switch {
	case err == nil:
		r.signing = ""
	case err.Error() != r.signing:
		r.signing = err.Error()
		r.p.Logger.Error().Err(err).Msg("signing keys rejected; previous keys stay in use")
	}
}

// read applies the files, or reports why they are not used.
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
		r.p.Logger.Warn().Msg("changed settings ignored until restart")
	}
	if err := r.p.signing.Configure(c.Signing); err != nil {
		return err
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
	r.p.Logger.Info().Int("api_keys", len(c.Auth.APIKeys)).Bool("jwt", next.JWT != nil).Msg("credentials reloaded")
	return nil
}

// refuse logs, once for each reason, why the files are not used.
func (r *reloader) refuse(err error) {
	r.bad.Set(1)
	if err.Error() == r.trouble {
		return
	}
	r.trouble = err.Error()
	r.fails.Inc()
	r.p.Logger.Error().Err(err).Msg("configuration rejected; previous credentials stay in use")
}

// others returns the settings that take effect at the next start.
func others(c config.Config) config.Config {
	c.Auth, c.Signing = config.Auth{}, config.Signing{}
	return c
}
