package worker

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/snapshots"
)

// exchange appends a whole run to the log: about what a job leaves behind.
func exchange(ctx context.Context, t *testing.T, w *eventlog.Writer, log subject.Log, n, deltas int) {
	t.Helper()
	run, execution, message := fmt.Sprint("run", n), fmt.Sprint("exec", n), fmt.Sprint("message", n)
	all := []event.Data{
		event.MessageReceivedData{MessageID: fmt.Sprint("m", n), RunID: run, Content: "hello", RunSpec: event.RunSpec{Mode: event.ModeChat}},
		event.RunStartedData{RunID: run, ExecutionID: execution},
		event.JobStartedData{RunID: run, ExecutionID: execution, Attempt: 1},
		event.MessageStartedData{MessageID: message, RunID: run, ExecutionID: execution, Attempt: 1},
	}
	for range deltas {
		all = append(all, event.MessageDeltaData{MessageID: message, RunID: run, ExecutionID: execution, Text: "word "})
	}
	all = append(all,
		event.MessageCompletedData{MessageID: message, RunID: run, ExecutionID: execution, Attempt: 1, Content: "words"},
		event.RunCompletedData{RunID: run, ExecutionID: execution, Attempt: 1, Content: "words"})
	sent := false
	require.NoError(t, w.Append(ctx, func() ([]event.Event, error) {
		if sent {
			return nil, nil
		}
		sent = true
		events := make([]event.Event, len(all))
		for i, d := range all {
			var err error
			if events[i], err = event.New(log, fmt.Sprint(run, ".", i), "test", time.Now(), d); err != nil {
				return nil, err
			}
		}
		return events, nil
	}))
}

// The next job of a log reads what came since the last one, however long the log is, and has the state of a job that reads
// all of it.
func TestTheNextJobReadsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	conn := bustest.Single(t)
	store, err := eventlog.New(conn, eventlog.Options{})
	require.NoError(t, err)
	defer store.Close()
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}
	others, err := eventlog.New(bustest.Dial(t, conn.NATS().ConnectedUrl()), eventlog.Options{})
	require.NoError(t, err)
	defer others.Close()
	w := others.Writer(log, func(*eventlog.Entry) {})
	exchange(t.Context(), t, w, log, 0, 1200)

	s := &Service{deps: Deps{Log: store}, cfg: Config{Now: time.Now}, snapshots: snapshots.New(zerolog.Nop())}
	s.folds, err = newFolds()
	require.NoError(t, err)
	asked, err := conn.NATS().SubscribeSync("$JS.API.DIRECT.GET." + subject.DefaultPartitions.Stream(log))
	require.NoError(t, err)
	for n := 1; n < 4; n++ {
		f := s.folds.take(log)
		require.Equal(t, n == 1, f == nil)
		if f == nil {
			f = s.newFold(log)
		}
		reads(t, conn.NATS(), asked) // of others
		require.NoError(t, f.log.Sync(t.Context()))
		if read := reads(t, conn.NATS(), asked); n > 1 {
			require.LessOrEqual(t, read, 1)
		}
		fresh, err := ledger.Fold(t.Context(), others, log, (*conversation.State).Apply)
		require.NoError(t, err)
		require.Equal(t, fresh, *f.log.State())

		state, seen := f.lend()
		require.Equal(t, n == 1, seen == f.log.Cursor())
		sentinel := &sentinel{job: fmt.Sprint("run", n), state: state, from: 1 << 20, cancel: func(error) {}}
		v := store.Watch(log, seen, sentinel)
		exchange(t.Context(), t, w, log, n, 3)
		end := w.Cursor()
		require.Eventually(t, func() bool { return v.Position().Seq == end.Seq }, bustest.MaxWait, time.Millisecond)
		v.Close()
		require.NotNil(t, state.Run(fmt.Sprint("run", n)))
		exchange(t.Context(), t, w, log, 10+n, 3) // of another worker
		f.seen, f.broken = v.Position(), sentinel.broken
		s.folds.give(f)
	}
}

// reads counts the requests for events since the last call. Others on the same subject compare the ends of watched logs.
func reads(t *testing.T, nc *nats.Conn, asked *nats.Subscription) (n int) {
	t.Helper()
	require.NoError(t, nc.Flush())
	all, _, err := asked.Pending()
	require.NoError(t, err)
	for range all {
		m, err := asked.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		if bytes.Contains(m.Data, []byte(`"next_by_subj"`)) {
			n++
		}
	}
	return n
}

func TestKeptFoldsAreBounded(t *testing.T) {
	t.Parallel()
	conn := bustest.Single(t)
	store, err := eventlog.New(conn, eventlog.Options{})
	require.NoError(t, err)
	defer store.Close()
	s := &Service{deps: Deps{Log: store}, cfg: Config{Now: time.Now}, snapshots: snapshots.New(zerolog.Nop())}
	x, err := newFolds()
	require.NoError(t, err)
	s.folds = x
	ref := func(i int) subject.Log {
		return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(fmt.Sprint("s", i))}
	}
	for i := range keptLogs + 10 {
		x.give(s.newFold(ref(i)))
	}
	require.Equal(t, keptLogs, x.recent.Len())
	require.Nil(t, x.take(ref(0)), "the oldest has gone")
	f := x.take(ref(keptLogs))
	require.NotNil(t, f)
	require.Nil(t, x.take(ref(keptLogs)), "it belongs to one job at a time")
	f.broken = true
	x.give(f)
	require.Nil(t, x.take(ref(keptLogs)), "a broken one is not kept")

	w := store.Writer(ref(1), func(*eventlog.Entry) {})
	exchange(t.Context(), t, w, ref(1), 0, 100)
	long := s.newFold(ref(1))
	require.NoError(t, long.log.Sync(t.Context()))
	x.give(long)
	require.Equal(t, w.Cursor().Seq, x.events)
	x.events += keptEvents
	x.give(s.newFold(ref(2)))
	require.Equal(t, 1, x.recent.Len(), "long logs leave no room for others")
	require.Nil(t, x.take(ref(1)))
	woken := s.newFold(ref(1))
	require.Equal(t, w.Cursor(), woken.log.Cursor(), "it was at rest")
	require.Equal(t, w.Seq(), woken.shadow.Seq)
	require.Zero(t, s.newFold(ref(1)).log.Cursor(), "which belongs to one job, too")
}
