package connections_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/connections"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

func TestWrite(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	since := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		list api.ConnectionList
		want string
	}{
		"none": {api.ConnectionList{}, "no connections\n"},
		"some": {
			api.ConnectionList{
				Total: 5, Missing: []string{"g2", "g3\x1b[2J"},
				Connections: []api.Connection{
					{
						ID: "c1", Gateway: "g1", Protocol: "orbit", Principal: "ada", Since: since, Queued: 70000, Lagging: true, More: 2,
						Watches: []api.Watch{
							{Log: "session/s1", Seq: 3, Behind: 9, Reason: "queue_full", Lagging: now.Add(-time.Minute)}, {Log: "session/s2", Seq: 4},
						},
					},
					{ID: "c2", Gateway: "g1", Protocol: "events", Principal: "bob", Since: since, Watches: []api.Watch{{Missed: 7}}},
					{ID: "c3", Gateway: "g1", Protocol: "asp-agent", Principal: "bot", Since: since},
				},
			},
			`CONNECTION  GATEWAY  PROTOCOL   PRINCIPAL  AGE  QUEUED  WATCHES        SEQ  BEHIND    LAG
c1          g1       orbit      ada        1 h  70000   session/s1     3    9         queue_full for 1 min
                                                        session/s2     4    0
                                                        and 2 more
c2          g1       events     bob        1 h  0       announcements       7 missed
c3          g1       asp-agent  bot        1 h  0       -
2 more: give a larger --limit
not answered: g2, g3
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(c.list)
			require.NoError(t, err)
			var out strings.Builder
			require.NoError(t, connections.Write(&out, raw, now))
			require.Equal(t, c.want, out.String())
		})
	}
	require.ErrorContains(t, connections.Write(nil, []byte(`[]`), now), "not a list of connections")
}
