// Package survey measures values that a single process cannot count: the depth of the queues of
// commands, the state of the streams and their replicas, the number of dead letters, and the live
// replicas. It asks JetStream, so one process measures for all: the first replica of a service in
// the directory.
//
// Events within a process do not belong here: every package counts its own.
package survey

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// defaultEvery is a usual scrape interval: measuring more often would only load the streams' leaders.
	defaultEvery = 15 * time.Second
	// maxWait bounds one measurement: a cluster does not answer during an election.
	maxWait = 10 * time.Second
)

// Config names the replicas that take turns, and the measured services and streams.
type Config struct {
	Service  id.Name       // one of its replicas measures
	Instance id.Name       // this replica
	Services []id.Name     // services whose replicas are counted
	Streams  []string      // streams, including those of buckets
	Every    time.Duration // interval of measurements; default 15 s
	Registry prometheus.Registerer
	Logger   zerolog.Logger
}

// Survey is a lifecycle component.
type Survey struct {
	cfg    Config
	conn   *bus.Conn
	dir    *directory.Directory
	met    *metrics
	life   context.Context //nolint:containedctx // the life of the component, ended by Stop
	cancel context.CancelFunc
	never  chan error

	mu   sync.Mutex
	work sync.WaitGroup
}

// New returns a survey that is not started.
func New(c *bus.Conn, d *directory.Directory, cfg Config) (*Survey, error) {
	if cfg.Every <= 0 {
		cfg.Every = defaultEvery
	}
	m, err := newMetrics(cfg.Registry)
	if err != nil {
		return nil, err
	}
	s := &Survey{cfg: cfg, conn: c, dir: d, met: m, never: make(chan error)}
	s.life, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Name implements lifecycle.Component.
func (s *Survey) Name() string { return "survey" }

// Start begins to measure.
func (s *Survey) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return errors.New("survey: started after stop")
	}
	s.work.Go(func() { s.run(s.life) })
	return nil
}

// Drain implements lifecycle.Component: a survey has no work to finish.
func (s *Survey) Drain(context.Context) error { return nil }

// Stop ends the measurements at once.
func (s *Survey) Stop() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.work.Wait()
}

// Failed implements lifecycle.Component: a failed measurement does not end the component.
func (s *Survey) Failed() <-chan error { return s.never }

func (s *Survey) run(ctx context.Context) {
	t := time.NewTicker(s.cfg.Every)
	defer t.Stop()
	for {
		s.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Look measures once, or clears the metrics if it is another replica's turn.
func (s *Survey) Look(ctx context.Context) {
	if !s.turn() {
		s.met.reset()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := errors.Join(s.queues(ctx), s.streams(ctx)); err != nil && ctx.Err() == nil {
		s.met.errors.Inc()
		s.cfg.Logger.Warn().Err(err).Msg("failed to measure streams")
		return
	}
	for _, service := range s.cfg.Services {
		s.met.replicas.WithLabelValues(service.String()).Set(float64(len(s.dir.Members(directory.WhatService, service))))
	}
	s.met.looked.SetToCurrentTime()
}

// turn reports whether this replica measures. For a moment after a replica has joined two may do so; both then show
// the same.
func (s *Survey) turn() bool {
	members := s.dir.Members(directory.WhatService, s.cfg.Service)
	first := slices.MinFunc(append(members, directory.Member{Instance: s.cfg.Instance}), func(a, b directory.Member) int {
		return strings.Compare(a.Instance.String(), b.Instance.String())
	})
	return first.Instance == s.cfg.Instance
}

// queues measures the queues of all services, idle ones included.
func (s *Survey) queues(ctx context.Context) error {
	by, err := command.Depths(ctx, s.conn)
	if err != nil {
		return err
	}
	for _, service := range s.cfg.Services {
		if _, ok := by[service.String()]; !ok {
			by[service.String()] = command.Depth{}
		}
	}
	for service, d := range by {
		s.met.pending.WithLabelValues(service).Set(float64(d.Pending))
		s.met.out.WithLabelValues(service).Set(float64(d.Out))
		s.met.again.WithLabelValues(service).Set(float64(d.Redelivered))
	}
	return nil
}

// streams measures every stream. A stream that does not answer lacks a leader; the measurement continues with the
// others.
func (s *Survey) streams(ctx context.Context) error {
	for _, name := range s.cfg.Streams {
		one, cancel := context.WithTimeout(ctx, maxWait/4)
		stream, err := s.conn.JS().Stream(one, name)
		cancel()
		if err != nil {
			s.met.leader.WithLabelValues(name).Set(0)
			continue
		}
		s.show(stream.CachedInfo())
	}
	return ctx.Err()
}

func (s *Survey) show(i *jetstream.StreamInfo) {
	name := i.Config.Name
	s.met.messages.WithLabelValues(name).Set(float64(i.State.Msgs))
	s.met.bytes.WithLabelValues(name).Set(float64(i.State.Bytes))
	s.met.limit.WithLabelValues(name).Set(float64(max(i.Config.MaxBytes, 0)))
	missing, lag, led := 0, uint64(0), 1.0
	if c := i.Cluster; c != nil {
		missing = i.Config.Replicas - 1
		for _, r := range c.Replicas {
			if r.Current && !r.Offline {
				missing--
			}
			lag = max(lag, r.Lag)
		}
		if c.Leader == "" {
			led = 0
		}
	}
	s.met.leader.WithLabelValues(name).Set(led)
	s.met.missing.WithLabelValues(name).Set(float64(max(missing, 0)))
	s.met.lag.WithLabelValues(name).Set(float64(lag))
	if name == subject.StreamDead {
		s.met.dead.Set(float64(i.State.Msgs))
		if i.State.Msgs > 0 {
			s.met.newest.Set(float64(i.State.LastTime.Unix()))
		}
	}
}
