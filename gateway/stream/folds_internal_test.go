package stream

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// sum is a fold of the sequences of events, each of which takes a byte.
type sum struct{ of, events uint64 }

func (s *sum) Take(e event.Event) { s.of, s.events = s.of+e.Sequence, s.events+1 }
func (s *sum) Fork() *sum         { c := *s; return &c }
func (s *sum) Size() int          { return int(s.events) }

// TestFoldsAreThoseOfTheirLogs: whatever was asked for before, a fold is that of the events up to its position; events are read
// once where a fold before them is kept, and what is kept is bounded.
func TestFoldsAreThoseOfTheirLogs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		const bytes, marks = 20_000, 3
		c := NewFolds(bytes, marks, func(string) *sum { return &sum{} })
		for range rapid.IntRange(1, 20).Draw(r, "requests") {
			log, last := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "log"), rapid.Uint64Range(0, 9_000).Draw(r, "last")
			read := func(after eventlog.Cursor, take func(event.Event)) error {
				require.Less(r, after.Seq, last)
				for seq := after.Seq + 1; seq <= last; seq++ {
					take(event.Event{Sequence: seq, Stream: seq + 7})
				}
				return nil
			}
			want := func(f *sum, at eventlog.Cursor) {
				require.Equal(r, at.Seq*(at.Seq+1)/2, f.of)
				require.Equal(r, at.Seq, f.events)
			}
			if rapid.Bool().Draw(r, "end") {
				require.NoError(r, c.End(log, last, read, func(f *sum, at eventlog.Cursor) error {
					require.GreaterOrEqual(r, at.Seq, last)
					want(f, at)
					return nil
				}))
			} else {
				f, at, err := c.Before(log, last, read)
				require.NoError(r, err)
				require.Equal(r, last, at.Seq)
				want(f, at)
				f.of = 0 // it is the caller's
			}
			require.True(r, c.used <= bytes || c.all.Len() == 1)
			total := 0
			for _, one := range c.all.Values() {
				require.LessOrEqual(r, len(one.marks), marks)
				n := one.tip.fold.Size()
				for _, m := range one.marks {
					n += m.fold.Size()
				}
				total += n
			}
			require.Equal(r, total, c.used)
		}
	})
}
