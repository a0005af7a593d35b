package index

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// defaultEvery is the time between two writes of one summary.
	defaultEvery = time.Second
	// defaultCatchUp is the time after which changes are found whose announcements were lost without a sign.
	defaultCatchUp = time.Minute
	// announced is the number of announcements that may wait; beyond it they are dropped, and a catch-up follows.
	announced = 8192
	// failed spaces attempts while the bus fails.
	failed = time.Second
)

// Config configures a Follower. Index, Conn and Kind are required.
type Config struct {
	Index  *Index
	Conn   *bus.Conn
	Kind   id.Kind
	Logger zerolog.Logger
	Fades  bool // entries are removed by markers: the role of the process may not purge

	Owner func() bool               // this process writes the index; nil: it does
	Watch func(func()) (end func()) // calls the function when Owner may have changed; nil: it never does

	Every   time.Duration // between two writes of one summary; default 1 s
	CatchUp time.Duration // between two catch-ups; default 1 min
	Now     func() time.Time
	After   func(time.Duration) <-chan time.Time
}

// Follower keeps the index up to date while it is the owner: it follows announcements, and catches up from the logs at its
// start, after a loss, and at intervals. Two owners at once do each other's work again and do no harm.
type Follower struct {
	writer
	cfg    Config
	cancel context.CancelFunc
	work   sync.WaitGroup
	behind chan struct{} // announcements may have been lost
	moved  chan struct{} // the owner may be another one
	again  chan struct{} // the bus may have started again
	doubt  chan struct{} // the index may have again what was removed from it

	dirty   map[subject.Log]struct{}
	written map[subject.Log]time.Time // summaries that were written within Every
}

// NewFollower returns a follower that is not started.
func NewFollower(cfg Config) *Follower {
	if cfg.Every <= 0 {
		cfg.Every = defaultEvery
	}
	if cfg.CatchUp <= 0 {
		cfg.CatchUp = defaultCatchUp
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.After == nil {
		cfg.After = time.After
	}
	if cfg.Owner == nil {
		cfg.Owner = func() bool { return true }
	}
	if cfg.Watch == nil {
		cfg.Watch = func(func()) func() { return func() {} }
	}
	return &Follower{
		writer: writer{index: cfg.Index, conn: cfg.Conn, kind: cfg.Kind, fades: cfg.Fades, logger: cfg.Logger},
		cfg:    cfg, behind: make(chan struct{}, 1), moved: make(chan struct{}, 1), again: make(chan struct{}, 1), doubt: make(chan struct{}, 1),
		dirty: map[subject.Log]struct{}{}, written: map[subject.Log]time.Time{},
	}
}

// Start begins to follow, until Stop is called. The end of ctx does not end the work.
func (f *Follower) Start(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	f.work.Go(func() {
		defer f.cfg.Watch(func() { poke(f.moved) })()
		for ctx.Err() == nil {
			f.turn(ctx)
		}
	})
}

// Stop ends the work. It may be called repeatedly, and before Start.
func (f *Follower) Stop() {
	if f.cancel != nil {
		f.cancel()
	}
	f.work.Wait()
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// turn waits to be the owner, and then follows until another one is.
func (f *Follower) turn(ctx context.Context) {
	if !f.cfg.Owner() {
		select {
		case <-ctx.Done():
		case <-f.moved:
		}
		return
	}
	err := f.follow(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	f.logger.Debug().Err(err).Msg("index follower will be restarted")
	select {
	case <-ctx.Done():
	case <-f.cfg.After(failed):
	}
}

// follow keeps the index up to date while this process is the owner.
func (f *Follower) follow(ctx context.Context) error {
	clear(f.dirty)
	f.covered = coverage{}
	news := make(chan *nats.Msg, announced)
	var subs subscriptions
	for _, typ := range kinds[f.kind] {
		sub, err := f.conn.NATS().ChanSubscribe(subject.LiveType(f.kind, string(typ)), news)
		if err != nil {
			return fmt.Errorf("subscribe to announcements: %w", err)
		}
		subs = append(subs, sub)
		defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	}
	defer f.conn.Watch(func(up bool) {
		if up {
			poke(f.again)
			poke(f.behind)
		}
	})()
	if err := f.conn.Flush(ctx); err != nil {
		return err
	}
	defer f.check(ctx)()
	for f.cfg.Owner() {
		select {
		case <-f.again:
			f.covered = coverage{} // of entries that the bus may have lost
			poke(f.doubt)
		default:
		}
		before := subs.dropped()
		if err := f.CatchUp(ctx); err != nil {
			return err
		}
		if err := f.attend(ctx, news, func() bool { return subs.dropped() > before }); err != nil {
			return err
		}
	}
	return nil
}

// check looks for entries that a crash of the bus has brought back, now and after each new connection, until end is called.
func (f *Follower) check(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	poke(f.doubt)
	work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-f.doubt:
			}
			err := f.Recheck(ctx)
			if err == nil || ctx.Err() != nil {
				continue
			}
			f.logger.Debug().Err(err).Msg("index check will be retried")
			select {
			case <-ctx.Done():
			case <-f.cfg.After(failed):
				poke(f.doubt)
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// subscriptions share a channel.
type subscriptions []*nats.Subscription

// dropped counts the messages that the channel had no room for. The client library tells only the first of each subscription's
// losses in a row.
func (s subscriptions) dropped() (n int) {
	for _, sub := range s {
		lost, _ := sub.Dropped() // an error if the connection is closed
		n += max(0, lost)
	}
	return n
}

// attend follows announcements until a catch-up is due, also because some were lost, or this process may not be the owner any
// more.
func (f *Follower) attend(ctx context.Context, news <-chan *nats.Msg, lost func() bool) error {
	due := f.cfg.After(f.cfg.CatchUp)
	for {
		var later <-chan time.Time
		if len(f.dirty) > 0 {
			later = f.cfg.After(f.cfg.Every / 4)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.behind:
			return nil
		case <-due:
			return nil
		case <-f.moved:
			if !f.cfg.Owner() {
				return nil
			}
		case <-later:
		case m := <-news:
			f.note(m)
			for range len(news) {
				f.note(<-news)
			}
		}
		if err := f.flush(ctx); err != nil {
			return err
		}
		if lost() {
			return nil
		}
	}
}

func (f *Follower) note(m *nats.Msg) {
	if log, _, err := subject.ParseLive(m.Subject); err == nil {
		f.dirty[log] = struct{}{}
	}
}

// flush writes the summaries that have changed and were not written within Every.
func (f *Follower) flush(ctx context.Context) error {
	now := f.cfg.Now()
	for log, at := range f.written {
		if now.Sub(at) >= f.cfg.Every {
			delete(f.written, log)
		}
	}
	logs := make([]subject.Log, 0, chunk)
	for log := range f.dirty {
		if _, soon := f.written[log]; soon {
			continue
		}
		delete(f.dirty, log)
		f.written[log] = now
		if logs = append(logs, log); len(logs) == chunk {
			if err := f.update(ctx, logs); err != nil {
				return err
			}
			logs = logs[:0]
		}
	}
	return f.update(ctx, logs)
}
