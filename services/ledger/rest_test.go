package ledger_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
)

func logOf(name string) subject.Log {
	return subject.Log{Tenant: ref.Tenant, Kind: ref.Kind, Entity: id.EntityFromExternal(name)}
}

// logs returns the logs of the process, of which so many stay awake.
func (k *keeper) logs(awake int) *ledger.Logs[notes] {
	k.T.Helper()
	cfg := k.config()
	cfg.Cached = awake
	logs, err := ledger.NewLogs(cfg)
	require.NoError(k.T, err)
	return logs
}

// A log that was at rest reads only what has come since, and has not forgotten what the process has sent.
func TestALogAtRestGoesOn(t *testing.T) {
	r := newRig(t)
	k := r.keeper("")
	logs := k.logs(1)
	first := logs.Get(ref)
	for n := range 5 {
		_, err := first.Update(r.Ctx, want(fmt.Sprint("n", n)))
		require.NoError(t, err)
	}
	first.Outbox.Done("sent")
	logs.Get(logOf("other"))

	elsewhere := ledger.Open(r.config(nothing), ref)
	_, err := elsewhere.Update(r.Ctx, want("n5"))
	require.NoError(t, err)
	k.folded, k.begun = nil, nil
	again := logs.Get(ref)
	require.NotSame(t, first, again)
	require.NoError(t, again.Sync(r.Ctx))
	require.Equal(t, has(6), again.State().ids)
	require.Equal(t, []string{"n5"}, k.folded)
	require.Len(t, k.begun, 2, "at the beginning, and with the state")
	require.Contains(t, k.begun[1], "n4")
	require.True(t, again.Outbox.Has("sent"))
	require.False(t, first.Outbox.Has("sent"))
	_, err = again.Update(r.Ctx, want("n6"))
	require.NoError(t, err)
	require.Equal(t, again.Cursor(), ledgerEnd(t, r, ref))
}

func ledgerEnd(t *testing.T, r *rig, log subject.Log) any {
	t.Helper()
	l := ledger.Open(r.config(nothing), log)
	require.NoError(t, l.Sync(r.Ctx))
	return l.Cursor()
}

// A dropped log, and one whose fold cannot be read, are read from the beginning.
func TestALogThatCannotRestIsReadAgain(t *testing.T) {
	r := newRig(t)
	k := r.keeper("")
	logs := k.logs(1)
	for n := range 3 {
		_, err := logs.Get(ref).Update(r.Ctx, want(fmt.Sprint("n", n)))
		require.NoError(t, err)
	}
	reads := func(why string, events int) {
		t.Helper()
		k.folded = nil
		require.NoError(t, logs.Get(ref).Sync(r.Ctx))
		require.Equal(t, has(3), logs.Get(ref).State().ids, why)
		require.Len(t, k.folded, events, why)
	}
	logs.Get(logOf("other"))
	reads("at rest", 0)
	logs.Get(logOf("other"))
	logs.Drop(ref)
	reads("dropped", 3)
	logs.Get(logOf("other"))
	k.version = 2
	reads("of another version", 3)

	require.NoError(t, logs.Get(ref).Read(r.Ctx, func(*notes) error {
		require.Nil(t, logs.Get(ref).Rest(), "in use")
		return nil
	}))
	require.Nil(t, ledger.Open(k.config(), ref).Rest(), "nothing was read")
	plain := ledger.Open(r.config(nothing), ref)
	require.NoError(t, plain.Sync(r.Ctx))
	require.Nil(t, plain.Rest(), "no snapshots")
	broken := k.config()
	broken.Fold = fold(func(eventID string) bool { return eventID == "n1" })
	l := ledger.Open(broken, ref)
	require.Error(t, l.Sync(r.Ctx))
	require.Nil(t, l.Rest(), "broken")
}

// However many logs rest, their bytes are bounded: the one that rests longest goes first.
func TestFoldsAtRestAreBounded(t *testing.T) {
	r := newRig(t)
	ballast := func(megabytes int) string { // no compression makes it smaller than half
		b := make([]byte, megabytes<<20)
		_, err := rand.Read(b)
		require.NoError(t, err)
		return hex.EncodeToString(b)
	}
	k := r.keeper(ballast(1))
	resting, err := ledger.NewResting()
	require.NoError(t, err)
	for n := range 5 {
		l := ledger.Open(k.config(), logOf(fmt.Sprint("r", n)))
		_, err := l.Update(r.Ctx, want("n0"))
		require.NoError(t, err)
		rest := l.Rest()
		require.NotNil(t, rest)
		resting.Put(l.Ref, rest)
	}
	require.Nil(t, resting.Take(logOf("r0")))

	huge := r.keeper(ballast(5)) // a repeated text would sometimes be small
	l := ledger.Open(huge.config(), logOf("huge"))
	_, err = l.Update(r.Ctx, want("n0"))
	require.NoError(t, err)
	resting.Put(l.Ref, l.Rest())
	require.Nil(t, resting.Take(l.Ref), "larger than all may be")
	last := resting.Take(logOf("r4"))
	require.NotNil(t, last)
	require.Nil(t, resting.Take(logOf("r4")), "it belongs to its user")
	resting.Put(logOf("r4"), last)
	resting.Put(logOf("r4"), nil)
	require.Nil(t, resting.Take(logOf("r4")))
}

// TestLogsAtRestProperty: processes that keep few logs awake, and append in any order, see what one sees that reads everything.
func TestLogsAtRestProperty(t *testing.T) {
	r := newRig(t)
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		processes := []*ledger.Logs[notes]{r.keeper("").logs(1), r.keeper("").logs(2)}
		all := map[subject.Log][]string{}
		for n := range rapid.IntRange(1, 25).Draw(t, "steps") {
			x := processes[rapid.IntRange(0, 1).Draw(t, "process")]
			log := logOf(fmt.Sprintf("run%d-log%d", runs, rapid.IntRange(0, 3).Draw(t, "log")))
			l := x.Get(log)
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				x.Drop(log)
			case 1:
				require.Same(t, x.Pin(log), x.Get(log))
				defer x.Unpin(log)
			case 2, 3:
				all[log] = append(all[log], fmt.Sprint("n", n))
				_, err := l.Update(r.Ctx, want(fmt.Sprint("n", n)))
				require.NoError(t, err)
			}
			require.NoError(t, x.Get(log).Read(r.Ctx, func(s *notes) error {
				require.Equal(t, all[log], s.ids)
				return nil
			}))
		}
	})
}
