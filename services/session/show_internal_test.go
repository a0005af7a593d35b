package session

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/api"
)

// whole asks for a session part by part, as the gateway does, and returns it with the number of parts.
func whole(t require.TestingT, runs []api.RunDetail, room int) ([]api.RunDetail, int) {
	d, parts, cut := api.SessionDetail{}, 0, false
	for {
		skip, has := len(d.Runs), 0
		if cut {
			skip--
			has = len(d.Runs[skip].Steps)
		}
		part := api.SessionPart{SessionDetail: api.SessionDetail{LastSeq: 7, Runs: slices.Clone(runs[skip:])}}
		require.NoError(t, fit(&part, has, room))
		b, err := json.Marshal(part.Runs)
		require.NoError(t, err)
		alone := len(part.Runs) == 1 && len(part.Runs[0].Steps) <= 1
		require.True(t, alone || len(b) <= room+2, "a part of %d bytes where %d fit", len(b), room)
		parts++
		require.Less(t, parts, 1000)
		d.Take(part, cut)
		require.EqualValues(t, 7, d.LastSeq)
		if cut = part.Cut; !part.More {
			return d.Runs, parts
		}
	}
}

func TestASessionOfAnySizeIsShownInParts(t *testing.T) {
	t.Parallel()
	step := rapid.Custom(func(t *rapid.T) api.StepDetail {
		return api.StepDetail{StepID: rapid.StringN(1, 4, 4).Draw(t, "id"), Output: strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "output"))}
	})
	run := rapid.Custom(func(t *rapid.T) api.RunDetail {
		return api.RunDetail{RunID: rapid.StringN(1, 4, 4).Draw(t, "run"), Steps: rapid.SliceOfN(step, 0, 12).Draw(t, "steps")}
	})
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.SliceOfN(run, 0, 8).Draw(t, "runs")
		got, _ := whole(t, runs, rapid.IntRange(1, 2000).Draw(t, "room"))
		require.Len(t, got, len(runs))
		for i := range runs {
			require.Equal(t, runs[i].RunID, got[i].RunID)
			require.Len(t, got[i].Steps, len(runs[i].Steps))
			for n := range runs[i].Steps {
				require.Equal(t, runs[i].Steps[n], got[i].Steps[n])
			}
		}
	})
}
