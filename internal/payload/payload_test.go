package payload_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

func logOf(t testing.TB, tenant, task string) subject.Log {
	t.Helper()
	of, err := id.ParseTenant(tenant)
	require.NoError(t, err)
	return subject.Log{Tenant: of, Kind: id.KindTask, Entity: id.EntityFromExternal(task)}
}

// big returns a JSON string of about n bytes.
func big(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }

func messages(t testing.TB, conn *bus.Conn) uint64 {
	t.Helper()
	s, err := conn.JS().Stream(t.Context(), subject.StreamPayloads)
	require.NoError(t, err)
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	return info.State.Msgs
}

// TestWhatIsStoredComesBack: data comes back whole, whatever its size, and is stored once, whichever writer stores
// it.
func TestWhatIsStoredComesBack(t *testing.T) {
	conn := bustest.Single(t)
	s, log := payload.New(conn), logOf(t, "default", "t1")
	before := uint64(0)
	for _, size := range []int{2, 127 << 10, 128 << 10, 129 << 10, 300 << 10, 900 << 10, 3 << 20} {
		ref, err := s.Put(t.Context(), log, big(size))
		require.NoError(t, err)
		require.Equal(t, event.ObjectRef{Log: "task.t1", Digest: ref.Digest, Size: int64(size)}, *ref)
		got, err := payload.New(conn).Get(t.Context(), log.Tenant, *ref)
		require.NoError(t, err)
		require.True(t, bytes.Equal(big(size), got))
		stored := messages(t, conn)
		require.Greater(t, stored, before)
		before = stored
		again, err := payload.New(conn).Put(t.Context(), log, big(size))
		require.NoError(t, err)
		require.Equal(t, ref, again)
		require.Equal(t, stored, messages(t, conn), "it is stored once")
	}
}

// TestRacingWritersOfOneObject: all can read it, whichever writer wins.
func TestRacingWritersOfOneObject(t *testing.T) {
	conn := bustest.Single(t)
	log := logOf(t, "default", "t1")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s := payload.New(conn)
			ref, err := s.Put(t.Context(), log, big(400<<10))
			if err == nil {
				_, err = s.Get(t.Context(), log.Tenant, *ref)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestReferencesLeadNowhereElse: a reference does not reach another tenant, another task, or other data of the store.
func TestReferencesLeadNowhereElse(t *testing.T) {
	conn := bustest.Single(t)
	s, mine, theirs := payload.New(conn), logOf(t, "mine", "t1"), logOf(t, "theirs", "t1")
	ref, err := s.Put(t.Context(), theirs, big(300<<10))
	require.NoError(t, err)
	_, err = s.Get(t.Context(), theirs.Tenant, *ref)
	require.NoError(t, err)
	for what, change := range map[string]func(*event.ObjectRef){
		"another tenant":   func(*event.ObjectRef) {},
		"a tenant in it":   func(r *event.ObjectRef) { r.Log = "theirs.task.t1" },
		"a tenant above":   func(r *event.ObjectRef) { r.Log = "..theirs.task.t1" },
		"no log":           func(r *event.ObjectRef) { r.Log = "" },
		"no digest":        func(r *event.ObjectRef) { r.Digest = "" },
		"a pattern":        func(r *event.ObjectRef) { r.Digest = ">" },
		"a negative size":  func(r *event.ObjectRef) { r.Size = -1 },
		"an enormous size": func(r *event.ObjectRef) { r.Size = 1 << 60 },
	} {
		r := *ref
		change(&r)
		_, err := s.Get(t.Context(), mine.Tenant, r)
		require.ErrorIs(t, err, fault.New(fault.PayloadLost), what)
		require.NotContains(t, fault.From(err, "").Public(), "theirs", what)
	}
}

// TestLostAndDamagedObjects: both are reported at once.
func TestLostAndDamagedObjects(t *testing.T) {
	conn := bustest.Single(t)
	s, log := payload.New(conn), logOf(t, "default", "t1")
	objects, err := conn.JS().ObjectStore(t.Context(), subject.BucketPayloads)
	require.NoError(t, err)
	stream, err := conn.JS().Stream(t.Context(), subject.StreamPayloads)
	require.NoError(t, err)
	for what, damage := range map[string]func(name string, info *jetstream.ObjectInfo) error{
		"deleted": func(string, *jetstream.ObjectInfo) error { _, err := s.Delete(t.Context(), log); return err },
		"replaced": func(_ string, info *jetstream.ObjectInfo) error {
			info.Size++
			return describe(t, conn, info)
		},
		"changed": func(_ string, info *jetstream.ObjectInfo) error {
			ref, err := s.Put(t.Context(), log, json.RawMessage(strings.Replace(string(big(300<<10)), "x", "y", 1)))
			require.NoError(t, err)
			other, err := subject.PayloadName(log, ref.Digest)
			require.NoError(t, err)
			theirs, err := objects.GetInfo(t.Context(), other)
			require.NoError(t, err)
			info.NUID = theirs.NUID
			return describe(t, conn, info)
		},
		"without parts": func(_ string, info *jetstream.ObjectInfo) error {
			return stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject.PayloadParts(info.NUID)))
		},
		"without its last part": func(_ string, info *jetstream.ObjectInfo) error {
			m, err := stream.GetLastMsgForSubject(t.Context(), subject.PayloadParts(info.NUID))
			if err != nil {
				return err
			}
			return stream.DeleteMsg(t.Context(), m.Sequence)
		},
		"no description": func(string, *jetstream.ObjectInfo) error {
			m, err := stream.GetMsg(t.Context(), 1, jetstream.WithGetMsgSubject("$O."+subject.BucketPayloads+".M.>"))
			if err != nil {
				return err
			}
			_, err = conn.JS().Publish(t.Context(), m.Subject, []byte("nonsense"))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			require.NoError(t, stream.Purge(t.Context()))
			ref, err := s.Put(t.Context(), log, big(300<<10))
			require.NoError(t, err)
			name, err := subject.PayloadName(log, ref.Digest)
			require.NoError(t, err)
			info, err := objects.GetInfo(t.Context(), name)
			require.NoError(t, err)
			require.NoError(t, damage(name, info))
			_, err = s.Get(t.Context(), log.Tenant, *ref)
			require.ErrorIs(t, err, fault.New(fault.PayloadLost))
		})
	}
}

// describe describes the object anew.
func describe(t testing.TB, conn *bus.Conn, info *jetstream.ObjectInfo) error {
	t.Helper()
	data, err := json.Marshal(info)
	require.NoError(t, err)
	_, err = conn.JS().Publish(t.Context(), subject.PayloadMeta(info.Name), data)
	return err
}

// TestObjectsEndWithTheirLog: the objects of one log are deleted, and no others.
func TestObjectsEndWithTheirLog(t *testing.T) {
	conn := bustest.Single(t)
	s := payload.New(conn)
	logs := []subject.Log{logOf(t, "default", "t1"), logOf(t, "default", "t11"), logOf(t, "other", "t1")}
	refs := map[subject.Log]*event.ObjectRef{}
	for _, l := range logs {
		_, err := s.Put(t.Context(), l, big(200<<10))
		require.NoError(t, err)
		refs[l], err = s.Put(t.Context(), l, big(300<<10))
		require.NoError(t, err)
	}
	n, err := s.Delete(t.Context(), logs[0])
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, err = s.Get(t.Context(), logs[0].Tenant, *refs[logs[0]])
	require.ErrorIs(t, err, fault.New(fault.PayloadLost))
	for _, l := range logs[1:] {
		_, err := s.Get(t.Context(), l.Tenant, *refs[l])
		require.NoError(t, err)
	}
	n, err = s.Delete(t.Context(), logs[0])
	require.NoError(t, err)
	require.Zero(t, n)
	stream, err := conn.JS().Stream(t.Context(), subject.StreamPayloads)
	require.NoError(t, err)
	age := stream.CachedInfo().Config.MaxAge
	require.Greater(t, age, bus.DefaultTopology().EventMaxAge, "an object outlives its event")
	require.Less(t, age, bus.DefaultTopology().EventMaxAge+48*time.Hour, "and not by much")
}

// TestShrinkAndFill: whatever the sizes and the contents, shrunk data fits into an event in every encoding, and
// filled data equals the original.
func TestShrinkAndFill(t *testing.T) {
	conn := bustest.Single(t)
	s, log := payload.New(conn), logOf(t, "default", "t1")
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, letter := range []string{"x", "<", "&", "\u2028", "ä", `\"`, "\u00e2"} {
		for range 4 {
			one, err := json.Marshal(map[string]any{"data_ref": map[string]any{"digest": "x"}})
			require.NoError(t, err)
			sizes := []int{rnd.IntN(400 << 10), rnd.IntN(payload.Inline), 0}
			raw := func() json.RawMessage {
				n := sizes[rnd.IntN(len(sizes))]
				return json.RawMessage(`["` + strings.Repeat(letter, n/len(letter)) + `",` + string(one) + `]`)
			}
			d := &command.TaskNotification{TaskID: "t1", Message: raw(), Data: raw()}
			want := *d
			changed, err := s.Shrink(t.Context(), log, d)
			require.NoError(t, err)
			require.Equal(t, changed, d.MessageRef != nil || d.DataRef != nil)
			encoded, err := json.Marshal(d)
			require.NoError(t, err)
			require.LessOrEqual(t, len(encoded), payload.Inline+1<<10)
			var back command.TaskNotification
			require.NoError(t, json.Unmarshal(encoded, &back))
			require.NoError(t, s.Fill(t.Context(), log.Tenant, &back))
			require.JSONEq(t, string(want.Message), string(back.Message))
			require.JSONEq(t, string(want.Data), string(back.Data))
			require.Nil(t, back.MessageRef)
			require.Nil(t, back.DataRef)
		}
	}
}

// TestEventsAreShownWhole: a reader gets events with their data, or with the fault in its place; the event in the log
// is unchanged.
func TestEventsAreShownWhole(t *testing.T) {
	conn := bustest.Single(t)
	s, log := payload.New(conn), logOf(t, "default", "t1")
	ref, err := s.Put(t.Context(), log, big(300<<10))
	require.NoError(t, err)
	stored, err := event.New(log, "e", "test", time.Now(), event.TaskFinishedData{
		TaskHead: event.TaskHead{TaskID: "t1"}, Status: event.TaskEndCompleted, ResultRef: ref,
	})
	require.NoError(t, err)
	stored.Sequence, stored.Stream = 7, 9
	got, err := s.Event(t.Context(), log.Tenant, stored)
	require.NoError(t, err)
	d, err := event.As[event.TaskFinishedData](got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(big(300<<10), d.Result))
	require.Nil(t, d.ResultRef)
	require.Equal(t, event.TaskEndCompleted, d.Status)
	require.Equal(t, []uint64{7, 9}, []uint64{got.Sequence, got.Stream})
	require.Less(t, len(stored.Data), 1000)

	_, err = s.Delete(t.Context(), log)
	require.NoError(t, err)
	got, err = s.Event(t.Context(), log.Tenant, stored)
	require.NoError(t, err)
	d, err = event.As[event.TaskFinishedData](got)
	require.NoError(t, err)
	require.Equal(t, []string{event.TaskEndFailed, string(fault.PayloadLost)}, []string{d.Status, d.Code})
	require.Contains(t, d.Error, "expired or is damaged")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Event(ctx, log.Tenant, stored)
	require.Error(t, err, "what cannot be had now is not lost")
	require.NotErrorIs(t, err, fault.New(fault.PayloadLost))
}

// TestAFullStore refuses more with a fault that does not suggest a retry, and accepts data that is already stored.
func TestAFullStore(t *testing.T) {
	top := bus.DefaultTopology()
	top.ObjectMaxBytes = 1 << 20
	b := bustest.Start(t, top)
	conn := bustest.Dial(t, b.URL)
	s, log := payload.New(conn), logOf(t, "default", "t1")
	ref, err := s.Put(t.Context(), log, big(700<<10))
	require.NoError(t, err)
	_, err = s.Put(t.Context(), log, big(800<<10))
	require.ErrorIs(t, err, fault.New(fault.MessageTooBig))
	require.False(t, fault.From(err, "").Retryable())
	require.Contains(t, fault.From(err, "").Public(), "the store is full")
	again, err := s.Put(t.Context(), log, big(700<<10))
	require.NoError(t, err)
	require.Equal(t, ref, again)
	_, err = s.Get(t.Context(), log.Tenant, *ref)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), log, big(200<<10))
	require.NoError(t, err, "what fits is stored: the rest of what did not is gone")
}
