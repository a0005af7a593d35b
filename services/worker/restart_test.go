package worker_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/signature"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/session"
	"github.com/waggle-dev/waggle/services/snapshots"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/remote"
	"github.com/waggle-dev/waggle/services/worker"
)

// fleet is an installation whose services can be stopped and started again as other processes.
type fleet struct {
	*servicetest.Rig
	ref  subject.Log
	llm  *scripted.Server
	url  string
	n    int
	stop []func()

	counters       []*nats.Conn // of read and requests
	read, requests atomic.Int64 // entries of the log that the running services were sent, and their reads
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	conn := bustest.Single(t)
	f := &fleet{
		Rig: servicetest.Within(t, conn, maxWait, 8*maxWait), url: conn.NATS().ConnectedUrl(),
		ref: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("long")},
	}
	var err error
	f.llm, err = scripted.Start("127.0.0.1:0", scripted.Always(scripted.Stream(scripted.Text("it is sunny"))))
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.llm.Close() })
	(&rig{Rig: f.Rig}).startTools(tools.Rules{})
	f.count("_INBOX.>", func(m *nats.Msg) {
		if m.Header.Get("Nats-Subject") == subject.DefaultPartitions.Event(f.ref) {
			f.read.Add(1)
		}
	})
	f.count("$JS.API.DIRECT.GET."+subject.DefaultPartitions.Stream(f.ref), func(*nats.Msg) { f.requests.Add(1) })
	f.count("$JS.API.STREAM.MSG.GET."+subject.DefaultPartitions.Stream(f.ref), func(*nats.Msg) { f.requests.Add(1) })
	t.Cleanup(f.halt)
	return f
}

// count calls the function for each message to a subject of any process.
func (f *fleet) count(subject string, each func(*nats.Msg)) {
	f.T.Helper()
	nc := bustest.Dial(f.T, f.url).NATS()
	sub, err := nc.Subscribe(subject, each)
	require.NoError(f.T, err)
	require.NoError(f.T, sub.SetPendingLimits(-1, -1))
	require.NoError(f.T, nc.Flush())
	f.counters = append(f.counters, nc)
}

// counted waits until everything before has been counted.
func (f *fleet) counted() {
	f.T.Helper()
	for _, nc := range f.counters {
		require.NoError(f.T, nc.Flush())
		counted := make(chan struct{})
		require.NoError(f.T, nc.Barrier(func() { close(counted) }))
		<-counted
	}
}

// recount begins to count anew.
func (f *fleet) recount() {
	f.T.Helper()
	f.counted()
	f.read.Store(0)
	f.requests.Store(0)
}

// listed waits until the index of lists has the log up to the event, so that no service has to read that part for it.
func (f *fleet) listed(seq uint64) {
	f.T.Helper()
	s, err := f.Conn.JS().Stream(f.Ctx, subject.StreamIndex)
	require.NoError(f.T, err)
	require.Eventually(f.T, func() bool {
		m, err := s.GetLastMsgForSubject(f.Ctx, f.ref.Index())
		if err != nil {
			return false
		}
		has, err := strconv.ParseUint(m.Header.Get(event.HeaderSeq), 10, 64)
		return err == nil && has >= seq
	}, maxWait, 20*time.Millisecond)
}

// restart starts the services and a worker anew: each with a connection, a store and folds of its own.
func (f *fleet) restart() {
	f.T.Helper()
	f.halt()
	f.n++
	deps := func(name string) ledger.Deps {
		c := bustest.Dial(f.T, f.url)
		return ledger.Deps{
			Conn: c, Log: f.StoreOn(c), Commands: command.NewSender(c), Directory: f.Dir, Instance: id.MustName(fmt.Sprint(name, f.n)), Logger: zerolog.Nop(),
			Signatures: signature.Unchecked(),
		}
	}
	run := func(c servicetest.Component, err error) {
		require.NoError(f.T, err)
		require.NoError(f.T, c.Start(f.Ctx))
		f.stop = append(f.stop, c.Stop)
	}
	s, err := session.New(session.Config{}, deps("session"))
	run(s, err)
	p, err := pipeline.New(pipeline.Config{OnBusy: event.OnBusyEnqueue}, deps("pipeline"))
	run(p, err)
	d := deps("worker")
	m := (&rig{Rig: f.Rig, llm: f.llm}).openai()
	w, err := worker.New(worker.Config{}, worker.Deps{
		Conn: d.Conn, Log: d.Log, Commands: d.Commands, Directory: d.Directory, Tools: remote.NewClient(d.Conn), Model: m,
		Instance: d.Instance, Logger: d.Logger, Signatures: d.Signatures,
	})
	run(w, err)
	f.stop = append(f.stop, func() { _ = m.Close() })
}

func (f *fleet) halt() {
	for _, stop := range f.stop {
		stop()
	}
	f.stop = nil
}

// grow appends runs as they are in a log until it has so many events.
func (f *fleet) grow(to int) {
	f.T.Helper()
	w := f.Store().Writer(f.ref, nil)
	require.NoError(f.T, w.Sync(f.Ctx))
	if w.Seq() == 0 {
		f.put(w, "created", event.SessionCreatedData{Dialect: "orbit"})
	}
	for n := 0; w.Seq() < uint64(to); n++ {
		message := fmt.Sprintf("old-%d-%d", to, n)
		run, exec, answer := conversation.RunID(message), fmt.Sprintf("exec_20260101_%06d_000000", n), message+".answer"
		f.put(w, message,
			event.MessageReceivedData{MessageID: message, RunID: run, Content: "what is the weather?"},
			event.RunStartedData{RunID: run, ExecutionID: exec, MessageID: message, Content: "what is the weather?"},
			event.JobStartedData{RunID: run, ExecutionID: exec, Attempt: 1, Worker: "old"},
			event.MessageStartedData{MessageID: answer, RunID: run, ExecutionID: exec, Attempt: 1, Role: event.RoleAssistant},
			event.MessageDeltaData{MessageID: answer, RunID: run, ExecutionID: exec, Attempt: 1, Text: "it is rainy"},
			event.MessageCompletedData{MessageID: answer, RunID: run, ExecutionID: exec, Attempt: 1, Role: event.RoleAssistant, Content: "it is rainy"},
			event.RunCompletedData{RunID: run, ExecutionID: exec, Attempt: 1, MessageID: answer, Content: "it is rainy"},
		)
	}
}

func (f *fleet) put(w *eventlog.Writer, eventID string, data ...event.Data) {
	f.T.Helper()
	events := make([]event.Event, len(data))
	for i, d := range data {
		var err error
		events[i], err = event.New(f.ref, fmt.Sprint(eventID, ".", i), "test", time.Now(), d)
		require.NoError(f.T, err)
	}
	at := w.Seq()
	require.NoError(f.T, w.Append(f.Ctx, func() ([]event.Event, error) { return events[w.Seq()-at:], nil }))
}

// ask sends a message, waits for the end of its run, and returns the time until the first piece of its answer.
func (f *fleet) ask() time.Duration {
	f.T.Helper()
	at, err := f.Log.Last(f.Ctx, f.ref)
	require.NoError(f.T, err)
	message := fmt.Sprint("new-", at.Seq)
	began, first := time.Now(), time.Duration(0)
	f.Command(cmd.Command{ID: message, Service: cmd.Pipeline, Verb: cmd.SendMessage, Tenant: f.ref.Tenant, Key: f.ref.Entity, Time: began}, cmd.UserMessage{Content: "and today?"})
	for e, err := range f.Log.Tail(f.Ctx, f.ref, at) {
		require.NoError(f.T, err)
		if e.Type == event.MessageDelta && first == 0 {
			first = time.Since(began)
		}
		if e.Type.Terminal() {
			require.Equal(f.T, event.RunCompleted, e.Type)
			return first
		}
	}
	return 0
}

// stored reports the sequence up to which the log has a snapshot.
func (f *fleet) stored() uint64 {
	f.T.Helper()
	x := snapshots.New(zerolog.Nop())
	require.NoError(f.T, x.Open(f.Ctx, f.Conn))
	from := uint64(0)
	l := ledger.Open(ledger.Config[conversation.State]{
		Store: f.Store(), Source: "test", Snapshots: x, Fold: (*conversation.State).Apply,
		Begun: func(s *conversation.State) {
			if s != nil {
				from = s.Seq
			}
		},
	}, f.ref)
	require.NoError(f.T, l.Sync(f.Ctx))
	return from
}

// After a restart of all services, the next run of a session with a long log reads as little of its log as the run of a new
// session does: the snapshot's event and the events since. Its model gets the conversation as before.
func TestARestartReadsALongLogFromItsSnapshot(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	const long = 2 * snapshots.Every
	f.grow(long)
	f.restart()
	f.ask()
	f.counted()
	require.Greater(t, f.read.Load(), int64(long), "without a snapshot the whole log is read")
	before := f.llm.Exchanges()
	require.Eventually(t, func() bool { return f.stored() > long }, maxWait, 20*time.Millisecond)
	f.listed(long)

	f.restart()
	f.recount()
	f.ask()
	f.counted()
	// The session service may read on for the index of lists; the test itself follows the run by announcements.
	t.Logf("read %d entries with %d requests", f.read.Load(), f.requests.Load())
	require.Less(t, f.read.Load(), int64(100))
	require.Less(t, f.requests.Load(), int64(30))
	after := f.llm.Exchanges()
	was, is := string(before[len(before)-1].Body), string(after[len(after)-1].Body)
	require.Greater(t, strings.Count(was, "it is rainy"), 100)
	require.Equal(t, strings.Count(was, "it is rainy"), strings.Count(is, "it is rainy"))

	f.grow(int(f.stored()) + snapshots.Every - 100)
	f.restart()
	f.recount()
	f.ask()
	f.counted()
	require.Less(t, f.read.Load(), int64(3*snapshots.Every), "pipeline and worker read what came since")
}
