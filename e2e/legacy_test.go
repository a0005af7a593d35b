package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/freeport"
)

// TestTheAddressesOfTheOriginals: with --legacy programs that know nothing but the
// address of the original server of their protocol are served. The ports are others
// here, because those of the originals may be taken.
func TestTheAddressesOfTheOriginals(t *testing.T) {
	t.Parallel()
	env, at := []string{}, map[string]string{}
	for _, name := range []string{"CLIENT", "AGENT", "SERVICE", "MYAGENT", "ORBIT", "TEAM"} {
		at[name] = freeport.Addr(t)
		env = append(env, "WAGGLE_GATEWAY_LEGACY_"+name+"="+at[name])
	}
	up(t, env, "--legacy")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []struct{ name, path, first string }{
		{"CLIENT", "/", `"orchestrator.client.welcome"`},
		{"CLIENT", "/any/path", `"orchestrator.client.welcome"`},
		{"AGENT", "/", `"orchestrator.welcome"`},
		{"SERVICE", "/", `"orchestrator.welcome"`},
		{"MYAGENT", "/", `"`},
		{"ORBIT", "/ws", `"agent_start"`},
		{"TEAM", "/ws/agent-team/none", `TEAM_NOT_FOUND`},
		{"TEAM", "/ws/agent/none", `_NOT_FOUND`},
	} {
		conn, _, err := websocket.Dial(ctx, "ws://"+at[c.name]+c.path, nil) //nolint:bodyclose // it is not to be closed, says the library
		require.NoError(t, err, "%s %s", c.name, c.path)
		_, frame, err := conn.Read(ctx)
		require.NoError(t, err, "%s %s", c.name, c.path)
		require.Contains(t, string(frame), c.first, "%s %s", c.name, c.path)
		require.NoError(t, conn.CloseNow())
	}
	_, answer, err := websocket.Dial(ctx, "ws://"+at["TEAM"]+"/", nil) //nolint:bodyclose // it is not to be closed, says the library
	require.Error(t, err)
	require.Equal(t, 404, answer.StatusCode)
	_, answer, err = websocket.Dial(ctx, "ws://"+at["AGENT"]+"/", &websocket.DialOptions{HTTPHeader: map[string][]string{"Origin": {"https://evil.example"}}}) //nolint:bodyclose // it is not to be closed, says the library
	require.Error(t, err)
	require.Equal(t, 403, answer.StatusCode)
}
