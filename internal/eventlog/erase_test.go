package eventlog

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func tombstone(log subject.Log, eventID string) event.Event {
	return newEvent(log, eventID, event.SessionDeletedData{Reason: "user_request"})
}

// remove appends a tombstone as another process does.
func remove(t testing.TB, s *Store, log subject.Log) Cursor {
	t.Helper()
	w := s.Writer(log, nil)
	require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) {
		if w.Deleted() {
			return nil, nil
		}
		return []event.Event{tombstone(log, "deleted")}, nil
	}))
	return w.Cursor()
}

// storedTypes returns the types of the log's messages in the stream.
func storedTypes(t testing.TB, conn *bus.Conn, log subject.Log) (types []string) {
	t.Helper()
	st, err := conn.JS().Stream(t.Context(), subject.DefaultPartitions.Stream(log))
	require.NoError(t, err)
	for seq := uint64(1); ; {
		m, err := st.GetMsg(t.Context(), seq, jetstream.WithGetMsgSubject(subject.DefaultPartitions.Event(log)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return types
		}
		require.NoError(t, err)
		types = append(types, m.Header.Get(event.HeaderType))
		seq = m.Sequence + 1
	}
}

func isDeleted(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, ErrDeleted)
	require.ErrorIs(t, err, fault.New(fault.SessionDeleted))
}

// After the tombstone no event of a log is served, and after Erase no other event is stored, on one server and on
// three.
func TestErasedLogsKeepTheirTombstoneAlone(t *testing.T) {
	t.Parallel() // servers of a cluster mostly wait for each other
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("R%d", n), func(t *testing.T) {
			r := newRig(t, n)
			s, log := r.store(t, Options{}), testLog("gone")
			neighbour := testLog("neighbour-0")
			for i := 0; subject.DefaultPartitions.Stream(neighbour) != subject.DefaultPartitions.Stream(log); i++ {
				neighbour = testLog(fmt.Sprintf("neighbour-%d", i))
			}
			fill(t, s, log, 1, 40)
			fill(t, s, neighbour, 1, 5)
			_, err := s.Erase(t.Context(), log)
			require.ErrorIs(t, err, ErrRefused, "a log that lives is not erased")

			end := remove(t, s, log)
			require.EqualValues(t, 41, end.Seq)
			isDeleted(t, s.Read(t.Context(), log, Cursor{}, func(*Entry) error { return errSynthetic }))
			_, err = s.Last(t.Context(), log)
			isDeleted(t, err)
			erased, err := s.Erased(t.Context(), log)
			require.NoError(t, err)
			require.False(t, erased)

			removed, err := s.Erase(t.Context(), log)
			require.NoError(t, err)
			require.EqualValues(t, 40, removed)
			require.Equal(t, []string{string(event.SessionDeleted)}, storedTypes(t, r.connect(t), log))
			require.Len(t, storedTypes(t, r.connect(t), neighbour), 5, "logs of the same stream stay")
			removed, err = s.Erase(t.Context(), log)
			require.NoError(t, err)
			require.Zero(t, removed, "a repeat removes nothing")
			erased, err = s.Erased(t.Context(), log)
			require.NoError(t, err)
			require.True(t, erased)

			isDeleted(t, s.Read(t.Context(), log, Cursor{Seq: 7}, func(*Entry) error { return errSynthetic }))
			heads, err := s.Heads(t.Context(), log.Tenant, id.KindSession)
			require.NoError(t, err)
			require.Len(t, heads, 1)
			require.Equal(t, neighbour.Name(), heads[0].Subject)
		})
	}
}

// Viewers learn of a deletion in every state: live, behind with a warm ring, full, or later with any position, before
// and after the purge, in the same process and in another. They see no event of the log after its tombstone, and no
// gap.
func TestViewersGetTheTombstoneFromAnywhere(t *testing.T) {
	conn := single(t)
	writer, s := newStore(t, conn, Options{}), newStore(t, conn, Options{})
	log := testLog("gone")
	fill(t, writer, log, 1, 30)
	live, full := newRecorder(-1), newRecorder(3)
	defer watch(s, log, Cursor{}, live).Close()
	lagging := watch(s, log, Cursor{}, full)
	defer lagging.Close()
	live.reach(t, 30)
	full.wait(t, "a full sink", func() bool { return full.full > 0 })

	end := remove(t, writer, log)
	live.reach(t, end.Seq)
	live.exact(t, 0)
	full.allow(100)
	lagging.Resume()
	full.reach(t, end.Seq)
	require.Len(t, full.entries, 4, "what it had no room for is gone")

	come := func(what string, s *Store) {
		for _, after := range []uint64{0, 5, 29, 30} {
			late := newRecorder(-1)
			v := watch(s, log, Cursor{Seq: after}, late)
			late.wait(t, what, func() bool { return len(late.caught) == 1 })
			v.Close()
			require.Len(t, late.entries, 1, "%s, after %d", what, after)
			require.Equal(t, event.SessionDeleted, late.entries[0].Type)
			require.Empty(t, late.lag, "%s, after %d", what, after)
		}
	}
	come("a warm tail", s)
	_, err := writer.Erase(t.Context(), log)
	require.NoError(t, err)
	come("a warm tail after the purge", s)
	come("a cold tail after the purge", newStore(t, conn, Options{}))
	for _, r := range []*recorder{live, full} {
		require.Empty(t, r.lag)
		require.NoError(t, r.failed)
	}
}

// A tail that missed the tombstone, and whose log was purged meanwhile, heals by its check, in one step.
func TestALostTombstoneIsHealed(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{Check: 50 * time.Millisecond}), testLog("gone")
	fill(t, s, log, 1, 10)
	live, full := newRecorder(-1), newRecorder(4)
	defer watch(s, log, Cursor{}, live).Close()
	defer watch(s, log, Cursor{}, full).Close()
	live.reach(t, 10)
	end, err := s.Last(t.Context(), log)
	require.NoError(t, err)
	tl := s.tail(tailKey(log))
	func() {
		tl.mu.Lock() // no check sees event 11
		defer tl.mu.Unlock()
		quietly := inject(t, conn, log, notice(log, "unheard"), 11, end.Stream)
		inject(t, conn, log, tombstone(log, "deleted"), 12, quietly)
		_, err = newStore(t, conn, Options{}).Erase(t.Context(), log)
		require.NoError(t, err)
	}()
	live.reach(t, 12)
	require.Len(t, live.entries, 11, "event 11 was never seen and is gone")
	require.Empty(t, live.lag)
	require.NoError(t, live.failed)
}

// A Writer that has folded some of the log before its deletion, one that starts from an empty log, and one whose
// append is in flight all meet the tombstone and append nothing; one without events to append is not disturbed.
func TestWritersStopAtTheTombstone(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("gone")
	var before fold
	old := s.Writer(log, before.observe)
	require.NoError(t, old.Append(t.Context(), missing(before.has, notice(log, "a"), notice(log, "b"))))
	end := remove(t, s, log)
	stale, straggler := s.WriterAfter(log, Cursor{Seq: 1}, nil), s.Writer(log, nil)
	_, err := s.Erase(t.Context(), log)
	require.NoError(t, err)
	for what, w := range map[string]*Writer{"folded": old, "stale": stale, "straggler": straggler} {
		isDeleted(t, w.Append(t.Context(), func() ([]event.Event, error) { return []event.Event{notice(log, "late-"+what)}, nil }))
		require.True(t, w.Deleted(), what)
		require.Equal(t, end.Seq, w.Seq(), what)
		require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) { return nil, nil }), what)
	}
	require.Equal(t, []string{"a", "b", "deleted"}, before.ids)
	require.Equal(t, []string{string(event.SessionDeleted)}, storedTypes(t, conn, log))
}

// An append whose acknowledgement got lost is repeated under its dedupe id, which the server still knows after the
// purge. The Writer must find the tombstone then, and not ask for the removed event until its budget ends.
func TestARepeatedAppendOfARemovedEventEnds(t *testing.T) {
	t.Parallel() // servers of a cluster mostly wait for each other
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("R%d", n), func(t *testing.T) {
			r := newRig(t, n)
			conn := r.connect(t)
			s, log := newStore(t, conn, Options{Retry: 24 * time.Hour}), testLog("gone")
			var f fold
			w := s.Writer(log, f.observe)
			require.NoError(t, w.Append(t.Context(), missing(f.has, notice(log, "a"))))
			at := inject(t, conn, log, notice(log, "lost"), 2, w.Cursor().Stream)
			inject(t, conn, log, tombstone(log, "deleted"), 3, at)
			_, err := newStore(t, conn, Options{}).Erase(t.Context(), log)
			require.NoError(t, err)
			isDeleted(t, w.Append(t.Context(), missing(f.has, notice(log, "lost"))))
			require.Equal(t, []string{"a", "deleted"}, f.ids)
		})
	}
}

// A process repeats its last announcements after a reconnect, but not those of a log that was deleted meanwhile.
func TestDeletedEventsAreNotAnnouncedAgain(t *testing.T) {
	conn := single(t)
	s, other := newStore(t, conn, Options{}), newStore(t, conn, Options{})
	gone, here := testLog("gone"), testLog("here")
	fill(t, s, gone, 1, 5)
	fill(t, s, here, 1, 5)
	remove(t, other, gone)
	_, err := other.Erase(t.Context(), gone)
	require.NoError(t, err)
	heard := make(chan *nats.Msg, 100)
	sub, err := conn.NATS().ChanSubscribe(subject.LiveEverything, heard)
	require.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	s.connection(true)
	for range 5 {
		require.Contains(t, (<-heard).Subject, here.Name())
	}
	asked := make(chan struct{})
	s.pool(gone).Submit(func() { close(asked) })
	<-asked
	require.NoError(t, conn.NATS().Flush())
	require.Empty(t, heard)
}

// Writers, viewers and the purge race with a deletion, over two Stores. The log ends with one tombstone, whatever was
// in flight; each viewer has a part of the log without gaps or duplicates, and then the tombstone.
func TestADeletionRacesWithReadersAndWriters(t *testing.T) {
	const rounds, writers, viewers = 8, 3, 6
	conn := single(t)
	stores := []*Store{newStore(t, conn, Options{Check: 50 * time.Millisecond}), newStore(t, conn, Options{Check: 50 * time.Millisecond})}
	for round := range rounds {
		log := testLog(fmt.Sprint("race-", round))
		fill(t, stores[0], log, 1, 20)
		var all []*recorder
		var slow []func() // resumes viewers that were full until the deletion
		for i := range viewers {
			r := newRecorder([]int{-1, 7}[i%2])
			v := watch(stores[i%2], log, Cursor{Seq: uint64(i)}, r)
			defer v.Close()
			all = append(all, r)
			slow = append(slow, func() {
				r.allow(-1)
				v.Resume()
			})
		}
		var writing sync.WaitGroup
		for i := range writers {
			writing.Go(func() {
				w := stores[i%2].Writer(log, nil)
				for n := range 40 { // bounded: an append loop without a pause starves all others
					sent := false
					err := w.Append(t.Context(), func() ([]event.Event, error) {
						if sent {
							return nil, nil
						}
						sent = true
						return []event.Event{notice(log, fmt.Sprintf("w%d-%d", i, n))}, nil
					})
					if err != nil {
						if !errors.Is(err, ErrDeleted) {
							t.Errorf("writer %d: %v", i, err)
						}
						return
					}
				}
			})
		}
		all[0].reach(t, 30+uint64(round))
		end := remove(t, stores[round%2], log)
		for _, resume := range slow {
			resume()
		}
		_, err := stores[(round+1)%2].Erase(t.Context(), log)
		require.NoError(t, err)
		writing.Wait()
		require.Equal(t, []string{string(event.SessionDeleted)}, storedTypes(t, conn, log))
		for i, r := range all {
			r.reach(t, end.Seq)
			r.wait(t, "the end", func() bool { return len(r.caught) == 1 })
			last := r.entries[len(r.entries)-1]
			require.True(t, last.Type.Tombstone())
			require.Empty(t, r.lag, "viewer %d was told of a gap", i)
			require.NoError(t, r.failed)
			after := uint64(i)
			for _, e := range r.entries[:len(r.entries)-1] {
				require.Equal(t, after+1, e.From, "viewer %d", i)
				require.False(t, e.Type.Tombstone())
				after = e.Sequence
			}
		}
	}
}
