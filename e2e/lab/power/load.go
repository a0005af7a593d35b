package power

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// logs is how many are written at once, over several streams.
	logs = 8
	// pause is of each between two appends: 1,600 events a second.
	pause = 5 * time.Millisecond
)

// Load appends to logs, one event after the other in each, and notes when each append was
// acknowledged.
type Load struct {
	t     testing.TB
	store *eventlog.Store
	end   context.CancelFunc
	wg    sync.WaitGroup
	grown chan struct{} // a sign for each append

	mu    sync.Mutex
	acked [logs][]time.Time // of the events 1, 2, ... of a log
	wrong error
}

// Connect returns a connection to the cluster that ends with the test, once all streams are
// there and have their leaders.
func Connect(t testing.TB, c *Cluster) *bus.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	conn, err := bus.Connect(ctx, bus.Config{URL: c.URL(), Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	top := bus.DefaultTopology()
	top.Replicas = servers
	require.NoError(t, bus.Bootstrap(ctx, conn, top))
	return conn
}

// maxWait is for what a slow machine takes minutes for at worst.
const maxWait = 3 * time.Minute

func logOf(n int) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(fmt.Sprint("log-", n))}
}

// Open returns the logs on a connection. They end with the test.
func Open(t testing.TB, conn *bus.Conn) *eventlog.Store {
	t.Helper()
	s, err := eventlog.New(conn, eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// Write begins to append.
func Write(t testing.TB, s *eventlog.Store) *Load {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	l := &Load{t: t, store: s, end: end, grown: make(chan struct{}, 1)}
	t.Cleanup(func() { _, _ = l.Stop() })
	for n := range logs {
		l.wg.Go(func() { l.write(ctx, n) })
	}
	return l
}

func (l *Load) write(ctx context.Context, n int) {
	log := logOf(n)
	w := l.store.Writer(log, func(*eventlog.Entry) {})
	if err := w.Sync(ctx); err != nil {
		l.note(ctx, n, err)
		return
	}
	pace := time.NewTicker(pause)
	defer pace.Stop()
	for i := int(w.Seq()) + 1; ctx.Err() == nil; i++ { //nolint:gosec // thousands
		<-pace.C
		e, err := event.New(log, fmt.Sprint("e", i), "power", time.Now(), event.NoticeData{Level: "info", Code: "test", Message: fmt.Sprint(i)})
		if err == nil {
			err = w.Append(ctx, func() ([]event.Event, error) {
				if int(w.Seq()) >= i { //nolint:gosec // thousands
					return nil, nil // an append whose outcome was unknown
				}
				return []event.Event{e}, nil
			})
		}
		l.note(ctx, n, err)
		if err != nil {
			return
		}
	}
}

func (l *Load) note(ctx context.Context, n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.acked[n] = append(l.acked[n], time.Now())
	} else if ctx.Err() == nil {
		l.wrong = errors.Join(l.wrong, err)
	}
	select {
	case l.grown <- struct{}{}:
	default:
	}
}

// Until waits for n more appends, and at least as long as the duration.
func (l *Load) Until(n int, long time.Duration) {
	l.t.Helper()
	late, began := time.After(maxWait), time.Now()
	for goal := l.count() + n; l.count() < goal || time.Since(began) < long; {
		select {
		case <-l.grown:
		case <-late:
			require.FailNow(l.t, "nothing is appended")
		}
	}
}

func (l *Load) count() (sum int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, log := range l.acked {
		sum += len(log)
	}
	return sum
}

// Stop ends the appends, and returns when each was acknowledged and what went wrong.
func (l *Load) Stop() (acked [logs][]time.Time, wrong error) {
	l.end()
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked, l.wrong
}

// Lost compares the logs with what was acknowledged: it returns how many acknowledged events
// are missing, and how long before the moment the oldest of them was acknowledged. The logs
// have no gaps, and hold nothing else.
func Lost(t testing.TB, s *eventlog.Store, acked [logs][]time.Time, moment time.Time) (n int, age time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	for i, times := range acked {
		have := 0
		require.NoError(t, s.Read(ctx, logOf(i), eventlog.Cursor{}, func(e *eventlog.Entry) error {
			have++
			require.EqualValues(t, have, e.Sequence)
			require.Equal(t, fmt.Sprint("e", have), e.ID)
			return nil
		}))
		if have < len(times) {
			n += len(times) - have
			age = max(age, moment.Sub(times[have]))
		}
	}
	return n, age
}
