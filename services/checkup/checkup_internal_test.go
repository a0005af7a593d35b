package checkup

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/api"
)

func TestCopiesThatAreAway(t *testing.T) {
	info := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Name: "CMD", Replicas: 3}}
	require.Empty(t, ill(info), "a single server has no cluster")
	info.Cluster = &jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{{Name: "b", Current: true}, {Name: "c", Current: true}}}
	require.Empty(t, ill(info))
	info.Cluster = &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{
		{Name: "b", Offline: true}, {Name: "c", Current: true, Lag: 5000}, {Name: "d"},
	}}
	require.Equal(t, []string{
		"CMD has no leader", "CMD: its copy on b is offline", "CMD: its copy on c is 5000 operations behind", "CMD: its copy on d is not current",
	}, ill(info))
}

func TestSkew(t *testing.T) {
	for d, want := range map[time.Duration]Level{
		0: OK, time.Second: OK, -5 * time.Second: Warn, 5 * time.Second: Warn, time.Minute: Fail, -time.Minute: Fail,
	} {
		require.Equal(t, want, skew(d, 10*time.Millisecond)[0].Level, d)
	}
	require.Equal(t, OK, skew(2*time.Second, 2*time.Second)[0].Level, "within what was measured")
}

func TestWhatRunsIsJudgedByWhatItSays(t *testing.T) {
	s := api.Status{
		Services:    []api.ServiceStatus{{Name: "worker", Replicas: 2}, {Name: "tools"}},
		Models:      []api.ModelStatus{{Name: "openai:x", Workers: 2}},
		ToolServers: []api.ToolServerStatus{{Name: "search", Replicas: 2}, {Name: "workspace", Replicas: 2}},
	}
	require.Equal(t, Finding{Level: Warn, What: "roles", Is: "not running: tools; running: worker 2", Do: "start them: waggle serve --role tools"}, replicas(s)[0])
	require.Equal(t, One(OK, "models", "openai:x answers, with 2 workers", ""), answering(s))
	require.Equal(t, One(OK, "tool servers", "connected: search, workspace", ""), toolServers(s))

	s.Models[0].LeftOut = []api.LeftOutTool{{Tool: "odd_text", Why: "its arguments are of type string"}, {Why: "it takes no tools"}}
	f := answering(s)[0]
	require.Equal(t, Warn, f.Level)
	require.Contains(t, f.Is, "openai:x is not offered odd_text: its arguments are of type string")
	require.Contains(t, f.Is, "openai:x is not offered any tool: it takes no tools")
	s.Models[0].LeftOut = nil
	s.Models[0].Trouble, s.ToolServers[0].Down = "openai refuses the key (401)", 1
	f = answering(s)[0]
	require.Equal(t, Fail, f.Level)
	require.Equal(t, "openai:x cannot answer: openai refuses the key (401)", f.Is)
	f = toolServers(s)[0]
	require.Equal(t, Warn, f.Level)
	require.Equal(t, "search is down on 1 of 2 replicas", f.Is)
	s.ToolServers[0].Trouble = "the program ended: exit status 2. Its last words:\nset API_KEY"
	s.ToolServers[1].LeftOut = []api.LeftOutTool{{Tool: "x", Why: "it has no schema"}, {Why: "3 more"}}
	require.Equal(t, Finding{
		Level: Warn, What: "tool servers",
		Is: "search is down on 1 of 2 replicas: the program ended: exit status 2. Its last words:\nset API_KEY\n" +
			"workspace offers without x: it has no schema\nworkspace offers without tools: 3 more",
		Do: "see the log of the role tools; correct the server's command or url in tools.servers, or start it\n" +
			"a fault of a tool is one of its server: update it, or tell its makers",
	}, toolServers(s)[0])
	s.ToolServers[0].Down, s.ToolServers[0].Trouble = 0, ""
	require.Equal(t, "a fault of a tool is one of its server: update it, or tell its makers", toolServers(s)[0].Do)
	require.Empty(t, answering(api.Status{}))
	require.Empty(t, toolServers(api.Status{}))
}

func TestDeepQueues(t *testing.T) {
	require.Equal(t, One(OK, "queues", "no service has taken commands yet", ""), Queues(nil))
	require.Equal(t, One(OK, "queues", "waiting: session 0, worker 1000", ""), Queues(map[string]uint64{"worker": 1000, "session": 0}))
	f := Queues(map[string]uint64{"worker": 1001, "session": 0})[0]
	require.Equal(t, Warn, f.Level)
	require.Equal(t, "many commands wait: worker 1001", f.Is)
}
