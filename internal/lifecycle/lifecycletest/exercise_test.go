package lifecycletest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/lifecycle"
)

// worker is a correct component: one goroutine, which works until Drain or Stop.
type worker struct {
	start  func() error
	leave  bool // leaves a goroutine behind
	hang   bool // Stop hangs
	again  bool // starts after Stop
	tied   bool // dies with the context of the start
	failed chan error

	mu      sync.Mutex
	stopped bool
	quit    context.CancelFunc
	over    chan struct{}
}

func newWorker() *worker { return &worker{failed: make(chan error, 1)} }

func (w *worker) Name() string         { return "worker" }
func (w *worker) Failed() <-chan error { return w.failed }

func (w *worker) Start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.start != nil {
		return w.start()
	}
	if w.stopped && !w.again {
		return errors.New("stopped before it was started")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	life := context.WithoutCancel(ctx)
	if w.tied {
		life = ctx
	}
	life, w.quit = context.WithCancel(life)
	w.over = make(chan struct{})
	go func() {
		defer close(w.over)
		<-life.Done()
		if w.tied && ctx.Err() != nil {
			w.failed <- ctx.Err()
		}
	}()
	if w.leave {
		go func() { <-make(chan struct{}) }()
	}
	return nil
}

func (w *worker) Drain(context.Context) error {
	w.end()
	return nil
}

func (w *worker) Stop() {
	if w.hang {
		<-make(chan struct{})
	}
	w.end()
}

func (w *worker) end() {
	w.mu.Lock()
	w.stopped = true
	quit, over := w.quit, w.over
	w.mu.Unlock()
	if quit != nil {
		quit()
		<-over
	}
}

func TestAGoodComponentPasses(t *testing.T) {
	Exercise(t, func() lifecycle.Component { return newWorker() })
	StartFails(t, func() lifecycle.Component {
		w := newWorker()
		w.start = func() error { return errors.New("no") }
		return w
	})
}

const faulty = "WAGGLE_TEST_FAULTY_COMPONENT"

var faults = map[string]struct {
	make func() *worker
	says string
}{
	"leave": {func() *worker { return &worker{leave: true} }, "goroutines of the component are still there"},
	"hang":  {func() *worker { return &worker{hang: true} }, "Stop does not return"},
	"again": {func() *worker { return &worker{again: true} }, "Start after Stop"},
	"tied": {func() *worker {
		w := newWorker()
		w.tied = true
		return w
	}, "Failed, although nothing did"},
}

// TestAFaultyComponentFails runs the suite in a separate process, where it may fail.
func TestAFaultyComponentFails(t *testing.T) {
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFaulty$", "-test.failfast")
			cmd.Env = append(os.Environ(), faulty+"="+name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "%s", out)
			require.Contains(t, string(out), f.says)
		})
	}
}

// TestFaulty is the other process of TestAFaultyComponentFails; by itself it does nothing.
func TestFaulty(t *testing.T) {
	name := os.Getenv(faulty)
	if name == "" {
		return
	}
	maxWait = 5 * time.Second
	Exercise(t, func() lifecycle.Component { return faults[name].make() })
}
