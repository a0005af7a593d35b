package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestANATSServerIsKilled: of a cluster of three, the one that leads, in the middle of an answer. The answer is whole, and
// viewers see each event once. When it is back, another one may go.
func TestANATSServerIsKilled(t *testing.T) {
	slow, next := wordByWord(60, 10, 20*time.Millisecond)
	llm, err := scripted.Start("127.0.0.1:0", func(x *scripted.Exchange) scripted.Reply {
		if strings.Contains(x.Prompt.Messages[len(x.Prompt.Messages)-1].Content, "slowly") {
			return slow(x)
		}
		return say("I am still here")
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = llm.Close() })
	g, c := startCluster(t, "WAGGLE_MODEL=openai:x", "OPENAI_BASE_URL="+llm.OpenAIBaseURL(), "OPENAI_API_KEY="+process.Canary,
		"WAGGLE_NATS_REPLICAS=3", "WAGGLE_NATS_EVENT_MAX_BYTES=33554432")
	g.run(permission.Bootstrap, "bootstrap")
	addr := g.serve()
	viewer := client.DialOrbit(t, "ws://"+addr+"/ws?deltas=true")
	viewer.Until("agent_ready")
	viewer.Ask("speak slowly")
	for range 9 {
		viewer.Until("agent_delta")
		next()
	}
	viewer.Until("agent_delta")
	leader := slices.IndexFunc(c.servers, (*server.Server).JetStreamIsLeader)
	require.GreaterOrEqual(t, leader, 0)
	c.kill(leader)
	next()
	require.Equal(t, strings.Join(words(60), ""), viewer.Until("agent_response", "error").Data.Message)
	late := client.DialOrbit(t, fmt.Sprintf("ws://%s/ws?deltas=true&after=0&session=%s", addr, viewer.Session))
	late.Until("agent_response")
	require.Equal(t, transcript(late.Frames), transcript(viewer.Frames))

	c.servers[leader] = g.startServer(c.options[leader])
	process.Eventually(t, "the server has caught up", func() bool {
		return !slices.ContainsFunc(c.servers, func(s *server.Server) bool { return !s.JetStreamIsCurrent() }) // follows the leader
	})
	c.kill((leader + 1) % len(c.servers))
	viewer.Ask("and now?")
	require.Equal(t, "I am still here", viewer.Until("agent_response", "error").Data.Message)
	require.Empty(t, g.log.all(), "the servers refused something")
}

// kill ends a server without a word to the others.
func (c *cluster) kill(i int) {
	c.servers[i].Shutdown()
	c.servers[i].WaitForShutdown()
}
