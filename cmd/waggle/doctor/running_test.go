package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

func TestWhatRunsIsJudgedByWhatItSays(t *testing.T) {
	s := api.Status{
		Services:    []api.ServiceStatus{{Name: "worker", Replicas: 2}, {Name: "tools"}},
		Models:      []api.ModelStatus{{Name: "openai:x", Workers: 2}},
		ToolServers: []api.ToolServerStatus{{Name: "search", Replicas: 2}, {Name: "workspace", Replicas: 2}},
	}
	require.Equal(t, Finding{Level: Warn, What: "roles", Is: "not running: tools; running: worker 2", Do: "start them: waggle serve --role tools"}, replicas(s)[0])
	require.Equal(t, one(OK, "models", "openai:x answers, with 2 workers", ""), answering(s))
	require.Equal(t, one(OK, "tool servers", "connected: search, workspace", ""), toolServers(s))

	s.Models[0].Trouble, s.ToolServers[0].Down = "openai refuses the key (401)", 1
	f := answering(s)[0]
	require.Equal(t, Fail, f.Level)
	require.Equal(t, "openai:x cannot answer: openai refuses the key (401)", f.Is)
	f = toolServers(s)[0]
	require.Equal(t, Warn, f.Level)
	require.Equal(t, "search is down on 1 of 2 replicas", f.Is)
	require.Empty(t, answering(api.Status{}))
	require.Empty(t, toolServers(api.Status{}))
}
