package stream

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// narrow is a transport with room for some messages.
type narrow struct {
	transport.Transport
	room int
	got  []string
	last transport.Position
}

func (n *narrow) Send(ms ...*transport.Message) int {
	sent := min(n.room, len(ms))
	n.room -= sent
	for _, m := range ms[:sent] {
		n.got = append(n.got, string(m.Data))
		if m.Position.Part == 0 {
			n.last = m.Position
		}
	}
	return sent
}

func (*narrow) Done() <-chan struct{} { return nil }

func (*narrow) End(*fault.Fault) {}

// counter is a projector whose messages depend on all entries before: it counts them.
type counter struct {
	seen int
	each []int // messages of each entry
}

func (c *counter) Project(e *eventlog.Entry) (out []*transport.Message) {
	n := c.each[c.seen]
	c.seen++
	for i := range n {
		at := transport.Position{Seq: e.Sequence}
		if i < n-1 {
			at.Part = i + 1
		}
		out = append(out, transport.New(fmt.Appendf(nil, "%d of %d, entry %d.%d", c.seen, e.Sequence, i, n), "", at))
	}
	return out
}

// told is a binding that notes what it hears of.
type told struct {
	owner
	deleted int
}

func (t *told) Deleted(*Stream) { t.deleted++ }

// TestAProjectorIsGivenEachEntryOnce: however little room the transport has, a fold sees each entry once and in order, its
// messages come once and in order, and no message is lost for who resumes at the stream's position.
func TestAProjectorIsGivenEachEntryOnce(t *testing.T) {
	all := entries(t, 40)
	rapid.Check(t, func(r *rapid.T) {
		fold := &counter{each: rapid.SliceOfN(rapid.IntRange(0, 3), len(all), len(all)).Draw(r, "each")}
		to := &narrow{got: []string{}}
		s := New(&Source{Clock: time.Now, Lagged: func(Reason) {}}, Options{
			Life: context.Background(), To: to, Slot: NewSlot(), Binding: &told{}, Projector: fold, Spare: rapid.IntRange(1, 100).Draw(r, "spare"),
		})
		want := []string{}
		again := &counter{each: fold.each}
		for _, e := range all {
			for _, m := range again.Project(e) {
				want = append(want, string(m.Data))
			}
		}
		for at := 0; at < len(all); {
			to.room = rapid.IntRange(0, 5).Draw(r, "room")
			n := rapid.IntRange(1, len(all)-at).Draw(r, "batch")
			at += s.Deliver(all[at : at+n])
			require.Equal(r, at, fold.seen)
			require.Equal(r, want[:len(to.got)], to.got)
			position := s.Position()
			require.GreaterOrEqual(r, position, to.last.Seq, "the client may acknowledge what it has")
			has := 0
			for _, n := range fold.each[:position] {
				has += n
			}
			require.LessOrEqual(r, has, len(to.got), "who resumes at the position has everything before it")
		}
		for to.room = 1000; left(s); {
			s.Resume()
		}
		require.Equal(r, want, to.got)
		require.Equal(r, uint64(len(all)), s.Position())
	})
}

// TestTheEndOfALogIsToldBehindItsLastMessage: the binding ends the connection, so that it is told once the client is to have all.
func TestTheEndOfALogIsToldBehindItsLastMessage(t *testing.T) {
	to, b := &narrow{}, &told{}
	s := New(&Source{Clock: time.Now, Lagged: func(Reason) {}}, Options{Life: t.Context(), Codec: several(1), To: to, Slot: NewSlot(), Binding: b})
	e := entries(t, 1)[0]
	e.Type = event.SessionDeleted
	require.Equal(t, 1, s.Deliver([]*eventlog.Entry{e}))
	require.Zero(t, b.deleted)
	to.room = 1
	s.Resume()
	s.Resume()
	require.Len(t, to.got, 1)
	require.Equal(t, 1, b.deleted)
}

// TestTheSlotIsFreeOnceTheObjectIsShown: other streams of the connection load theirs.
func TestTheSlotIsFreeOnceTheObjectIsShown(t *testing.T) {
	slot, to := NewSlot(), &narrow{room: 10}
	s := New(&Source{Clock: time.Now, Lagged: func(Reason) {}}, Options{Life: t.Context(), Codec: several(1), To: to, Slot: slot, Binding: &told{}})
	e := entry(t, 1, 0, event.TaskFinishedData{ResultRef: &event.ObjectRef{}})
	release, err := slot.Hold(t.Context(), nil)
	require.NoError(t, err)
	s.got = &fetch{seq: 1, entry: e, release: release}
	require.Equal(t, 1, s.Deliver([]*eventlog.Entry{e}))
	require.Len(t, to.got, 1)
	_, err = slot.Hold(t.Context(), nil)
	require.NoError(t, err)
	require.Nil(t, s.got, "the object is kept no longer")
}
