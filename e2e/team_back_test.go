//go:build nightly

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/models"
	"github.com/waggle-dev/waggle/e2e/harness/original"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// TestTheOriginalsClientComesBackAtARunsEnd: the client of the original loses its socket in
// the middle of each thing that a run ends with, comes back after a second, when the run is
// over, and shows what one shows whose socket lasts.
func TestTheOriginalsClientComesBackAtARunsEnd(t *testing.T) {
	ends := []string{
		`"type":"SEGMENT_START"`, `"type":"SEGMENT_CONTENT"`, `"type":"SEGMENT_END"`, `"type":"ASSISTANT_COMPLETE"`,
		`"new_status":"idle"`, `"new_status":"IDLE"`, `"type":"TOOL_EXECUTION_SUCCEEDED"`,
	}
	cast := models.Team{}
	for i := range ends {
		cast[fmt.Sprintf("Lead: round %d", i)] = []models.Reply{models.Calls("workspace_list_files", object{}), models.Says(fmt.Sprintf("The answer of round %d.", i))}
	}
	c := newTeamFleet(t, cast.Script())
	team := c.found(object{"name": "duo", "coordinator": "Lead", "members": []object{
		{"name": "Lead", "tools": []string{"workspace/list_files"}, "auto_execute_tools": true}, {"name": "Writer"},
	}}).TeamID
	steady, back := original.Connect(t, c.addr, team, "Lead", "Writer"), original.Connect(t, c.addr, team, "Lead", "Writer")
	speaker := client.WatchTeam(t, client.TeamOptions{Addr: c.addr, Path: "agent-team/" + team, Original: true, Once: true})
	for i, end := range ends {
		back.CutAt(func(raw string) bool { return strings.Contains(raw, end) && strings.Contains(raw, `"sequence":`) })
		speaker.Say("SEND_MESSAGE", object{"content": fmt.Sprintf("round %d", i)})
		process.Eventually(t, "both show the end of the run at which one was cut at "+end, func() bool {
			want, _ := steady.Sees()
			got, cuts := back.Sees()
			return cuts == i+1 && got == want && strings.HasPrefix(want, "team idle") && strings.Contains(want, fmt.Sprintf("answer of round %d", i))
		})
	}
	want, _ := steady.Sees()
	late := original.Connect(t, c.addr, team, "Lead", "Writer")
	process.Eventually(t, "one that comes when all is over shows the end of it", func() bool {
		got, _ := late.Sees()
		return strings.Contains(got, fmt.Sprintf("answer of round %d", len(ends)-1)) && strings.HasPrefix(got, "team idle") && strings.HasSuffix(want, got[strings.LastIndex(got, "member Writer"):])
	})
	require.Empty(t, append(steady.Trouble(), back.Trouble()...))
}
