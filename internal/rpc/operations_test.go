package rpc_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var verbs = rpc.Verbs{Begin: id.MustName("begin"), Attach: id.MustName("attach"), Cancel: id.MustName("cancel")}

// job is an operation of a test.
type job struct {
	done   chan struct{}
	cancel chan struct{}
	notes  chan string
	end    sync.Once
	stop   sync.Once
	out    string
	err    error
}

func (j *job) finish(out string, err error) {
	j.end.Do(func() {
		j.out, j.err = out, err
		close(j.done)
	})
}

func (j *job) running(progress bool) rpc.Running[string, string] {
	r := rpc.Running[string, string]{
		Done: j.done, Outcome: func() (string, error) { return j.out, j.err },
		Cancel: func() { j.stop.Do(func() { close(j.cancel) }) },
	}
	if progress {
		r.Notes = j.notes
	}
	return r
}

// host owns the operations of a replica; they begin on begun.
type host struct {
	begun chan *job
	mu    sync.Mutex
	all   map[string]*job
}

func (h *host) begin(_ context.Context, key string, progress bool) (string, rpc.Running[string, string], error) {
	if key == "refused" {
		return "", rpc.Running[string, string]{}, fault.Newf(fault.InvalidField, "No.").At("key")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	j, ok := h.all[key]
	if !ok {
		j = &job{done: make(chan struct{}), cancel: make(chan struct{}), notes: make(chan string, 10)}
		h.all[key] = j
		h.begun <- j
	}
	return key, j.running(progress), nil
}

func (h *host) find(key string) (rpc.Running[string, string], bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	j, ok := h.all[key]
	if !ok {
		return rpc.Running[string, string]{}, false
	}
	return j.running(false), true
}

// operate starts a replica with operations. It ends with the test.
func operate(t *testing.T, c *bus.Conn, change ...func(*rpc.Operations[string, string, string, string])) (*host, *rpc.Server) {
	t.Helper()
	h := &host{begun: make(chan *job, 100), all: make(map[string]*job)}
	s := rpc.NewServer(c, rpc.Config{Service: service, Logger: zerolog.Nop()})
	o := rpc.Operations[string, string, string, string]{Verbs: verbs, Begin: h.begin, Find: h.find, Followers: 10, Beat: 20 * time.Millisecond}
	for _, f := range change {
		f(&o)
	}
	rpc.HandleOperations(s, o)
	t.Cleanup(s.Stop)
	require.NoError(t, s.Start(maxWait(t)))
	return h, s
}

// caller returns a caller that checks the clock often. It gives up only where silence says so.
func caller(c *bus.Conn, silence time.Duration) rpc.Caller {
	return rpc.Caller{Conn: c, Service: service, Verbs: verbs, Look: 10 * time.Millisecond, Silence: silence}
}

// outcome is what a call of Operate returned.
type outcome struct {
	text string
	err  error
}

func begin(ctx context.Context, c rpc.Caller, key string, told func(string)) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		text, err := rpc.Operate[string, string](ctx, c, key, key, told)
		out <- outcome{text, err}
	}()
	return out
}

func TestAnOperationReportsItsProgressAndItsOutcome(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	h, _ := operate(t, c)
	var notes []string
	got := begin(maxWait(t), caller(bustest.Dial(t, c.NATS().ConnectedUrl()), bustest.MaxWait), "a", func(n string) { notes = append(notes, n) })
	j := <-h.begun
	j.notes <- "one"
	j.notes <- "two"
	j.finish("three", nil)
	require.Equal(t, outcome{"three", nil}, <-got)
	require.Equal(t, []string{"one", "two"}, notes)

	again := <-begin(maxWait(t), caller(c, bustest.MaxWait), "a", nil)
	require.Equal(t, outcome{"three", nil}, again, "the same key joins the operation")
	require.Empty(t, h.begun)
}

func TestFaultsOfOperationsReachTheCaller(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	h, _ := operate(t, c)
	isFault(t, (<-begin(maxWait(t), caller(c, bustest.MaxWait), "refused", nil)).err, fault.InvalidField)
	got := begin(maxWait(t), caller(c, bustest.MaxWait), "a", nil)
	(<-h.begun).finish("", fault.New(fault.Overloaded))
	isFault(t, (<-got).err, fault.Overloaded)
	got = begin(maxWait(t), caller(c, bustest.MaxWait), "b", nil)
	(<-h.begun).finish("", errors.New("the secret"))
	require.NotContains(t, isFault(t, (<-got).err, fault.Internal).Error(), "secret")
	got = begin(maxWait(t), caller(c, bustest.MaxWait), "c", nil)
	(<-h.begun).finish(strings.Repeat("x", 1<<20), nil)
	isFault(t, (<-got).err, fault.MessageTooBig)
	_, err := rpc.Operate[string, string](maxWait(t), caller(c, bustest.MaxWait), "d", strings.Repeat("x", 1<<20), nil)
	isFault(t, err, fault.MessageTooBig)
}

func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	h, _ := operate(t, c, func(o *rpc.Operations[string, string, string, string]) { o.Followers = 1 })
	told := make(chan string, 1)
	got := begin(maxWait(t), caller(c, bustest.MaxWait), "a", func(note string) { told <- note })
	j := <-h.begun
	j.notes <- "started"
	require.Equal(t, "started", <-told, "the first caller follows the operation")
	isFault(t, (<-begin(maxWait(t), caller(c, bustest.MaxWait), "a", nil)).err, fault.Overloaded)
	j.finish("done", nil)
	require.Equal(t, outcome{"done", nil}, <-got)
}

func TestCancellingEndsTheOperationOnItsReplica(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	a, _ := operate(t, c)
	b, _ := operate(t, bustest.Dial(t, c.NATS().ConnectedUrl()))
	ctx, cancel := context.WithCancel(maxWait(t))
	got := begin(ctx, caller(c, bustest.MaxWait), "a", nil)
	var j *job
	select {
	case j = <-a.begun:
	case j = <-b.begun:
	}
	cancel()
	<-j.cancel
	j.finish("", fault.New(fault.ToolCancelled))
	isFault(t, (<-got).err, fault.ToolCancelled)
}

func TestAnOperationOutlivesTheDrainOfItsReplica(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	h, s := operate(t, c)
	got := begin(maxWait(t), caller(c, bustest.MaxWait), "a", nil)
	j := <-h.begun
	require.NoError(t, s.Drain(maxWait(t)))
	isFault(t, (<-begin(maxWait(t), caller(c, bustest.MaxWait), "b", nil)).err, fault.BusUnavailable)
	j.finish("done", nil)
	require.Equal(t, outcome{"done", nil}, <-got)
	s.Stop()
}

// replica answers requests in place of a server.
func replica(t *testing.T, nc *nats.Conn, verb id.Name, f func(*nats.Msg)) {
	t.Helper()
	_, err := nc.Subscribe(subject.RPC(service, verb), f)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
}

// respond answers with the state and the body.
func respond(t *testing.T, m *nats.Msg, state, body string) {
	t.Helper()
	r := nats.NewMsg(m.Reply)
	r.Header.Set("Waggle-State", state)
	r.Data = []byte(body)
	if err := m.RespondMsg(r); err != nil {
		t.Error(err)
	}
}

func TestTheOperationOfASilentReplicaIsLost(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	replica(t, c.NATS(), verbs.Begin, func(m *nats.Msg) { respond(t, m, "running", "") })
	require.ErrorIs(t, (<-begin(maxWait(t), caller(c, 200*time.Millisecond), "a", nil)).err, rpc.ErrLost)
}

func TestAClosedConnectionLosesItsOperations(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	h, _ := operate(t, c)
	own := bustest.Dial(t, c.NATS().ConnectedUrl())
	got := begin(maxWait(t), caller(own, bustest.MaxWait), "a", nil)
	j := <-h.begun
	own.NATS().Close()
	require.ErrorIs(t, (<-got).err, rpc.ErrLost)
	j.finish("", nil)
}

// A caller attaches again for an outcome that was lost.
func TestALostOutcomeIsAskedForAgain(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	replica(t, c.NATS(), verbs.Begin, func(m *nats.Msg) { respond(t, m, "running", "") })
	replica(t, c.NATS(), verbs.Attach, func(m *nats.Msg) { respond(t, m, "done", `"again"`) })
	require.Equal(t, outcome{"again", nil}, <-begin(maxWait(t), caller(c, 10*time.Second), "a", nil))
}

func TestACancellationIsRepeatedUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	asked := make(chan struct{}, 1000)
	replica(t, c.NATS(), verbs.Begin, func(m *nats.Msg) { respond(t, m, "running", "") })
	replica(t, c.NATS(), verbs.Cancel, func(*nats.Msg) { asked <- struct{}{} })
	ctx, cancel := context.WithCancel(maxWait(t))
	by := caller(c, bustest.MaxWait)
	by.CancelWait = 5 * time.Second // for three of them, on a busy machine
	got := begin(ctx, by, "a", nil)
	cancel()
	for range 3 {
		<-asked
	}
	require.ErrorIs(t, (<-got).err, rpc.ErrNotStopped)
}

// A replica that leaves refuses the request; another one begins the operation.
func TestALeavingReplicaPassesTheOperationOn(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	asked := 0
	replica(t, c.NATS(), verbs.Begin, func(m *nats.Msg) {
		asked++
		if asked > 1 {
			respond(t, m, "done", `"here"`)
			return
		}
		r := nats.NewMsg(m.Reply)
		r.Header.Set("Waggle-Ask-Again", "1")
		require.NoError(t, m.RespondMsg(r))
	})
	require.Equal(t, outcome{"here", nil}, <-begin(maxWait(t), caller(c, bustest.MaxWait), "a", nil))
	require.Equal(t, 2, asked)
}
