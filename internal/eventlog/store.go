package eventlog

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog/internal/request"
	"github.com/waggle-dev/waggle/internal/reuse"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Defaults of Options.
const (
	// defaultRetry must outlast the election after a killed R3 leader (4.2 to 7.4 s measured) twice.
	defaultRetry = 20 * time.Second
	// defaultRing covers a reconnect of some seconds at the pace of a model's text.
	defaultRingBytes = 4 << 20
	// defaultTotalBytes is a sixteenth of the memory of a small node.
	defaultTotalBytes = 256 << 20
	// defaultCheck bounds the delay of an event whose writer died between storing and announcing it; a check of 1,000
	// logs takes 12 ms.
	defaultCheck  = 45 * time.Second
	defaultLinger = 10 * time.Second
	// defaultInbound is the number of announcements that may wait for the dispatcher: about 100 ms at the highest rate
	// of one connection.
	defaultInbound = 16384
)

const (
	// readersPerStream bounds concurrent reads of one stream: eight scattered replays at a time saturate a two-core
	// server.
	readersPerStream = 4
	// healers bounds concurrent heals: when announcements of many logs are lost, reading them must not take the server's
	// time from the appends.
	healers = 8
	// memoryReaders bounds the workers that feed viewers from rings.
	memoryReaders = 4
)

// Options configure a Store. Zero values mean the defaults.
type Options struct {
	Logger     zerolog.Logger
	Registry   prometheus.Registerer // nil: metrics are not exported
	Retry      time.Duration         // retry budget for failures of the bus, default 20 s
	Ring       int                   // recent events kept per watched log, default as many as RingBytes allow
	RingBytes  int                   // memory of recent events per watched log, default 4 MiB
	TotalBytes int                   // memory of recent events of all watched logs, default 256 MiB; rings shrink beyond it
	Check      time.Duration         // interval of the comparison of a watched log's tail with its stream, default 45 s
	Linger     time.Duration         // time for which a log stays watched after its last viewer left, default 10 s
	Inbound    int                   // announcements that may wait for the dispatcher, default 16384; further ones are dropped and read later
}

func (o Options) withDefaults() Options {
	o.Retry = orDefault(o.Retry, defaultRetry)
	o.Ring = orDefault(o.Ring, math.MaxInt)
	o.RingBytes = orDefault(o.RingBytes, defaultRingBytes)
	o.TotalBytes = orDefault(o.TotalBytes, defaultTotalBytes)
	o.Check = orDefault(o.Check, defaultCheck)
	o.Linger = orDefault(o.Linger, defaultLinger)
	o.Inbound = orDefault(o.Inbound, defaultInbound)
	return o
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Store reads and writes event logs over one connection. It is safe for concurrent use.
type Store struct {
	opt     Options
	log     zerolog.Logger
	conn    *bus.Conn
	nc      *nats.Conn
	met     *metrics
	replies *request.Requester

	ctx    context.Context //nolint:containedctx // the life of the Store's own work, ended by Close
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // dispatcher and checker

	inbound    chan *nats.Msg
	wake       chan struct{}     // wakes the checker
	short      *reuse.Goroutines // for jobs that are over soon
	advisory   *nats.Subscription
	unheard    int // advisories that had been dropped before the last sweep; the checker's own
	unwatch    []func()
	slowSoon   atomic.Bool   // the checker will be woken because of lost announcements
	memory     *request.Pool // feeds viewers from rings
	heals      *request.Pool
	partitions subject.Partitions
	streams    []*request.Pool // by partition
	ringBytes  atomic.Int64
	said       announced
	recent     recent
	ends       ends

	mu     sync.Mutex
	closed bool
	tails  map[string]*tail // by tailKey
}

// New returns a Store over the connection, which must outlive it.
func New(conn *bus.Conn, opt Options) (*Store, error) {
	opt = opt.withDefaults()
	s := &Store{
		opt: opt, log: opt.Logger, conn: conn, nc: conn.NATS(),
		inbound: make(chan *nats.Msg, opt.Inbound), wake: make(chan struct{}, 1),
		partitions: conn.Partitions(), streams: make([]*request.Pool, conn.Partitions()),
		tails: make(map[string]*tail),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.short = reuse.New(s.ctx)
	s.memory, s.heals = s.newPool(memoryReaders), s.newPool(healers)
	var err error
	if s.met, err = newMetrics(opt.Registry, s.lag); err != nil {
		return nil, err
	}
	for i := range s.streams {
		s.streams[i] = s.newPool(readersPerStream)
	}
	if s.replies, err = request.New(s.nc); err != nil {
		return nil, err
	}
	if s.advisory, err = s.nc.ChanSubscribe(leaderAdvisories, s.inbound); err != nil {
		s.replies.Close()
		return nil, fmt.Errorf("subscribe to leader advisories: %w", err)
	}
	s.unwatch = []func(){conn.Watch(s.connection), conn.OnSlow(s.slow)}
	s.work.Go(s.dispatch)
	s.work.Go(s.check)
	return s, nil
}

func (s *Store) newPool(limit int) *request.Pool { return &request.Pool{Limit: limit, Go: s.short.Go} }

// Close ends all viewers with Failed(ErrClosed) and waits for the Store's work to end. Writers must not be used
// afterwards. Close is idempotent.
func (s *Store) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	tails := make([]*tail, 0, len(s.tails))
	for _, t := range s.tails {
		tails = append(tails, t)
	}
	s.mu.Unlock()
	for _, stop := range s.unwatch {
		stop()
	}
	s.cancel(ErrClosed)
	s.recent.close()
	s.work.Wait()
	s.memory.Close()
	s.heals.Close()
	for _, p := range s.streams {
		p.Close()
	}
	for _, t := range tails {
		t.fail(ErrClosed)
		s.drop(t)
	}
	_ = s.advisory.Unsubscribe()
	s.replies.Close()
}

// lag returns the number of events of watched logs that were announced and not delivered yet: over all logs, and of
// the log that is furthest behind.
func (s *Store) lag() (sum, most uint64) {
	s.mu.Lock()
	tails := slices.Collect(maps.Values(s.tails))
	s.mu.Unlock()
	for _, t := range tails {
		n := t.behind()
		sum, most = sum+n, max(most, n)
	}
	return sum, most
}

// pool returns the reader pool of the log's stream.
func (s *Store) pool(log subject.Log) *request.Pool { return s.streams[s.partitions.Of(log)] }
