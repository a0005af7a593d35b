package ledger_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

var ref = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal("t1")}

var errBad = errors.New("cannot be folded")

// notes is the fold of a log of notices.
type notes struct {
	ids     []string
	deleted bool
}

func (n *notes) has(eventID string) bool {
	for _, other := range n.ids {
		if other == eventID {
			return true
		}
	}
	return false
}

// fold refuses events with the id.
func fold(refused func(eventID string) bool) func(*notes, event.Event) error {
	return func(n *notes, e event.Event) error {
		if e.Type.Tombstone() {
			*n = notes{deleted: true}
			return nil
		}
		if refused(e.ID) {
			return errBad
		}
		n.ids = append(n.ids, e.ID)
		return nil
	}
}

func nothing(string) bool { return false }

type rig struct{ *servicetest.Rig }

func newRig(t *testing.T) *rig {
	t.Parallel()
	return &rig{servicetest.New(t, bustest.Single(t), time.Minute)}
}

// config is that of another process at each call.
func (r *rig) config(refused func(string) bool) ledger.Config[notes] {
	return ledger.Config[notes]{Store: r.Store(), Source: "test", Fold: fold(refused)}
}

// want appends the notice unless it is there.
func want(eventID string) func(*notes) (decision.Decision, error) {
	return func(n *notes) (decision.Decision, error) {
		if n.has(eventID) {
			return decision.Decision{}, nil
		}
		return decision.Of(decision.Fact{ID: eventID, Data: event.NoticeData{Message: eventID}}), nil
	}
}

func (r *rig) ids(l *ledger.Log[notes]) (ids []string) {
	r.T.Helper()
	require.NoError(r.T, l.Read(r.Ctx, func(n *notes) error {
		ids = append(ids, n.ids...)
		return nil
	}))
	return ids
}

func TestProcessesAppendEachFactOnce(t *testing.T) {
	r := newRig(t)
	var all sync.WaitGroup
	for range 3 {
		l := ledger.Open(r.config(nothing), ref)
		for i := range 10 {
			all.Go(func() {
				if _, err := l.Update(r.Ctx, want(fmt.Sprint("n", i))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	ids := r.ids(ledger.Open(r.config(nothing), ref))
	require.Len(t, ids, 10)
	require.ElementsMatch(t, []string{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"}, ids)
}

// TestPutGoesOnAfterAConflict: events whose ids are in the log are not asked for again.
func TestPutGoesOnAfterAConflict(t *testing.T) {
	r := newRig(t)
	l, other := ledger.Open(r.config(nothing), ref), ledger.Open(r.config(nothing), ref)
	var asked [][]string
	err := l.Put(r.Ctx, []string{"a", "b"}, func(_ *notes, left []string) ([]event.Event, error) {
		asked = append(asked, append([]string(nil), left...))
		if len(asked) == 1 {
			_, err := other.Update(r.Ctx, want("x"))
			require.NoError(t, err)
		}
		var out []event.Event
		for _, eventID := range left {
			e, err := event.New(ref, eventID, "test", time.Now(), event.NoticeData{Message: eventID})
			require.NoError(t, err)
			out = append(out, e)
		}
		return out, nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"x", "a", "b"}, r.ids(other))
	require.Equal(t, [][]string{{"a", "b"}, {"a", "b"}}, asked)
	require.Equal(t, []string{"x", "a", "b"}, r.ids(l))
}

// TestABrokenLogIsReadAnew: the call that meets an event which cannot be folded fails for
// good, and the next one reads the log from its beginning.
func TestABrokenLogIsReadAnew(t *testing.T) {
	r := newRig(t)
	_, err := ledger.Open(r.config(nothing), ref).Update(r.Ctx, want("bad"))
	require.NoError(t, err)
	broken := true
	l := ledger.Open(r.config(func(eventID string) bool { return broken && eventID == "bad" }), ref)
	l.Outbox.Done("key")
	require.ErrorIs(t, l.Sync(r.Ctx), errBad)
	require.False(t, l.Outbox.Has("key"), "with the fold goes what was sent because of it")
	_, err = l.Update(r.Ctx, want("more"))
	require.ErrorIs(t, err, errBad)
	broken = false
	_, err = l.Update(r.Ctx, want("more"))
	require.NoError(t, err)
	require.Equal(t, []string{"bad", "more"}, r.ids(l))
}

func TestATombstoneEndsABrokenLog(t *testing.T) {
	r := newRig(t)
	w := ledger.Open(r.config(nothing), ref)
	_, err := w.Update(r.Ctx, want("bad"))
	require.NoError(t, err)
	l := ledger.Open(r.config(func(eventID string) bool { return eventID == "bad" }), ref)
	require.ErrorIs(t, l.Sync(r.Ctx), errBad)
	_, err = w.Step(r.Ctx, func(*notes) (decision.Decision, error) {
		return decision.Of(decision.Fact{ID: "gone", Data: event.TaskDeletedData{Reason: "test"}}), nil
	})
	require.NoError(t, err)
	require.NoError(t, l.Sync(r.Ctx))
	require.True(t, l.Deleted())
	require.True(t, l.State().deleted)
}

func TestAwaitFoldsWhatComes(t *testing.T) {
	r := newRig(t)
	l, other := ledger.Open(r.config(nothing), ref), ledger.Open(r.config(nothing), ref)
	_, err := other.Update(r.Ctx, want("a"))
	require.NoError(t, err)
	require.NoError(t, l.Sync(r.Ctx))
	var others sync.WaitGroup
	others.Go(func() {
		for _, eventID := range []string{"b", "c", "d"} {
			if _, err := other.Update(r.Ctx, want(eventID)); err != nil {
				t.Error(err)
			}
		}
	})
	require.NoError(t, l.Await(r.Ctx, func(e event.Event) bool { return e.ID == "c" }))
	require.Equal(t, []string{"a", "b", "c"}, l.State().ids)
	_, err = l.Update(r.Ctx, want("e"))
	require.NoError(t, err)
	others.Wait()
	require.ElementsMatch(t, r.ids(l), []string{"a", "b", "c", "d", "e"})
}

// TestPinnedLogsStay: a pinned log is the only one of its process, however many others are
// used.
func TestPinnedLogsStay(t *testing.T) {
	r := newRig(t)
	cfg := r.config(nothing)
	cfg.Cached = 2
	logs, err := ledger.NewLogs(cfg)
	require.NoError(t, err)
	l := logs.Pin(ref)
	for i := range 4 {
		logs.Get(subject.Log{Tenant: ref.Tenant, Kind: ref.Kind, Entity: id.EntityFromExternal(fmt.Sprint("other", i))})
	}
	logs.Drop(ref)
	require.Same(t, l, logs.Get(ref))
	logs.Unpin(ref)
	require.Same(t, l, logs.Get(ref))
	logs.Drop(ref)
	require.NotSame(t, l, logs.Get(ref))
}

// However long the logs are, the folds in memory have a bounded number of events; the one in use may be longer.
func TestFoldsAreBoundedByTheirEvents(t *testing.T) {
	r := newRig(t)
	cfg := r.config(nothing)
	cfg.Events = 10
	logs, err := ledger.NewLogs(cfg)
	require.NoError(t, err)
	at := func(i int) subject.Log {
		return subject.Log{Tenant: ref.Tenant, Kind: ref.Kind, Entity: id.EntityFromExternal(fmt.Sprint("long", i))}
	}
	kept := map[int]*ledger.Log[notes]{}
	for i := range 4 {
		kept[i] = logs.Get(at(i))
		for n := range 4 {
			_, err := kept[i].Update(r.Ctx, want(fmt.Sprint("n", n)))
			require.NoError(t, err)
		}
		require.Same(t, kept[i], logs.Get(at(i)))
	}
	require.Same(t, kept[2], logs.Get(at(2)))
	require.Same(t, kept[3], logs.Get(at(3)))
	require.NotSame(t, kept[0], logs.Get(at(0)))
	for n := range 20 {
		_, err := kept[3].Update(r.Ctx, want(fmt.Sprint("more", n)))
		require.NoError(t, err)
	}
	require.Same(t, kept[3], logs.Get(at(3)), "the one in use stays")
	require.NotSame(t, kept[2], logs.Get(at(2)))
	logs.Drop(at(3))
	require.NotSame(t, kept[3], logs.Get(at(3)))
}
