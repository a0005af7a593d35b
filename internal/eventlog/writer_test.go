package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestAppendStoresAnnouncesAndObserves(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("plain")
	live, err := conn.NATS().SubscribeSync(log.LiveAll())
	require.NoError(t, err)
	f := &fold{}
	w := s.Writer(log, f.observe)
	a, b := notice(log, "a"), newEvent(log, "b", delta("m", "hello"))
	require.NoError(t, w.Append(t.Context(), missing(f.has, a, b)))
	require.NoError(t, w.Append(t.Context(), missing(f.has, a, b)), "nothing is missing")
	require.Equal(t, []string{"a", "b"}, f.ids)
	require.EqualValues(t, 2, w.Seq())

	for i, want := range []event.Event{a, b} {
		m, err := live.NextMsg(10 * time.Second)
		require.NoError(t, err)
		require.Equal(t, log.Live(string(want.Type)), m.Subject)
		require.Equal(t, fmt.Sprint(i+1), m.Header.Get(event.HeaderSeq))
		require.Equal(t, string(want.Type), m.Header.Get(event.HeaderType))
		require.Len(t, m.Header, 3, "nothing else reaches viewers")
		want.Sequence = uint64(i + 1)
		var got event.Event
		require.NoError(t, json.Unmarshal(m.Data, &got))
		require.Equal(t, want, got)
		st, err := conn.JS().Stream(t.Context(), subject.DefaultPartitions.Stream(log))
		require.NoError(t, err)
		stored, err := st.GetMsg(t.Context(), number(m, event.HeaderStreamSeq))
		require.NoError(t, err)
		require.JSONEq(t, string(m.Data), string(stored.Data))
		require.Equal(t, got.DedupeID(), stored.Header.Get(nats.MsgIdHdr))
	}
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	require.EqualValues(t, 2, end.Seq)
	end, err = s.Last(t.Context(), testLog("nothing"))
	require.NoError(t, err)
	require.Zero(t, end)
}

func TestReadGivesHistoryOrSaysWhyNot(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("history")
	fill(t, s, log, 0, 600) // three pages
	var got []*Entry
	read := func(after Cursor) error {
		got = nil
		return s.Read(t.Context(), log, after, func(e *Entry) error { got = append(got, e); return nil })
	}
	require.NoError(t, read(Cursor{}))
	requireDense(t, got, 0)
	require.Len(t, got, 600)
	all := got

	for _, after := range []Cursor{{Seq: 300}, {Seq: 300, Stream: all[299].Stream}, {Seq: 300, Stream: 1}, {Seq: 300, Stream: 1 << 40}, {Seq: 300, Stream: all[500].Stream}} {
		require.NoError(t, read(after), "a wrong stream sequence is only a bad hint: %v", after)
		require.Len(t, got, 300)
		requireDense(t, got, 300)
	}
	require.NoError(t, read(all[599].Cursor()))
	require.Empty(t, got)
	require.ErrorIs(t, read(Cursor{Seq: 601}), ErrBeyondEnd)
	require.ErrorIs(t, s.Read(t.Context(), log, Cursor{}, func(*Entry) error { return errSynthetic }), errSynthetic)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Read(ctx, log, Cursor{}, func(*Entry) error { return nil }), context.Canceled)

	expire(t, s, log, all[99].Stream)
	var truncated *TruncatedError
	require.ErrorAs(t, read(Cursor{}), &truncated)
	require.EqualValues(t, 101, truncated.First)
	require.ErrorAs(t, read(all[49].Cursor()), &truncated)
	require.NoError(t, read(Cursor{Seq: truncated.First - 1}))
	require.Len(t, got, 500)
}

// expire removes the entries up to the stream sequence, as age does.
func expire(t testing.TB, s *Store, log subject.Log, through uint64) {
	body := fmt.Sprintf(`{"filter":%q,"seq":%d}`, subject.DefaultPartitions.Event(log), through+1)
	m, err := s.nc.Request("$JS.API.STREAM.PURGE."+subject.DefaultPartitions.Stream(log), []byte(body), 10*time.Second)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `"success":true`)
}

func TestWriterMeetsAnExpiredLog(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("expired")
	f := &fold{}
	w := s.Writer(log, f.observe)
	for i := range 3 {
		require.NoError(t, w.Append(t.Context(), missing(f.has, notice(log, fmt.Sprint(i)))))
	}
	expire(t, s, log, w.at.Stream)
	require.NoError(t, w.Append(t.Context(), missing(f.has, notice(log, "3"))), "the log goes on")
	require.EqualValues(t, 4, w.Seq())
	g := &fold{}
	late := s.Writer(log, g.observe)
	require.NoError(t, late.Sync(t.Context()))
	require.Equal(t, []string{"3"}, g.ids)
	require.EqualValues(t, 4, late.Seq())
}

func TestWriterNoticesALogThatWentBack(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("back")
	f := &fold{}
	w := s.Writer(log, f.observe)
	require.NoError(t, w.Append(t.Context(), missing(f.has, notice(log, "a"), notice(log, "b"))))
	expire(t, s, log, w.at.Stream)
	inject(t, conn, log, notice(log, "other"), 1, 0) // as after the restore of an old copy
	require.ErrorIs(t, w.Append(t.Context(), missing(f.has, notice(log, "c"))), ErrBeyondEnd)
	require.ErrorIs(t, w.Sync(t.Context()), ErrBeyondEnd)
}

func TestAppendRefusesWhatWouldNotBeFoundAgain(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{Retry: time.Second}), testLog("refuse")
	w := s.Writer(log, nil)
	bad := []event.Event{notice(testLog("other"), "x"), notice(log, ""), notice(log, "a\r\nb"), notice(log, "é"), notice(log, strings.Repeat("x", 300))}
	for _, kind := range []event.Type{"", "a..b", "a.>", "a b", "A", "a\nb", "*"} {
		ev := notice(log, "y")
		ev.Type = kind
		bad = append(bad, ev)
	}
	bad = append(bad, newEvent(log, "big", delta("m", strings.Repeat("x", 300<<10))))
	for _, ev := range bad {
		err := w.Append(t.Context(), func() ([]event.Event, error) { return []event.Event{ev}, nil })
		require.ErrorIs(t, err, ErrRefused, "%s %s", ev.Type, ev.ID)
	}
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	require.Zero(t, end)
	require.ErrorIs(t, w.Append(t.Context(), func() ([]event.Event, error) { return nil, errSynthetic }), errSynthetic)
}

func TestAppendNeverTakesAnotherEventForItsOwn(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{Retry: time.Second}), testLog("stolen")
	other := log
	for i := 0; other == log || subject.DefaultPartitions.Of(other) != subject.DefaultPartitions.Of(log); i++ {
		other = testLog(fmt.Sprintf("thief%d", i))
	}
	mine := notice(log, "x")
	raw, err := entry.Encode(mine)
	require.NoError(t, err)
	_, err = conn.NATS().RequestMsg(&nats.Msg{Subject: subject.DefaultPartitions.Event(other), Data: raw, Header: nats.Header{nats.MsgIdHdr: {mine.DedupeID()}}}, 10*time.Second)
	require.NoError(t, err)
	w := s.Writer(log, nil)
	err = w.Append(t.Context(), func() ([]event.Event, error) { return []event.Event{mine}, nil })
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "belongs to")
}

func TestAppendOfWhatIsThereCountsAsDone(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("again")
	w := s.Writer(log, nil)
	twice := func() ([]event.Event, error) { return []event.Event{notice(log, "same")}, nil }
	require.NoError(t, w.Append(t.Context(), twice))
	require.NoError(t, w.Append(t.Context(), twice), "decide is not pure, the log is not harmed")
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	require.EqualValues(t, 1, end.Seq)
}

func TestAppendGivesUpAfterItsBudget(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{Retry: 300 * time.Millisecond}), testLog("down")
	w := s.Writer(log, nil)
	require.NoError(t, w.Sync(t.Context()))
	require.NoError(t, conn.JS().DeleteStream(t.Context(), subject.DefaultPartitions.Stream(log)))
	err := w.Append(t.Context(), func() ([]event.Event, error) { return []event.Event{notice(log, "x")}, nil })
	require.ErrorIs(t, err, fault.New(fault.BusUnavailable))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	w.synced = true
	err = w.Append(ctx, func() ([]event.Event, error) { return []event.Event{notice(log, "x")}, nil })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestDeltasMergeWhatWaits(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("deltas")
	var text strings.Builder
	w := s.Writer(log, func(e *Entry) {
		d, err := event.As[event.MessageDeltaData](e.Event)
		require.NoError(t, err)
		text.WriteString(d.Text)
	})
	hold, held := make(chan struct{}), make(chan struct{})
	d := w.Deltas(t.Context(), 0, func(n int, text string) (event.Event, error) {
		if n == 1 {
			close(held)
			<-hold // the first append takes its time
		}
		return newEvent(log, fmt.Sprintf("d%d", n), delta("m", text)), nil
	}, nil)
	require.NoError(t, d.Write("0,"))
	<-held
	want := "0,"
	for i := 1; i < 200; i++ {
		piece := fmt.Sprintf("é%d,", i)
		require.NoError(t, d.Write(piece))
		want += piece
	}
	close(hold)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "idempotent")
	require.Error(t, d.Write("late"))
	require.Equal(t, want, text.String())
	require.EqualValues(t, 2, w.Seq(), "one in flight, the rest in one")
	require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) { return nil, nil }), "the writer is back")
}

// TestDeltasGatherWhatComesInAPause: the first piece is appended at once, those that come within the pause after it in one event,
// and the last ones without a pause.
func TestDeltasGatherWhatComesInAPause(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("pause")
	appended := make(chan string, 10)
	w := s.Writer(log, func(e *Entry) {
		d, err := event.As[event.MessageDeltaData](e.Event)
		require.NoError(t, err)
		appended <- d.Text
	})
	d := w.Deltas(t.Context(), 24*time.Hour, func(n int, text string) (event.Event, error) {
		return newEvent(log, fmt.Sprintf("d%d", n), delta("m", text)), nil
	}, nil)
	require.NoError(t, d.Write("first "))
	require.Equal(t, "first ", <-appended)
	for _, piece := range []string{"of ", "many ", "pieces"} {
		require.NoError(t, d.Write(piece))
	}
	require.NoError(t, d.Close())
	require.Equal(t, "of many pieces", <-appended)
	require.EqualValues(t, 2, w.Seq())

	d = w.Deltas(t.Context(), time.Millisecond, func(n int, text string) (event.Event, error) {
		return newEvent(log, fmt.Sprintf("e%d", n), delta("m", text)), nil
	}, nil)
	for _, piece := range []string{"one", "two"} { // the second comes after its pause, without Close
		require.NoError(t, d.Write(piece))
		require.Equal(t, piece, <-appended)
	}
	require.NoError(t, d.Close())

	ctx, cancel := context.WithCancel(t.Context())
	d = w.Deltas(ctx, 24*time.Hour, func(n int, text string) (event.Event, error) {
		return newEvent(log, fmt.Sprintf("f%d", n), delta("m", text)), nil
	}, nil)
	require.NoError(t, d.Write("last"))
	require.Equal(t, "last", <-appended)
	cancel() // the end of the context ends the pause
	require.Eventually(t, func() bool { return errors.Is(d.Write("late"), context.Canceled) }, bustest.MaxWait, time.Millisecond)
	require.ErrorIs(t, d.Close(), context.Canceled)
}

func TestDeltasBoundWhatWaits(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("bound")
	total := 0
	w := s.Writer(log, func(e *Entry) {
		d, err := event.As[event.MessageDeltaData](e.Event)
		require.NoError(t, err)
		require.LessOrEqual(t, len(d.Text), maxDelta)
		total += len(d.Text)
	})
	hold := make(chan struct{})
	d := w.Deltas(t.Context(), 0, func(n int, text string) (event.Event, error) {
		<-hold
		return newEvent(log, fmt.Sprintf("d%d", n), delta("m", text)), nil
	}, nil)
	var written atomic.Int64
	done := make(chan error, 1)
	go func() {
		var err error
		for range 300 {
			err = errors.Join(err, d.Write(strings.Repeat("\x01", 1000))) // the longest escapes
			written.Add(1000)
		}
		done <- errors.Join(err, d.Write(strings.Repeat("ü", 200_000)))
	}()
	require.Eventually(t, func() bool { return written.Load() >= 60_000 }, bustest.MaxWait, time.Millisecond)
	require.LessOrEqual(t, written.Load(), int64(maxWaiting+maxDelta+1000))
	close(hold)
	require.NoError(t, <-done)
	require.NoError(t, d.Close())
	require.Equal(t, 300*1000+400_000, total)
}

func TestDeltasStopAtTheFence(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("fence")
	f := &fold{}
	w := s.Writer(log, f.observe)
	taken := false
	wrap := func(e *Entry) {
		f.observe(e)
		taken = taken || e.ID == "takeover"
	}
	w.observe = wrap
	d := w.Deltas(t.Context(), 0, func(n int, text string) (event.Event, error) {
		return newEvent(log, fmt.Sprintf("d%d", n), delta("m", text)), nil
	}, func() error {
		if taken {
			return errSynthetic
		}
		return nil
	})
	require.NoError(t, d.Write("one"))
	require.Eventually(t, func() bool {
		end, err := s.Last(t.Context(), log)
		return err == nil && end.Seq == 1
	}, 10*time.Second, time.Millisecond)
	other := newStore(t, conn, Options{}).Writer(log, nil)
	for _, id := range []string{"harmless", "takeover"} {
		sent := false
		require.NoError(t, other.Append(t.Context(), func() ([]event.Event, error) {
			if sent {
				return nil, nil
			}
			sent = true
			return []event.Event{notice(log, id)}, nil
		}))
	}
	require.NoError(t, d.Write("two"))
	require.ErrorIs(t, d.Close(), errSynthetic)
	require.ErrorIs(t, d.Write("three"), errSynthetic)
	require.Equal(t, []string{"d1", "harmless", "takeover"}, f.ids)
}

func TestDeltasEndWithTheirContext(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("ctx")
	ctx, cancel := context.WithCancel(t.Context())
	w := s.Writer(log, nil)
	d := w.Deltas(ctx, 0, func(_ int, text string) (event.Event, error) {
		cancel()
		return newEvent(log, "d", delta("m", text)), nil
	}, nil)
	require.NoError(t, d.Write("x"))
	require.ErrorIs(t, d.Close(), context.Canceled)
	d = w.Deltas(t.Context(), 0, func(int, string) (event.Event, error) { return event.Event{}, errSynthetic }, nil)
	require.NoError(t, d.Write("x"))
	require.ErrorIs(t, d.Close(), errSynthetic)
}

func TestMetricsAreWellFormed(t *testing.T) {
	conn := single(t)
	reg := prometheus.NewPedanticRegistry()
	s := newStore(t, conn, Options{Registry: reg})
	fill(t, s, testLog("metrics"), 0, 3)
	_, err := New(conn, Options{Registry: reg})
	require.Error(t, err, "one Store per registry")
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
	n, err := testutil.GatherAndCount(reg, "waggle_log_append_seconds")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
