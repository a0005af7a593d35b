package team_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/services/team"
)

// TestPagesOfTeams hold each team once, the newest first.
func TestPagesOfTeams(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", team.Config{})
	var want []string
	for range 5 {
		l := r.found(teamOf("solo", agent("Ann")))
		want = append([]string{l.Entity.String()}, want...)
	}
	w := r.serveAPI()
	var got []string
	before := ""
	for pages := 1; ; pages++ {
		var page cmd.TeamList
		a := w.Ask("alice", "GET", "/api/v1/teams?limit=2&before="+url.QueryEscape(before), "", &page)
		require.Equal(t, 200, a.Status, a.Body)
		for _, v := range page.Teams {
			got = append(got, v.TeamID)
		}
		if !page.More {
			require.Equal(t, 3, pages)
			break
		}
		before = page.Next
	}
	require.Equal(t, want, got)
	for _, bad := range []string{"before=x", "before=_", "limit=0", "limit=101"} {
		require.Equal(t, 422, w.Ask("alice", "GET", "/api/v1/teams?"+bad, "", nil).Status, bad)
	}
}
