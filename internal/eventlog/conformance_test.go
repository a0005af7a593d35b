package eventlog

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestConformanceR1(t *testing.T) {
	t.Parallel()
	Conformance(t, newRig(t, 1))
}

func TestConformanceR3(t *testing.T) {
	t.Parallel()
	Conformance(t, newRig(t, 3))
}

// Conformance checks the guarantees of the event log, on any installation.
func Conformance(t *testing.T, r *rig) {
	t.Run("lost ack", func(t *testing.T) { lostAck(t, r) })
	t.Run("decide again", func(t *testing.T) { decideAgain(t, r) })
	t.Run("racing writers", func(t *testing.T) { racingWriters(t, r) })
	t.Run("slow readers", func(t *testing.T) {
		underLoad(t, r, script{name: "slow readers", pause: time.Millisecond, step: 2 * loadStep})
	})
	if r.Replicas() > 1 {
		t.Run("step-downs", func(t *testing.T) {
			underLoad(t, r, script{name: "step-downs", blows: 2, strike: func(l *load) {
				for _, log := range l.logs[:4] {
					r.stepDown(l.conn, subject.DefaultPartitions.Stream(log))
				}
			}})
		})
	}
	t.Run("cut connections", func(t *testing.T) {
		underLoad(t, r, script{name: "cut connections", blows: 6, step: loadStep / 4, proxied: true, strike: func(l *load) {
			for i, p := range l.proxies {
				if i < writerStores {
					p.breakNext(t)
				} else {
					p.breakAll()
				}
			}
		}})
	})
	t.Run("kill -9", func(t *testing.T) { // the other logs grow during an election, and all readers are compared in the end
		underLoad(t, r, script{name: "kill -9", pause: 4 * loadPause, blows: kills(), strike: func(l *load) { l.killLeader(t) }})
	})
}

// script describes the disturbances while writers and readers work.
type script struct {
	name   string
	blows  int
	strike func(*load)
	pause  time.Duration // of each writer between two events, 0 = loadPause
	step   int64         // events between two blows, 0 = loadStep

	proxied bool // every Store connects through a separate proxy, the writers' first
}

// kills is the number of killed leaders; each takes 4 to 7 s on R3.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("WAGGLE_LOG_KILLS")); err == nil {
		return n
	}
	return 2
}

// lostAck: the event was stored, but the acknowledgement was lost.
func lostAck(t *testing.T, r *rig) {
	conn := r.connect(t)
	s := newStore(t, conn, Options{})
	log := testLog("lost-ack-" + r.name)
	f := &fold{}
	w := s.Writer(log, f.observe)
	require.NoError(t, w.Append(t.Context(), missing(f.has, notice(log, "a"))))
	sink := newRecorder(-1)
	defer watch(s, log, Cursor{}, sink).Close()
	sink.wait(t, "caught up", func() bool { return len(sink.caught) == 1 })

	b, c := notice(log, "b"), notice(log, "c")
	inject(t, conn, log, b, 2, w.at.Stream) // stored, not announced, not acknowledged
	require.NoError(t, w.Append(t.Context(), missing(f.has, b, c)))
	require.Equal(t, []string{"a", "b", "c"}, f.ids)
	sink.reach(t, 3)
	sink.exact(t, 0)

	// The same with a foreign event after the own one.
	d := notice(log, "d")
	stream := inject(t, conn, log, d, 4, w.at.Stream)
	inject(t, conn, log, notice(log, "foreign"), 5, stream)
	calls := 0
	require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) {
		calls++
		return missing(f.has, d)()
	}))
	require.NoError(t, w.Sync(t.Context()))
	require.Equal(t, []string{"a", "b", "c", "d", "foreign"}, f.ids)
	require.LessOrEqual(t, calls, 2, "R1 refuses and sees both, R3 recognises the own event only")
	sink.reach(t, 5)
	sink.exact(t, 0)

	// And through Deltas.
	e := newEvent(log, "d1", delta("m", "text"))
	inject(t, conn, log, e, 6, w.at.Stream)
	checks := 0
	ds := w.Deltas(t.Context(), 0, func(int, string) (event.Event, error) { return e, nil }, func() error { checks++; return nil })
	require.NoError(t, ds.Write("text"))
	require.NoError(t, ds.Close())
	require.Equal(t, "d1", f.ids[5])
	require.Len(t, f.ids, 6)
	require.Zero(t, checks, "no other writer wrote")
}

// decideAgain: a foreign event changes the decision.
func decideAgain(t *testing.T, r *rig) {
	s := r.store(t, Options{})
	log := testLog("again-" + r.name)
	mine, theirs := &fold{}, &fold{}
	a, b := s.Writer(log, mine.observe), s.Writer(log, theirs.observe)
	require.NoError(t, a.Sync(t.Context()))
	require.NoError(t, b.Append(t.Context(), missing(theirs.has, notice(log, "answer-of-b"))))
	calls := 0
	require.NoError(t, a.Append(t.Context(), func() ([]event.Event, error) {
		if calls++; mine.has("answer-of-b") {
			return nil, nil // a question takes exactly one answer
		}
		return []event.Event{notice(log, "answer-of-a")}, nil
	}))
	require.Equal(t, 2, calls)
	require.Equal(t, []string{"answer-of-b"}, mine.ids)

	require.NoError(t, b.Append(t.Context(), missing(theirs.has, notice(log, "fence"))))
	err := a.Append(t.Context(), func() ([]event.Event, error) {
		if mine.has("fence") {
			return nil, errSynthetic
		}
		return []event.Event{notice(log, "late")}, nil
	})
	require.Equal(t, errSynthetic, err, "unchanged")
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	require.EqualValues(t, 2, end.Seq)
}

// racingWriters: all writers append to the same log.
func racingWriters(t *testing.T, r *rig) {
	const writers, each = 6, 40
	log := testLog("race-" + r.name)
	s := r.store(t, Options{})
	sink := newRecorder(-1)
	defer watch(s, log, Cursor{}, sink).Close()
	conns := []*Store{s, r.store(t, Options{}), r.store(t, Options{})}
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			f := &fold{}
			w := conns[i%len(conns)].Writer(log, f.observe)
			for n := range each {
				if err := w.Append(t.Context(), missing(f.has, notice(log, fmt.Sprintf("w%d-%d", i, n)))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	sink.reach(t, writers*each)
	sink.exact(t, 0)
	ids := make(map[string]int)
	require.NoError(t, s.Read(t.Context(), log, Cursor{}, func(e *Entry) error { ids[e.ID]++; return nil }))
	require.Len(t, ids, writers*each)
	report(t, r, "racing writers", tally{acked: writers * each, readable: len(ids), readers: 1},
		fmt.Sprintf("%d writers, %.0f times 10071, %.0f times 10164", writers, sum(conns, "10071"), sum(conns, "10164")))
}

// load is writers and readers at work while the servers are disturbed.
type load struct {
	r     *rig
	conn  *bus.Conn // of the nemesis
	logs  []subject.Log
	acked atomic.Int64
	stop  chan struct{}
	pause time.Duration
	step  int64

	proxies []*proxy
	marked  map[string][]string // acknowledged ids by log, in order of each writer
	mu      sync.Mutex
}

const (
	loadLogs    = 6
	loadWriters = 2 // for each log
	// writerStores is the number of connections for writing.
	writerStores = 2
	// loadPause keeps the test from measuring only two cores.
	loadPause = 4 * time.Millisecond
	// loadStep is the number of acknowledged events between two disturbances.
	loadStep = 600
)

// underLoad runs writers and readers, disturbs a number of times and counts.
func underLoad(t *testing.T, r *rig, sc script) {
	l := &load{r: r, conn: r.connect(t), stop: make(chan struct{}), marked: make(map[string][]string)}
	l.pause, l.step = sc.pause, sc.step
	if sc.pause == 0 {
		l.pause = loadPause
	}
	if sc.step == 0 {
		l.step = loadStep
	}
	for i := range loadLogs {
		l.logs = append(l.logs, testLog(fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(sc.name, " ", "_"), r.name, i)))
	}
	var stores []*Store
	for range writerStores {
		stores = append(stores, l.store(t, sc, Options{Retry: time.Minute}))
	}
	watching := l.store(t, sc, Options{Check: 2 * time.Second})
	narrow := l.store(t, sc, Options{Check: 2 * time.Second, Inbound: 4, Ring: 16})
	var sinks []*recorder
	var stopSlow []func()
	for _, log := range l.logs {
		exact, lossy, slow := newRecorder(-1), newRecorder(-1), newRecorder(1)
		defer watch(watching, log, Cursor{}, exact).Close()
		defer watch(narrow, log, Cursor{}, lossy).Close() // its announcements are dropped by the client library
		v := watch(watching, log, Cursor{}, slow)
		defer v.Close()
		stopSlow = append(stopSlow, hesitate(v, slow))
		sinks = append(sinks, exact, lossy, slow)
	}
	gremlin(t, r.connect(t), l.logs)
	writers := l.write(t, stores)
	for range sc.blows {
		l.await(t, l.step)
		sc.strike(l)
	}
	l.await(t, l.step)
	close(l.stop)
	writers.Wait()
	for _, stop := range stopSlow {
		stop()
	}
	got := l.verify(t, r.store(t, Options{}), sinks)
	report(t, r, sc.name, got, fmt.Sprintf("%d blows, %.0f uncertain appends, %.0f heals, %.0f times full", sc.blows,
		sum(stores, "timeout", "no_responders", "disconnected", "duplicate", "other", "10158"),
		testutil.ToFloat64(narrow.met.heals.WithLabelValues(healGap))+testutil.ToFloat64(narrow.met.heals.WithLabelValues(healCheck)),
		testutil.ToFloat64(watching.met.lags)))
	require.Equal(t, got.acked, got.readable)
	require.Zero(t, got.lost)
	require.Zero(t, got.doubled)
	require.Zero(t, got.holes)
	require.Equal(t, len(sinks), got.readers)
}

// store returns a Store over a separate connection.
func (l *load) store(t *testing.T, sc script, o Options) *Store {
	if !sc.proxied {
		return l.r.store(t, o)
	}
	p := newProxy(t, l.r.Port(len(l.proxies)%l.r.Replicas()))
	l.proxies = append(l.proxies, p)
	return newStore(t, connect(t, p.url()), o)
}

// gremlin announces some events once more, sooner or later.
func gremlin(t *testing.T, conn *bus.Conn, logs []subject.Log) {
	const mark = "Gremlin"
	var mu sync.Mutex // each subscription has a goroutine
	var kept []*nats.Msg
	dice := rand.New(rand.NewPCG(1, 2))
	for _, log := range logs {
		_, err := conn.NATS().Subscribe(log.LiveAll(), func(m *nats.Msg) {
			if m.Header.Get(mark) != "" {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept[max(0, len(kept)-40):], m)
			if dice.IntN(4) == 0 {
				again := kept[dice.IntN(len(kept))]
				h := maps.Clone(again.Header)
				h.Set(mark, "1")
				_ = conn.NATS().PublishMsg(&nats.Msg{Subject: again.Subject, Header: h, Data: again.Data})
			}
		})
		require.NoError(t, err)
	}
}

// hesitate gives a full viewer a little room now and then, and after stop unlimited room.
func hesitate(v *Viewer, r *recorder) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(60 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.allow(1)
				v.Resume()
			case <-done:
				r.allow(-1)
				v.Resume()
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// write starts the writers.
func (l *load) write(t *testing.T, stores []*Store) *sync.WaitGroup {
	var wg sync.WaitGroup
	for _, log := range l.logs {
		for i := range loadWriters {
			wg.Go(func() { l.writer(t, stores[i%len(stores)], log, fmt.Sprintf("w%d", i)) })
		}
	}
	return &wg
}

// sum adds up the conflicts of these codes.
func sum(stores []*Store, codes ...string) (n float64) {
	for _, s := range stores {
		for _, c := range codes {
			n += testutil.ToFloat64(s.met.conflicts.WithLabelValues(c))
		}
	}
	return n
}

func (l *load) writer(t *testing.T, s *Store, log subject.Log, name string) {
	f := make(map[string]bool)
	w := s.Writer(log, func(e *Entry) { f[e.ID] = true })
	pace := time.NewTicker(l.pause)
	defer pace.Stop()
	for n := 0; ; n++ {
		ev := newEvent(log, fmt.Sprintf("%s-%d", name, n), delta(name, fmt.Sprintf("%d,", n)))
		if err := w.Append(context.Background(), missing(func(id string) bool { return f[id] }, ev)); err != nil {
			t.Errorf("append: %v", err)
			return
		}
		l.mu.Lock()
		l.marked[log.Name()] = append(l.marked[log.Name()], ev.ID)
		l.mu.Unlock()
		l.acked.Add(1)
		select {
		case <-l.stop:
			return
		case <-pace.C:
		}
	}
}

// await returns when n more events have been acknowledged.
func (l *load) await(t *testing.T, n int64) {
	goal := l.acked.Load() + n
	require.Eventually(t, func() bool { return l.acked.Load() >= goal || t.Failed() }, 2*time.Minute, 5*time.Millisecond)
}

// killLeader kills the server that leads the first log's stream with SIGKILL, waits
// until the log takes events again and starts the server anew.
func (l *load) killLeader(t *testing.T) {
	victim := l.r.LeaderOf(subject.DefaultPartitions.Stream(l.logs[0]))
	l.r.Crash(victim)
	if l.r.Replicas() > 1 {
		count := func() int {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.marked[l.logs[0].Name()])
		}
		before := count()
		require.Eventually(t, func() bool { return count() > before+10 }, time.Minute, 20*time.Millisecond)
	}
	l.r.Restart(victim)
	l.r.LeaderOf(subject.DefaultPartitions.Stream(l.logs[0]))
}

// tally holds the counts of a test.
type tally struct{ acked, readable, lost, doubled, holes, readers int }

// verify reads every log and compares it with the acknowledged events and with the events of each reader.
func (l *load) verify(t *testing.T, s *Store, sinks []*recorder) tally {
	var sum tally
	per := len(sinks) / len(l.logs)
	for i, log := range l.logs {
		var entries []*Entry
		require.NoError(t, s.Read(t.Context(), log, Cursor{}, func(e *Entry) error { entries = append(entries, e); return nil }))
		seen := make(map[string]int)
		for n, e := range entries {
			seen[e.ID]++
			if e.Sequence != uint64(n+1) {
				sum.holes++
			}
			if seen[e.ID] > 1 {
				sum.doubled++
			}
		}
		for _, id := range l.marked[log.Name()] {
			if seen[id] == 0 {
				sum.lost++
			}
		}
		sum.acked += len(l.marked[log.Name()])
		sum.readable += len(seen)
		want := texts(t, entries)
		for _, r := range sinks[i*per : (i+1)*per] {
			r.reach(t, uint64(len(entries)))
			require.Equal(t, want, texts(t, r.entries), "%s", log)
			require.Empty(t, r.lag)
			sum.readers++
		}
	}
	return sum
}

func report(t *testing.T, r *rig, what string, n tally, note string) {
	t.Logf("| %s | %-14s | acknowledged %6d | readable %6d | lost %d | doubled %d | holes %d | readers exact %2d | %s",
		r.name, what, n.acked, n.readable, n.lost, n.doubled, n.holes, n.readers, note)
}
