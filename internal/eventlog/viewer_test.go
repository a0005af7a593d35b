package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestWatchSeesHistoryThenLive(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("live")
	fill(t, s, log, 0, 300)
	r := newRecorder(-1)
	v := watch(s, log, Cursor{}, r)
	defer v.Close()
	r.reach(t, 300)
	r.wait(t, "caught up", func() bool { return len(r.caught) == 1 && r.caught[0] == 300 })
	fill(t, newStore(t, conn, Options{}), log, 300, 100)
	r.reach(t, 400)
	r.exact(t, 0)
	stands(t, v, 400)
	require.Len(t, r.entries, 400, "a viewer that was never full sees every event")

	second := newRecorder(-1)
	from := r.entries[349].Cursor()
	w := watch(s, log, from, second)
	defer w.Close()
	second.reach(t, 400)
	second.exact(t, 350)
	require.Same(t, r.entries[399], second.entries[49], "entries are shared")
	require.EqualValues(t, 1, testutil.ToFloat64(s.met.watched))
	require.EqualValues(t, 2, testutil.ToFloat64(s.met.viewers))
}

func TestWatchOfALogThatDoesNotExistYet(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("later")
	r := newRecorder(-1)
	v := watch(s, log, Cursor{}, r)
	defer v.Close()
	r.wait(t, "caught up", func() bool { return len(r.caught) == 1 && r.caught[0] == 0 })
	fill(t, s, log, 0, 5)
	r.reach(t, 5)
	r.exact(t, 0)
}

func TestWatchSaysWhenThePositionIsBeyondTheEnd(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("beyond")
	fill(t, s, log, 0, 3)
	for _, l := range []subject.Log{log, testLog("beyond-nothing")} {
		r := newRecorder(-1)
		v := watch(s, l, Cursor{Seq: 4, Stream: 9}, r)
		r.wait(t, "failure", func() bool { return r.failed != nil })
		require.ErrorIs(t, r.failed, ErrBeyondEnd)
		v.Close()
	}
	// A position that is ahead of this Store's announcements is not beyond the end.
	r := newRecorder(-1)
	v := watch(s, log, Cursor{}, r)
	defer v.Close()
	r.reach(t, 3)
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	at := inject(t, conn, log, notice(log, "silent"), 4, end.Stream)
	ahead := newRecorder(-1)
	w := watch(s, log, Cursor{Seq: 4, Stream: at}, ahead)
	defer w.Close()
	ahead.wait(t, "caught up", func() bool { return len(ahead.caught) == 1 })
	r.reach(t, 4)
	r.exact(t, 0)
}

func TestResumeDoesNotTrustTheStreamSequence(t *testing.T) {
	t.Parallel()
	conn := single(t)
	s, log := newStore(t, conn, Options{Ring: 4}), testLog("hint")
	fill(t, s, testLog("other"), 0, 20)
	fill(t, s, log, 0, 600)
	for _, stream := range []uint64{0, 1, 15, 100, 619, 1 << 60} {
		r := newRecorder(-1)
		v := watch(s, log, Cursor{Seq: 300, Stream: stream}, r)
		r.reach(t, 600)
		r.exact(t, 300)
		require.Empty(t, r.lag)
		v.Close()
	}
}

func TestExpiredHeadIsAnnounced(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{Ring: 4}), testLog("head")
	fill(t, s, log, 0, 50)
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	expire(t, s, log, end.Stream-10)
	for _, after := range []Cursor{{}, {Seq: 3}, {Seq: 3, Stream: 3}} {
		r := newRecorder(-1)
		v := watch(s, log, after, r)
		r.reach(t, 50)
		require.Equal(t, []uint64{41}, r.lag)
		r.exact(t, 40)
		v.Close()
	}
}

func TestResumeAtTheEndReadsNothing(t *testing.T) {
	conn := single(t)
	log := testLog("quiet")
	fill(t, newStore(t, conn, Options{}), log, 0, 600)
	s := newStore(t, conn, Options{})
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	for _, at := range []Cursor{end, {Seq: 600}} {
		r := newRecorder(-1)
		v := watch(s, log, at, r)
		r.wait(t, "caught up", func() bool { return len(r.caught) == 1 })
		require.Equal(t, end, v.Position())
		v.Close()
	}
	require.Zero(t, testutil.ToFloat64(s.met.reads.WithLabelValues("stream")))
	r := newRecorder(-1)
	defer watch(s, log, Cursor{Seq: 590, Stream: end.Stream - 10}, r).Close()
	r.reach(t, 600)
	require.EqualValues(t, 1, testutil.ToFloat64(s.met.reads.WithLabelValues("stream")))
}

// A connection may be lost while a viewer waits until its subscription is known.
func TestAViewerSurvivesALossWhileItStarts(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	log := testLog("begun")
	fill(t, newStore(t, bustest.Dial(t, in.URL), Options{}), log, 0, 3)
	port, err := strconv.Atoi(in.URL[strings.LastIndexByte(in.URL, ':')+1:])
	require.NoError(t, err)
	p := newProxy(t, port)
	s := newStore(t, bustest.Dial(t, p.url()), Options{})
	before := p.arm("SUB " + log.LiveAll())
	r := newRecorder(-1)
	defer watch(s, log, Cursor{}, r).Close()
	r.reach(t, 3)
	require.Equal(t, before+1, p.struck())
}

func TestALogThatWasLostEndsItsViewers(t *testing.T) {
	t.Parallel()
	conn := single(t)
	s, log := newStore(t, conn, Options{Check: 100 * time.Millisecond}), testLog("lost")
	fill(t, s, log, 0, 5)
	r := newRecorder(-1)
	v := watch(s, log, Cursor{}, r)
	defer v.Close()
	r.reach(t, 5)
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	expire(t, s, log, end.Stream)
	r.wait(t, "failure", func() bool { return r.failed != nil })
	require.ErrorIs(t, r.failed, ErrBeyondEnd)
	again := newRecorder(-1)
	w := watch(s, log, Cursor{}, again)
	defer w.Close()
	again.wait(t, "caught up", func() bool { return len(again.caught) == 1 && again.caught[0] == 0 })
}

// TestARemovedLogWithoutReadersIsNoFailure: the logs of a tenant that has moved go while they are still watched.
func TestARemovedLogWithoutReadersIsNoFailure(t *testing.T) {
	t.Parallel()
	conn := single(t)
	logged := make(lines, 100)
	s, log := newStore(t, conn, Options{Check: 100 * time.Millisecond, Linger: time.Hour, Logger: zerolog.New(logged)}), testLog("removed")
	fill(t, s, log, 0, 5)
	r := newRecorder(-1)
	v := watch(s, log, Cursor{}, r)
	r.reach(t, 5)
	v.Close()
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	expire(t, s, log, end.Stream)
	for line := range logged {
		require.NotContains(t, line, `"level":"error"`)
		if strings.Contains(line, "removed log forgotten") {
			return
		}
	}
}

// lines is a log that a test reads line by line.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func TestLostAnnouncementsAreHealed(t *testing.T) {
	t.Parallel()
	conn := single(t)
	s, log := newStore(t, conn, Options{Check: 200 * time.Millisecond}), testLog("heal")
	fill(t, s, log, 0, 3)
	r := newRecorder(-1)
	v := watch(s, log, Cursor{}, r)
	defer v.Close()
	r.wait(t, "caught up", func() bool { return len(r.caught) == 1 })
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	stream := end.Stream
	for i := range uint64(5) { // stored, but never announced
		stream = inject(t, conn, log, notice(log, fmt.Sprintf("silent%d", i)), 4+i, stream)
	}
	fill(t, s, log, 100, 1) // shows the hole
	r.reach(t, 9)
	stream, _ = func() (uint64, error) { c, err := s.Last(t.Context(), log); return c.Stream, err }()
	inject(t, conn, log, notice(log, "quiet"), 10, stream) // nothing shows this one but the check
	r.reach(t, 10)
	r.exact(t, 0)
	require.Positive(t, testutil.ToFloat64(s.met.heals.WithLabelValues(healCheck)))
}

func TestForgedAnnouncementsAreForgotten(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("forged")
	fill(t, s, log, 0, 3)
	r := newRecorder(-1)
	v := watch(s, log, Cursor{}, r)
	defer v.Close()
	r.wait(t, "caught up", func() bool { return len(r.caught) == 1 })
	ghost := notice(log, "ghost")
	ghost.Sequence = 9
	raw, err := entry.Encode(ghost)
	require.NoError(t, err)
	s.publishLive(log, &Entry{Event: at(ghost, 99), Raw: raw})
	s.publishLive(log, &Entry{Event: at(ghost, 99), Raw: []byte("nonsense")})
	s.publishLive(log, &Entry{Event: at(ghost, 0), Raw: raw})
	fill(t, s, log, 10, 10) // the ghost's sequence belongs to one of these
	r.reach(t, 13)
	r.exact(t, 0)
	require.Len(t, r.entries, 13)
}

func TestSlowViewerCatchesUpMerged(t *testing.T) {
	conn := single(t)
	for _, ring := range []int{8, 4096} { // catches up from the stream, from memory
		s, log := newStore(t, conn, Options{Ring: ring}), testLog(fmt.Sprintf("slow%d", ring))
		fast, slow := newRecorder(-1), newRecorder(3)
		a, b := watch(s, log, Cursor{}, fast), watch(s, log, Cursor{}, slow)
		for _, r := range []*recorder{fast, slow} {
			r.wait(t, "caught up", func() bool { return len(r.caught) == 1 })
		}
		w := s.Writer(log, nil)
		want := ""
		for i := range 400 {
			ev := newEvent(log, fmt.Sprint(i), delta("m", fmt.Sprintf("%d,", i)))
			want += fmt.Sprintf("%d,", i)
			sent := false
			require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) {
				if sent {
					return nil, nil
				}
				sent = true
				return []event.Event{ev}, nil
			}))
		}
		fast.reach(t, 400)
		slow.wait(t, "full", func() bool { return slow.full == 1 })
		stands(t, b, 3)
		a.Resume() // not full: nothing happens
		slow.allow(1)
		b.Resume()
		slow.wait(t, "full again", func() bool { return slow.full == 2 })
		require.Greater(t, slow.last, uint64(3), "one merged entry stands for many")
		slow.allow(-1)
		b.Resume()
		slow.reach(t, 400)
		slow.exact(t, 0)
		require.Less(t, len(slow.entries), 12)
		require.Equal(t, texts(t, fast.entries), texts(t, slow.entries))
		require.Equal(t, want, texts(t, slow.entries)["message.delta m#1"])
		fill(t, s, log, 1000, 3)
		slow.reach(t, 403)
		require.Len(t, slow.caught, 1)
		a.Close()
		b.Close()
	}
}

// eager calls Resume from within Deliver.
type eager struct {
	*recorder
	v  *Viewer
	mu sync.Mutex
}

func (e *eager) Deliver(batch []*Entry) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.allow(2)
	n := e.recorder.Deliver(batch)
	e.v.Resume()
	return n
}

func TestResumeFromWithinDeliverIsNotLost(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("eager")
	fill(t, s, log, 0, 100)
	e := &eager{recorder: newRecorder(2)}
	e.mu.Lock()
	e.v = s.Watch(log, Cursor{}, e)
	e.mu.Unlock()
	defer e.v.Close()
	fill(t, s, log, 100, 100)
	e.reach(t, 200)
	e.exact(t, 0)
}

func TestManyViewersShareOneRead(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("herd")
	fill(t, s, log, 0, 200)
	fresh := newStore(t, conn, Options{})
	sinks := make([]*recorder, 300)
	for i := range sinks {
		sinks[i] = newRecorder(-1)
		defer watch(fresh, log, Cursor{Seq: 20}, sinks[i]).Close()
	}
	for _, r := range sinks {
		r.reach(t, 200)
		r.exact(t, 20)
	}
	require.LessOrEqual(t, testutil.ToFloat64(fresh.met.reads.WithLabelValues("stream")), 10.0)
}

func TestUnwatchedLogsAreDropped(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{Linger: 50 * time.Millisecond, Check: 80 * time.Millisecond}), testLog("dropped")
	fill(t, s, log, 0, 3)
	for range 3 {
		r := newRecorder(-1)
		v := watch(s, log, Cursor{}, r)
		r.reach(t, 3)
		require.EqualValues(t, 1, testutil.ToFloat64(s.met.watched))
		require.Positive(t, testutil.ToFloat64(s.met.ringBytes))
		v.Close()
		v.Close()
		require.Eventually(t, func() bool { return testutil.ToFloat64(s.met.watched) == 0 }, time.Minute, time.Millisecond)
		require.Zero(t, s.ringBytes.Load())
		require.Zero(t, testutil.ToFloat64(s.met.viewers))
	}
}

func TestCloseEndsViewersAndTheirCallbacks(t *testing.T) {
	conn := single(t)
	s, err := New(conn, Options{})
	require.NoError(t, err)
	log := testLog("close")
	fill(t, s, log, 0, 3)
	open, closed := newRecorder(-1), newRecorder(-1)
	watch(s, log, Cursor{}, open)
	v := watch(s, log, Cursor{}, closed)
	closed.reach(t, 3)
	v.Close()
	v.Resume()
	fill(t, s, log, 3, 1)
	open.reach(t, 4)
	s.Close()
	s.Close()
	require.ErrorIs(t, open.failed, ErrClosed)
	require.NoError(t, closed.failed)
	require.EqualValues(t, 3, closed.last, "nothing after Close")
	late := newRecorder(-1)
	watch(s, log, Cursor{}, late)
	late.wait(t, "failure", func() bool { return late.failed != nil })
	require.ErrorIs(t, late.failed, ErrClosed)
}

func TestUnreadableMessagesAreNotPassedOver(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("alien")
	fill(t, s, log, 0, 3)
	_, err := conn.NATS().Request(subject.DefaultPartitions.Event(log), []byte("not an event"), 10*time.Second)
	require.NoError(t, err)
	r := newRecorder(-1)
	v := watch(s, log, Cursor{}, r)
	defer v.Close()
	r.wait(t, "failure", func() bool { return r.failed != nil })
	require.ErrorIs(t, r.failed, ErrUnreadable)
	require.ErrorIs(t, s.Writer(log, nil).Sync(t.Context()), ErrUnreadable)
	require.ErrorIs(t, s.Read(t.Context(), log, Cursor{}, func(*Entry) error { return nil }), ErrUnreadable)
}

func TestTailYieldsUntilItsContextEnds(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{Ring: 4}), testLog("tail")
	fill(t, s, log, 0, 700)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next := uint64(1)
	var end error
	for e, err := range s.Tail(ctx, log, Cursor{}) {
		if end = err; err != nil {
			break
		}
		require.Equal(t, next, e.From)
		if next = e.Sequence + 1; e.Sequence == 700 {
			fill(t, s, log, 700, 1)
		}
		if e.Sequence == 701 {
			cancel()
		}
	}
	require.ErrorIs(t, end, context.Canceled)

	at, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	expire(t, s, log, at.Stream-5)
	var first uint64
	for e, err := range s.Tail(t.Context(), log, Cursor{}) {
		var gone *TruncatedError
		if errors.As(err, &gone) {
			first = gone.First
			continue
		}
		require.NoError(t, err)
		require.Equal(t, first, e.Sequence)
		break
	}
	require.EqualValues(t, 697, first)
	for _, err := range s.Tail(t.Context(), log, Cursor{Seq: 9999}) {
		require.ErrorIs(t, err, ErrBeyondEnd)
	}
}

func TestRingsShrinkWhenMemoryIsShort(t *testing.T) {
	conn := single(t)
	s := newStore(t, conn, Options{TotalBytes: 64 << 10})
	text := strings.Repeat("x", 1000)
	var sinks []*recorder
	for i := range 8 {
		log, r := testLog(fmt.Sprintf("mem%d", i)), newRecorder(-1)
		defer watch(s, log, Cursor{}, r).Close()
		w := s.Writer(log, nil)
		for n := range 60 {
			sent := false
			require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) {
				if sent {
					return nil, nil
				}
				sent = true
				return []event.Event{newEvent(log, fmt.Sprint(n), delta("m", text))}, nil
			}))
		}
		sinks = append(sinks, r)
	}
	for _, r := range sinks {
		r.reach(t, 60)
		r.exact(t, 0)
	}
	require.Less(t, s.ringBytes.Load(), int64(64<<10+8*(minRing+1)*7200))
}

// at returns the event as stored at the stream's sequence.
func at(e event.Event, stream uint64) event.Event {
	e.Stream = stream
	return e
}
