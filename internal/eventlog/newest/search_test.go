package newest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventlog/newest"
)

// TestASearchShowsEachEntryOnce: successive pages hold every entry that passes, in order, whatever the bounds of a page and of its
// reads.
func TestASearchShowsEachEntryOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Places of entries, the newest first. Some are of nothing that is an item any more.
		last := rapid.IntRange(0, 60).Draw(t, "last")
		gone := rapid.SliceOfN(rapid.Bool(), last, last).Draw(t, "gone")
		passes := rapid.SliceOfN(rapid.Bool(), last, last).Draw(t, "passes")
		var found, want []int
		for place := last; place > 0; place-- {
			if passes[place-1] && !gone[place-1] {
				want = append(want, place)
			}
		}
		limit, most := rapid.IntRange(1, 10).Draw(t, "limit"), rapid.IntRange(1, 30).Draw(t, "most")
		room, onPage := rapid.IntRange(1, 10).Draw(t, "room"), 0
		s := newest.Search[int]{
			Limit: limit, Least: rapid.IntRange(1, 10).Draw(t, "least"), Most: most, AtOnce: rapid.IntRange(1, 20).Draw(t, "atOnce"),
			Place: func(place *int) uint64 { return uint64(*place) },
			Read: func(before uint64, entries int) (out newest.Part[int], err error) {
				require.Positive(t, entries)
				place := last
				if before > 0 {
					place = int(before) - 1
				}
				for ; place > 0 && out.Looked < entries; place-- {
					if out.Looked++; !gone[place-1] {
						out.Entries = append(out.Entries, place)
					}
					out.End = uint64(place)
				}
				out.More = place > 0
				return out, nil
			},
			Take: func(place *int) (newest.Verdict, error) {
				switch {
				case !passes[*place-1]:
					return newest.Skipped, nil
				case onPage == room:
					return newest.Full, nil
				}
				onPage++
				found = append(found, *place)
				return newest.Taken, nil
			},
		}
		for before := uint64(0); ; {
			onPage = 0
			next, err := s.Before(before)
			require.NoError(t, err)
			require.LessOrEqual(t, onPage, limit)
			if next == 0 {
				break
			}
			require.True(t, before == 0 || next < before, "the pages go on")
			before = next
		}
		require.Equal(t, want, found)
	})
}

func TestASearchThatFails(t *testing.T) {
	t.Parallel()
	failed := errors.New("lost")
	s := newest.Search[int]{
		Limit: 1, Most: 1, AtOnce: 1,
		Read:  func(uint64, int) (newest.Part[int], error) { return newest.Part[int]{}, failed },
		Place: func(*int) uint64 { return 1 },
		Take:  func(*int) (newest.Verdict, error) { return newest.Skipped, failed },
	}
	_, err := s.Before(0)
	require.ErrorIs(t, err, failed)
	s.Read = func(uint64, int) (newest.Part[int], error) {
		return newest.Part[int]{Entries: []int{1}, Looked: 1}, nil
	}
	_, err = s.Before(0)
	require.ErrorIs(t, err, failed)
}
