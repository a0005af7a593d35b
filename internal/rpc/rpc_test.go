package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

var (
	service = id.MustName("desk")
	verb    = id.MustName("add")
)

// A request whose sender has seen a revision of the directory is answered when the server has it, too, and refused if
// that takes too long.
func TestARequestWaitsForWhatItsSenderHasSeen(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t, bus.DefaultTopology())
	open := func() *directory.Directory {
		d, err := directory.Open(maxWait(t), bustest.Dial(t, s.URL))
		require.NoError(t, err)
		t.Cleanup(d.Close)
		return d
	}
	ours, theirs := open(), open()
	serve(t, bustest.Dial(t, s.URL), rpc.Config{Directory: theirs, Logger: zerolog.Nop()}, func(_ context.Context, _ numbers) (sum, error) {
		return sum{Sum: len(theirs.Members(directory.WhatService, service))}, nil
	})
	c := bustest.Dial(t, s.URL)
	for i := range 50 {
		_, err := ours.Join(maxWait(t), directory.Member{What: directory.WhatService, Name: service, Instance: id.MustName(fmt.Sprint("i", i))})
		require.NoError(t, err)
		var out sum
		require.NoError(t, rpc.Call(directory.Seen(maxWait(t), ours.Revision()), c, service, verb, numbers{}, &out))
		require.Equal(t, i+1, out.Sum)
	}
	err := rpc.Call(directory.Seen(maxWait(t), ours.Revision()+1_000_000), c, service, verb, numbers{}, nil)
	require.ErrorIs(t, err, fault.New(fault.BusUnavailable))
}

type numbers struct{ A, B int }

type sum struct {
	Sum int
	By  string
}

// maxWait returns a context that ends with the test, or when a call hangs.
func maxWait(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.MaxWait)
	t.Cleanup(cancel)
	return ctx
}

// serve starts a server with one verb. It ends with the test.
func serve[In, Out any](t testing.TB, c *bus.Conn, cfg rpc.Config, f func(context.Context, In) (Out, error)) *rpc.Server {
	t.Helper()
	cfg.Service = service
	s := rpc.NewServer(c, cfg)
	rpc.Handle(s, verb, f)
	t.Cleanup(s.Stop)
	require.NoError(t, s.Start(maxWait(t)))
	return s
}

func add(_ context.Context, n numbers) (sum, error) { return sum{Sum: n.A + n.B}, nil }

func isFault(t testing.TB, err error, code fault.Code) *fault.Fault {
	t.Helper()
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, code, f.Code, "%v", err)
	return f
}

func TestTheServerKeepsTheContractOfLifecycle(t *testing.T) {
	c := bustest.Single(t)
	lifecycletest.Exercise(t, func() lifecycle.Component {
		s := rpc.NewServer(c, rpc.Config{Service: service})
		rpc.Handle(s, verb, add)
		return s
	})
	gone := bustest.Dial(t, c.NATS().ConnectedUrl())
	gone.Close()
	lifecycletest.StartFails(t, func() lifecycle.Component { return rpc.NewServer(gone, rpc.Config{Service: service}) })
}

func TestAnAnswerOverTheBus(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	reg := telemetry.NewRegistry()
	serve(t, c, rpc.Config{Registry: reg}, add)
	var got sum
	require.NoError(t, rpc.Call(maxWait(t), bustest.Dial(t, c.NATS().ConnectedUrl()), service, verb, numbers{2, 3}, &got))
	require.Equal(t, 5, got.Sum)
	require.NoError(t, rpc.Call(maxWait(t), c, service, verb, numbers{}, nil), "an unwanted answer")
	telemetry.Lint(t, reg)
	isFault(t, rpc.Call(maxWait(t), c, service, verb, "no numbers", &got), fault.BadJSON)
	require.ErrorContains(t, rpc.Call(maxWait(t), c, service, verb, make(chan int), &got), "encode the request")
	require.ErrorContains(t, rpc.Call(maxWait(t), c, service, verb, numbers{}, new(int)), "decode the answer")
}

func TestFaultsTravelAndOtherErrorsStayHome(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	var mu sync.Mutex
	var logged bytes.Buffer
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return logged.String()
	}
	log := zerolog.New(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return logged.Write(b)
	}))
	want := fault.Newf(fault.InvalidField, "No %d.", 7).At("a").Unlike("less than 7", []byte(`7`))
	want.Ref = "ref-1"
	serve(t, c, rpc.Config{Logger: log}, func(_ context.Context, n numbers) (sum, error) {
		switch n.A {
		case 1:
			return sum{}, want.Wrap(errors.New("the cause"))
		case 2:
			return sum{}, errors.New("the secret")
		case 3:
			panic("the secret")
		}
		return sum{}, want.Unlike("", []byte("no JSON"))
	})

	got := isFault(t, rpc.Call(maxWait(t), c, service, verb, numbers{A: 1}, nil), fault.InvalidField)
	require.Equal(t, want, got)
	require.Empty(t, isFault(t, rpc.Call(maxWait(t), c, service, verb, numbers{A: 4}, nil), fault.InvalidField).Provided)
	for a := 2; a <= 3; a++ {
		got = isFault(t, rpc.Call(maxWait(t), c, service, verb, numbers{A: a}, nil), fault.Internal)
		require.NotContains(t, got.Error(), "secret")
		require.NotEmpty(t, got.Ref)
		require.Contains(t, said(), got.Ref)
		require.Contains(t, said(), "the secret")
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestAMissingServiceIsNamed(t *testing.T) {
	t.Parallel()
	i := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, i.URL)
	f := isFault(t, rpc.Call(maxWait(t), c, service, verb, numbers{}, nil), fault.BusUnavailable)
	require.Contains(t, f.Message, "No desk service is running")
	require.True(t, f.Retryable())

	i.Stop()
	bustest.Down(t, c)
	f = isFault(t, rpc.Call(maxWait(t), c, service, verb, numbers{}, nil), fault.BusUnavailable)
	require.NotContains(t, f.Message, "No desk service is running")
	c.NATS().Close()
}

func TestWhatIsTooLargeIsSaidSo(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	serve(t, c, rpc.Config{}, func(_ context.Context, n int) (string, error) { return strings.Repeat("x", n), nil })
	f := isFault(t, rpc.Call(maxWait(t), c, service, verb, strings.Repeat("x", 1<<20), nil), fault.MessageTooBig)
	require.Contains(t, f.Message, "request")
	f = isFault(t, rpc.Call(maxWait(t), c, service, verb, 1<<20, nil), fault.MessageTooBig)
	require.Contains(t, f.Message, "response")
	require.NoError(t, rpc.Call(maxWait(t), c, service, verb, 1<<19, nil))
}

func TestTheTraceGoesOn(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	serve(t, c, rpc.Config{}, func(ctx context.Context, _ numbers) (string, error) { return telemetry.Inject(ctx), nil })
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var got string
	require.NoError(t, rpc.Call(telemetry.Extract(maxWait(t), parent), c, service, verb, numbers{}, &got))
	require.Equal(t, strings.Split(parent, "-")[1], strings.Split(got, "-")[1])
}

func TestOnlySoManyAtATime(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	var mu sync.Mutex
	var on, most int
	count := func(change int) {
		mu.Lock()
		defer mu.Unlock()
		on += change
		most = max(most, on)
	}
	began, gate := make(chan struct{}, 100), make(chan struct{})
	serve(t, c, rpc.Config{Concurrency: 2}, func(ctx context.Context, _ numbers) (sum, error) {
		count(1)
		defer count(-1)
		began <- struct{}{}
		<-gate
		return sum{}, ctx.Err()
	})
	const places = 2 * 17 // handled, and waiting
	results := make(chan error, places+1)
	for range places + 1 {
		go func() { results <- rpc.Call(maxWait(t), c, service, verb, numbers{}, nil) }()
	}
	isFault(t, <-results, fault.Overloaded) // while the others wait
	for range 2 {
		<-began
	}
	close(gate)
	for range places {
		require.NoError(t, <-results)
	}
	require.Len(t, began, places-2, "each place was handled once")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 2, most)
}

func TestALostCallerEndsItsWork(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	ended, began := make(chan error, 1), make(chan struct{})
	serve(t, c, rpc.Config{}, func(ctx context.Context, _ numbers) (sum, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return sum{}, ctx.Err()
	})
	ctx, cancel := context.WithTimeout(maxWait(t), 5*time.Second) // the work begins before
	defer cancel()
	f := isFault(t, rpc.Call(ctx, c, service, verb, numbers{}, nil), fault.BusUnavailable)
	require.Contains(t, f.Message, "did not respond in time")
	<-began
	require.ErrorIs(t, <-ended, context.DeadlineExceeded)

	ctx, cancel = context.WithCancel(maxWait(t))
	cancel()
	require.ErrorIs(t, rpc.Call(ctx, c, service, verb, numbers{}, nil), context.Canceled)
}

// A connection that breaks takes a request along, or its answer.
func TestALostRequestIsRepeated(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	var asked atomic.Int64
	late := lateness{maxWait(t), make(chan struct{})}
	sub, err := c.NATS().Subscribe(subject.RPC(service, verb), func(m *nats.Msg) {
		switch n := asked.Add(1); {
		case n == -99:
			close(late.over)
		case n > 1:
			_ = m.Respond([]byte(`{"Sum":3}`))
		}
	})
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	var out sum
	require.NoError(t, rpc.Repeat(maxWait(t), c, service, verb, numbers{1, 2}, &out))
	require.Equal(t, 3, out.Sum)
	require.EqualValues(t, 2, asked.Load())

	asked.Store(-100) // without an answer
	f := isFault(t, rpc.Repeat(late, c, service, verb, numbers{}, nil), fault.BusUnavailable)
	require.Contains(t, f.Message, "did not respond in time")
	require.EqualValues(t, -99, asked.Load())
}

// lateness is a context whose time is over when the channel is closed.
type lateness struct {
	context.Context //nolint:containedctx // it is one
	over            chan struct{}
}

func (l lateness) Done() <-chan struct{} { return l.over }

func (l lateness) Err() error {
	select {
	case <-l.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestARepeatedRequestWaitsForALostConnection(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, in.URL)
	serve(t, c, rpc.Config{}, add)
	in.Stop()
	bustest.Down(t, c)
	isFault(t, rpc.Call(maxWait(t), c, service, verb, numbers{1, 2}, nil), fault.BusUnavailable)
	isFault(t, rpc.Repeat(maxWait(t), c, service, verb, numbers{1, 2}, nil), fault.BusUnavailable) // it stays lost
	for range 5 {                                                                                  // a restart may take longer than Repeat waits
		in.Stop()
		bustest.Down(t, c)
		answered := make(chan error, 1)
		var out sum
		go func() { answered <- rpc.Repeat(maxWait(t), c, service, verb, numbers{1, 2}, &out) }()
		in.Start()
		if <-answered == nil {
			require.Equal(t, 3, out.Sum)
			return
		}
	}
	t.Fatal("no request waited for its connection")
}

func TestDrainFinishesAndStopDoesNot(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	for _, drain := range []bool{true, false} {
		began, gate := make(chan struct{}), make(chan struct{})
		s := serve(t, c, rpc.Config{}, func(ctx context.Context, _ numbers) (sum, error) {
			close(began)
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return sum{}, ctx.Err()
		})
		result := make(chan error, 1)
		go func() { result <- rpc.Call(maxWait(t), c, service, verb, numbers{}, nil) }()
		<-began
		if drain {
			over, cancel := context.WithCancel(maxWait(t))
			cancel()
			require.ErrorIs(t, s.Drain(over), context.Canceled, "it waits for the request")
			close(gate)
			require.NoError(t, s.Drain(maxWait(t)))
			require.NoError(t, <-result)
			continue
		}
		s.Stop()
		require.Contains(t, isFault(t, <-result, fault.BusUnavailable).Message, "stopped before it responded")
	}
}

// TestACallOutlivesItsReplica: while replicas come and go, and at least one runs, no call fails.
func TestACallOutlivesItsReplica(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	replica := func(name string) *rpc.Server {
		return serve(t, bustest.Dial(t, c.NATS().ConnectedUrl()), rpc.Config{}, func(_ context.Context, n numbers) (sum, error) {
			return sum{Sum: n.A + n.B, By: name}, nil
		})
	}
	now := replica("first")
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var calls atomic.Int64
	var by sync.Map
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var got sum
				if err := rpc.Call(maxWait(t), c, service, verb, numbers{1, 1}, &got); err != nil {
					t.Error(err)
					return
				}
				by.Store(got.By, true)
				calls.Add(1)
			}
		})
	}
	for i := range 10 {
		name := string(rune('a' + i))
		next := replica(name)
		require.NoError(t, now.Drain(maxWait(t)))
		now.Stop()
		now = next
		require.Eventually(t, func() bool { _, answers := by.Load(name); return answers || t.Failed() }, bustest.MaxWait, time.Millisecond)
	}
	close(stop)
	callers.Wait()
	answered := 0
	by.Range(func(any, any) bool { answered++; return true })
	require.GreaterOrEqual(t, answered, 10)
	t.Logf("%d calls by %d replicas", calls.Load(), answered)
}

func TestNATSToolsSeeTheService(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	serve(t, c, rpc.Config{Description: "adds"}, add)
	require.NoError(t, rpc.Call(maxWait(t), c, service, verb, numbers{1, 2}, nil))
	isFault(t, rpc.Call(maxWait(t), c, service, verb, "x", nil), fault.BadJSON)

	ask := func(v micro.Verb, out any) {
		t.Helper()
		subj, err := micro.ControlSubject(v, service.String(), "")
		require.NoError(t, err)
		m, err := c.NATS().RequestWithContext(maxWait(t), subj, nil)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(m.Data, out))
	}
	var info micro.Info
	ask(micro.InfoVerb, &info)
	require.Equal(t, "adds", info.Description)
	require.Len(t, info.Endpoints, 1)
	require.Equal(t, "rpc.desk.add", info.Endpoints[0].Subject)
	require.Equal(t, "desk", info.Endpoints[0].QueueGroup)
	var stats micro.Stats
	ask(micro.StatsVerb, &stats)
	var ours rpc.Stats
	require.NoError(t, json.Unmarshal(stats.Endpoints[0].Data, &ours))
	require.Equal(t, int64(2), ours.Requests)
	require.Equal(t, int64(1), ours.Errors)

	m, err := c.NATS().RequestWithContext(maxWait(t), "rpc.desk.add", []byte("no JSON"))
	require.NoError(t, err)
	require.Equal(t, "BAD_JSON", m.Header.Get(micro.ErrorHeader))
	require.Equal(t, "400", m.Header.Get(micro.ErrorCodeHeader))
}
