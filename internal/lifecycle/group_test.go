package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// script is a component that follows the test's orders and writes into a common diary.
type script struct {
	name   string
	diary  *diary
	start  func(context.Context) error
	drain  func(context.Context) error
	stop   func()
	failed chan error
}

type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, s)
}

func (s *script) Name() string         { return s.name }
func (s *script) Failed() <-chan error { return s.failed }

func (s *script) Start(ctx context.Context) error {
	s.diary.note("start " + s.name)
	if s.start != nil {
		return s.start(ctx)
	}
	return nil
}

func (s *script) Drain(ctx context.Context) error {
	s.diary.note("drain " + s.name)
	if s.drain != nil {
		return s.drain(ctx)
	}
	return nil
}

func (s *script) Stop() {
	s.diary.note("stop " + s.name)
	if s.stop != nil {
		s.stop()
	}
}

// stage is a group of three scripts whose signals the test sends.
type stage struct {
	*diary
	group   *Group
	a, b, c *script
	signals chan<- os.Signal
	cancel  context.CancelFunc
	result  chan error
}

const budget = 10 * time.Second

func newStage(t *testing.T) *stage {
	s := &stage{diary: &diary{}, result: make(chan error, 1)}
	s.group = NewGroup(zerolog.New(zerolog.NewTestWriter(t)), budget)
	s.group.listen = func(ch chan<- os.Signal) func() {
		s.signals = ch
		return func() {}
	}
	s.a, s.b, s.c = s.script("a"), s.script("b"), s.script("c")
	s.group.Add(s.a, s.b, s.c)
	return s
}

func (s *stage) script(name string) *script {
	return &script{name: name, diary: s.diary, failed: make(chan error, 1)}
}

// run runs the group until every goroutine waits.
func (s *stage) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s.cancel = cancel
	go func() { s.result <- s.group.Run(ctx) }()
	synctest.Wait()
}

func (s *stage) ends(t *testing.T, want error, lines ...string) {
	t.Helper()
	err := <-s.result
	s.cancel()
	if want == nil {
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, want)
	}
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, lines, s.lines)
}

var (
	started  = []string{"start a", "start b", "start c"}
	orderly  = []string{"drain c", "stop c", "drain b", "stop b", "drain a", "stop a"}
	complete = append(append([]string{}, started...), orderly...)
)

func TestTheEndOfTheContextDrainsInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.run(t)
		s.cancel()
		s.ends(t, nil, complete...)
	})
}

func TestOneSignalDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.run(t)
		s.signals <- syscall.SIGTERM
		s.ends(t, nil, complete...)
	})
}

// A program that also cancels the context at the first signal gets the same.
func TestASignalThatAlsoEndsTheContextCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.c.drain = func(ctx context.Context) error {
			synctest.Wait()
			return ctx.Err()
		}
		s.run(t)
		s.cancel()
		s.signals <- os.Interrupt
		s.ends(t, nil, complete...)
	})
}

func TestASecondSignalStopsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		began := time.Now()
		s.b.drain = untilDead
		s.run(t)
		s.signals <- os.Interrupt
		synctest.Wait()
		s.signals <- os.Interrupt
		s.ends(t, ErrStoppedNow, append(append([]string{}, started...), "drain c", "stop c", "drain b", "stop b", "stop a")...)
		require.Zero(t, time.Since(began))
	})
}

func TestTheBudgetEndsTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		began := time.Now()
		s.c.drain = untilDead
		s.run(t)
		s.cancel()
		err := <-s.result
		require.EqualError(t, err, "drain c: the drain budget of 10s is used up")
		require.Equal(t, budget, time.Since(began))
		require.Equal(t, append(append([]string{}, started...), "drain c", "stop c", "stop b", "stop a"), s.lines)
	})
}

// Even a component that ignores its context, and hangs in Stop as well, does not keep the others from ending.
func TestAComponentThatHangsIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		began := time.Now()
		never := make(chan struct{})
		s.b.drain = func(context.Context) error { <-never; return nil }
		s.b.stop = func() { <-never }
		s.run(t)
		s.cancel()
		err := <-s.result
		require.ErrorContains(t, err, "drain b: the drain budget")
		require.Equal(t, budget+stopGrace, time.Since(began))
		require.Contains(t, s.lines, "stop a")
		close(never)
		synctest.Wait()
	})
}

func TestAFailedStartEndsWhatWasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.b.start = func(context.Context) error { return errBroken }
		s.run(t)
		s.ends(t, errBroken, "start a", "start b", "stop b", "drain a", "stop a")
	})
}

func TestAComponentThatDiesTakesTheGroupDown(t *testing.T) {
	for name, die := range map[string]func(chan error){
		"with an error": func(ch chan error) { ch <- errBroken },
		"silently":      func(ch chan error) { close(ch) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.c.failed = nil
				s.run(t)
				die(s.b.failed)
				err := <-s.result
				require.ErrorContains(t, err, "b failed")
				require.Equal(t, complete, s.lines)
			})
		})
	}
}

func TestTheFirstErrorWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newStage(t)
		s.group.log = zerolog.New(&log)
		s.a.drain = func(context.Context) error { return errors.New("later") }
		s.run(t)
		s.b.failed <- errBroken
		s.ends(t, errBroken, complete...)
		require.Contains(t, log.String(), "drain a: later")
	})
}

func TestAnEndDuringTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.b.start = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s.run(t)
		s.signals <- os.Interrupt
		s.ends(t, nil, "start a", "start b", "stop b", "drain a", "stop a")
	})
}

func TestTwoSignalsEndAStartThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		stopped := make(chan struct{})
		s.b.stop = sync.OnceFunc(func() { close(stopped) })
		s.b.start = func(context.Context) error { <-stopped; return errBroken }
		s.run(t)
		s.signals <- os.Interrupt
		s.signals <- os.Interrupt
		err := <-s.result
		require.Error(t, err)
	})
}

// A started component keeps its context until it has been drained.
func TestTheContextOfTheStartLivesOnUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		var ctx context.Context
		s.a.start = func(c context.Context) error { ctx = c; return nil }
		s.a.drain = func(context.Context) error { return ctx.Err() }
		s.run(t)
		s.cancel()
		s.ends(t, nil, complete...)
		require.Error(t, ctx.Err())
	})
}

func TestARealSignal(t *testing.T) {
	running := make(chan struct{})
	d := &diary{}
	g := NewGroup(zerolog.Nop(), budget)
	g.Add(
		&script{name: "a", diary: d},
		&script{name: "b", diary: d, start: func(context.Context) error { close(running); return nil }},
	)
	result := make(chan error, 1)
	go func() { result <- g.Run(t.Context()) }()
	<-running
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	require.NoError(t, <-result)
	require.Equal(t, []string{"start a", "start b", "drain b", "stop b", "drain a", "stop a"}, d.lines)
}

func untilDead(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
