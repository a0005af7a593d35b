package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// every is the number of events between two snapshots in these tests.
const every = 10

// storedNotes is a fold of notices as a snapshot has it.
type storedNotes struct {
	Version int
	IDs     []string
	Ballast string
}

// keeper is a process that stores snapshots of notices.
type keeper struct {
	*rig
	version  int
	ballast  string // of each state
	begun    [][]string
	folded   []string // ids of the events that it has read
	log      *ledger.Log[notes]
	snapshot *ledger.Snapshots[notes]
}

// keeper returns another process, which has read nothing.
func (r *rig) keeper(ballast string) *keeper {
	r.T.Helper()
	k := &keeper{rig: r, version: 1, ballast: ballast}
	k.snapshot = &ledger.Snapshots[notes]{
		Encode: func(n *notes) ([]byte, error) { return json.Marshal(storedNotes{k.version, n.ids, k.ballast}) },
		Decode: func(raw []byte) (*notes, error) {
			var s storedNotes
			if err := json.Unmarshal(raw, &s); err != nil || s.Version != k.version {
				return nil, errors.Join(err, errBad)
			}
			return &notes{ids: s.IDs}, nil
		},
		Seq:    func(n *notes) uint64 { return uint64(len(n.ids)) },
		Logger: zerolog.New(zerolog.NewTestWriter(r.T)), Every: every, Lazy: true,
	}
	require.NoError(r.T, k.snapshot.Open(r.Ctx, r.Conn))
	k.log = ledger.Open(k.config(), ref)
	return k
}

func (k *keeper) config() ledger.Config[notes] {
	cfg := k.rig.config(nothing)
	cfg.Snapshots = k.snapshot
	cfg.Begun = func(n *notes) {
		var ids []string
		if n != nil {
			ids = slices.Clone(n.ids)
		}
		k.begun = append(k.begun, ids)
	}
	folding := cfg.Fold
	cfg.Fold = func(n *notes, e event.Event) error {
		k.folded = append(k.folded, e.ID)
		return folding(n, e)
	}
	return cfg
}

// grow appends notices up to that many, and keeps a snapshot when one is due.
func (k *keeper) grow(to int) {
	k.T.Helper()
	require.NoError(k.T, k.log.Sync(k.Ctx))
	for n := len(k.log.State().ids); n < to; n++ {
		_, err := k.log.Update(k.Ctx, want(fmt.Sprint("n", n)))
		require.NoError(k.T, err)
		k.log.Keep(k.Ctx)
	}
}

func (r *rig) folds() jetstream.KeyValue {
	r.T.Helper()
	kv, err := r.Conn.JS().KeyValue(r.Ctx, subject.BucketFolds)
	require.NoError(r.T, err)
	return kv
}

// has returns the ids of so many notices.
func has(to int) (ids []string) {
	for n := range to {
		ids = append(ids, fmt.Sprint("n", n))
	}
	return ids
}

// reads checks that another process has the state of the whole log after it has read only the events from the one with
// the number on.
func (r *rig) reads(ballast string, from, to int) {
	r.T.Helper()
	k := r.keeper(ballast)
	require.NoError(r.T, k.log.Sync(r.Ctx))
	require.Equal(r.T, has(to), k.log.State().ids)
	require.Len(r.T, k.folded, to-from)
}

func TestALazySnapshotIsReadOnFrom(t *testing.T) {
	r := newRig(t)
	k := r.keeper("")
	for n := range every - 1 {
		_, err := k.log.Update(r.Ctx, want(fmt.Sprint("n", n)))
		require.NoError(t, err)
	}
	k.log.Keep(r.Ctx)
	r.reads("", 0, every-1)
	_, err := r.folds().Get(r.Ctx, subject.FoldKey(ref))
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound, "a short log has no snapshot")

	k.grow(3*every - 1)
	r.reads("", 2*every, 3*every-1)
	_, err = k.log.Update(r.Ctx, want(fmt.Sprint("n", 3*every-1)))
	require.NoError(t, err)
	r.reads("", 2*every, 3*every)
	k.log.Keep(r.Ctx)
	r.reads("", 3*every, 3*every)

	second := r.keeper("")
	second.grow(3*every + 2)
	require.Len(t, second.begun, 2, "at the beginning, and with a snapshot")
	require.Empty(t, second.begun[0])
	require.Contains(t, second.begun[1], "n29")
}

// Whatever is wrong with a snapshot, the log is read, and the next snapshot takes the place of the wrong one.
func TestAWrongSnapshotIsIgnored(t *testing.T) {
	r := newRig(t)
	r.keeper("").grow(2 * every)
	kv := r.folds()
	good, err := kv.Get(r.Ctx, subject.FoldKey(ref))
	require.NoError(t, err)
	damaged := append([]byte(nil), good.Value()...)
	damaged[len(damaged)/2] ^= 0xff
	for _, raw := range [][]byte{nil, []byte("{}"), damaged, good.Value()[:len(good.Value())/2]} {
		_, err := kv.Put(r.Ctx, subject.FoldKey(ref), raw)
		require.NoError(t, err)
		r.reads("", 0, 2*every)
	}
	_, err = kv.Put(r.Ctx, subject.FoldKey(ref), good.Value())
	require.NoError(t, err)
	r.reads("", 2*every, 2*every)

	other := r.keeper("")
	other.version = 2
	require.NoError(t, other.log.Sync(r.Ctx))
	require.Len(t, other.folded, 2*every, "a snapshot of another version")
	other.log.Keep(r.Ctx)
	r.reads("", 0, 2*every)
	other.grow(3 * every)
	next := r.keeper("")
	next.version = 2
	require.NoError(t, next.log.Sync(r.Ctx))
	require.Empty(t, next.folded)
}

// A snapshot of another log ends beyond this one, or with another event.
func TestASnapshotOfAnotherLogIsIgnored(t *testing.T) {
	r := newRig(t)
	r.keeper("").grow(2 * every)
	e, err := r.folds().Get(r.Ctx, subject.FoldKey(ref))
	require.NoError(t, err)
	other := subject.Log{Tenant: ref.Tenant, Kind: ref.Kind, Entity: id.EntityFromExternal("t2")}
	_, err = r.folds().Put(r.Ctx, subject.FoldKey(other), e.Value())
	require.NoError(t, err)
	w := ledger.Open(r.config(nothing), other)
	var ids []string
	for n := range 2*every + 3 {
		ids = append(ids, fmt.Sprint("x", n))
		_, err := w.Update(r.Ctx, want(ids[n]))
		require.NoError(t, err)
		if n == every+1 || n == 2*every+2 {
			k := r.keeper("")
			k.log = ledger.Open(k.config(), other)
			require.NoError(t, k.log.Sync(r.Ctx))
			require.Equal(t, ids, k.log.State().ids)
		}
	}
}

// The later snapshot stays, whichever process stores last.
func TestAnOlderSnapshotReplacesNoNewerOne(t *testing.T) {
	r := newRig(t)
	slow := r.keeper("")
	slow.grow(every - 1)
	r.keeper("").grow(2 * every)
	require.NoError(t, slow.log.SyncTo(r.Ctx, eventlog.Cursor{}))
	slow.log.Keep(r.Ctx) // at the same event
	r.reads("", 2*every, 2*every)

	behind, ahead := r.keeper(""), r.keeper("")
	behind.grow(3 * every)
	require.NoError(t, ahead.log.Sync(r.Ctx))
	ahead.grow(4 * every)
	behind.version = 7
	behind.log.Keep(r.Ctx)
	r.reads("", 4*every, 4*every)
	behind.version = 1
	behind.grow(5*every + 1)
	r.reads("", 5*every+1, 5*every+1)
}

// Two processes hold the same log: only one of them makes its snapshots, and the other does when that one has stopped.
func TestOneHolderMakesTheSnapshots(t *testing.T) {
	r := newRig(t)
	first, second := r.keeper(""), r.keeper("")
	made := 0
	encode := second.snapshot.Encode
	second.snapshot.Encode = func(n *notes) ([]byte, error) {
		made++
		return encode(n)
	}
	require.NoError(t, second.log.Sync(r.Ctx))
	for turn := 1; turn <= 3; turn++ {
		first.grow(turn * every)
		require.NoError(t, second.log.Sync(r.Ctx))
		second.log.Keep(r.Ctx)
		require.Zero(t, made)
		r.reads("", turn*every, turn*every)
	}
	second.grow(4 * every)
	require.Equal(t, 1, made)
	r.reads("", 4*every, 4*every)
}

// noise is a text that cannot be compressed to less than half.
func noise(seed uint64, bytes int) string {
	random := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, "%016x", random.Uint64())
	}
	return b.String()
}

// A fold that does not fit into a message of the bus is stored in parts, and read from them.
func TestALargeSnapshotHasParts(t *testing.T) {
	r := newRig(t)
	large := noise(1, 3<<19)
	k := r.keeper(large)
	k.grow(every)
	kv := r.folds()
	parts := func() (sizes []int) {
		for n := 0; ; n++ {
			e, err := kv.Get(r.Ctx, subject.FoldPart(ref, n))
			if errors.Is(err, jetstream.ErrKeyNotFound) {
				return sizes
			}
			require.NoError(t, err)
			sizes = append(sizes, len(e.Value()))
		}
	}
	require.Len(t, parts(), 3)
	r.reads(large, every, every)
	k.ballast = noise(2, 1<<20)
	k.grow(2 * every)
	r.reads("", 2*every, 2*every)

	one, err := kv.Get(r.Ctx, subject.FoldPart(ref, 1))
	require.NoError(t, err)
	_, err = kv.Put(r.Ctx, subject.FoldPart(ref, 1), []byte("damaged"))
	require.NoError(t, err)
	r.reads("", 0, 2*every)
	_, err = kv.Put(r.Ctx, subject.FoldPart(ref, 1), one.Value())
	require.NoError(t, err)
	r.reads("", 2*every, 2*every)

	k = r.keeper("") // which knows the parts from the snapshot
	k.grow(3 * every)
	require.Equal(t, []int{0, 0, 0}, parts(), "parts that the snapshot does not have are emptied")
	r.reads("", 3*every, 3*every)
	k.ballast = noise(3, 16<<20)
	k.grow(4*every + 1)
	r.reads("", 3*every, 4*every+1)
}

// Arguments of tools are stored as the model wrote them.
func TestASnapshotHoldsWhatModelsWrote(t *testing.T) {
	r := newRig(t)
	k := r.keeper("")
	encode := k.snapshot.Encode
	k.snapshot.Encode = func(n *notes) ([]byte, error) {
		raw, err := encode(n)
		return append(raw[:len(raw)-1], ",\"said\":{\"q\":1,\"q\":\"\xff\"}}"...), err
	}
	k.grow(every)
	r.reads("", every, every)
}

// After a deletion no process can store a snapshot, whatever it knew before.
func TestAnErasedSnapshotStaysErased(t *testing.T) {
	for name, ballast := range map[string]string{"one message": "", "parts": noise(1, 1<<20)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			first, second := r.keeper(ballast), r.keeper(ballast)
			second.grow(every + 1) // it knows the snapshot's revision
			first.grow(2*every - 1)
			w := ledger.Open(r.config(nothing), ref)
			_, err := w.Step(r.Ctx, func(*notes) (decision.Decision, error) {
				return decision.Of(decision.Fact{ID: "gone", Data: event.TaskDeletedData{Reason: "test"}}), nil
			})
			require.NoError(t, err)
			for range 2 { // the deletion may be repeated
				require.NoError(t, r.keeper("").snapshot.Erase(r.Ctx, ref, 2*every))
				ids := has(2 * every)
				for _, k := range []*keeper{first, second} {
					k.log.State().ids = ids // which it had read before
					k.log.Keep(r.Ctx)
				}
				fresh := r.keeper(ballast)
				require.NoError(t, fresh.log.Sync(r.Ctx))
				require.True(t, fresh.log.State().deleted)
				kv := r.folds()
				_, err = kv.Get(r.Ctx, subject.FoldKey(ref))
				require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
				for n := range 16 {
					_, err = kv.Get(r.Ctx, subject.FoldPart(ref, n))
					require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
				}
			}
		})
	}
}

// TestAProcessThatMissedADeletionStoresNoSnapshot: it had read a log without a snapshot.
func TestAProcessThatMissedADeletionStoresNoSnapshot(t *testing.T) {
	r := newRig(t)
	w := ledger.Open(r.config(nothing), ref)
	for n := range every {
		_, err := w.Update(r.Ctx, want(fmt.Sprint("n", n)))
		require.NoError(t, err)
	}
	late := r.keeper("")
	require.NoError(t, late.log.Sync(r.Ctx))
	require.NoError(t, r.keeper("").snapshot.Erase(r.Ctx, ref, every+1))
	late.log.Keep(r.Ctx)
	_, err := r.folds().Get(r.Ctx, subject.FoldKey(ref))
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)

	require.NoError(t, r.keeper("").snapshot.Erase(r.Ctx, subject.Log{Tenant: ref.Tenant, Kind: ref.Kind, Entity: ref.Entity}, every-1), "it had none")
}

// Whenever processes stop and others continue, each has the state of the whole log.
func TestAnyRestartHasTheWholeState(t *testing.T) {
	r := newRig(t)
	to := 0
	rapid.Check(t, func(t *rapid.T) {
		k := r.keeper("")
		require.NoError(t, k.log.Sync(r.Ctx))
		require.Equal(t, has(to), k.log.State().ids)
		require.Less(t, len(k.folded), every)
		to += rapid.IntRange(0, every).Draw(t, "events")
		k.grow(to)
	})
}
