package api

import (
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestASearchShowsEachEntryOnce: the pages that follow each other have all entries that pass, in order, whatever the bounds of a page
// and of its reads.
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
		onPage := 0
		s := search[int]{
			limit: limit, least: rapid.IntRange(1, 10).Draw(t, "least"), most: most, atOnce: rapid.IntRange(1, 20).Draw(t, "atOnce"),
			place: func(place *int) uint64 { return uint64(*place) },
			read: func(before uint64, entries int) (out stretch[int], err error) {
				require.Positive(t, entries)
				place := last
				if before > 0 {
					place = int(before) - 1
				}
				for ; place > 0 && out.looked < entries; place-- {
					if out.looked++; !gone[place-1] {
						out.entries = append(out.entries, place)
					}
					out.end = uint64(place)
				}
				out.more = place > 0
				return out, nil
			},
			take: func(place *int) bool {
				if !passes[*place-1] {
					return false
				}
				onPage++
				found = append(found, *place)
				return true
			},
		}
		for before := uint64(0); ; {
			onPage = 0
			next, err := s.from(before)
			require.NoError(t, err)
			require.LessOrEqual(t, onPage, limit)
			if next == "" {
				break
			}
			further, err := strconv.ParseUint(next, 10, 64)
			require.NoError(t, err)
			require.True(t, before == 0 || further < before, "the pages go on")
			before = further
		}
		require.Equal(t, want, found)
	})
}

func TestASearchThatFails(t *testing.T) {
	t.Parallel()
	failed := errors.New("lost")
	_, err := search[int]{limit: 1, most: 1, atOnce: 1, read: func(uint64, int) (stretch[int], error) { return stretch[int]{}, failed }}.from(0)
	require.ErrorIs(t, err, failed)
}
