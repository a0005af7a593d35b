package e2e_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/monitor"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAMonitorRebuildsTheSession: a program that knows only NATS, and joins late,
// has the same conversation as the chat.
func TestAMonitorRebuildsTheSession(t *testing.T) {
	t.Parallel()
	p, cast := apart.forTenant(t, scripted.Smart())
	p.file("notes.md", "buy milk")
	chat := p.orbit("")
	chat.Until("agent_ready")
	chat.Ask("list the files " + cast.cue)
	chat.Until("agent_response")

	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	nc, _ := apart.dial(permission.Operator)
	m, err := monitor.Follow(nc, p.tenant.String()+".session."+chat.Session)
	require.NoError(t, err)
	require.NoError(t, m.History(ctx, nc))
	require.Len(t, m.Text(), 2, "the first exchange comes from the one direct read")
	chat.Ask("what does notes.md say?")
	chat.Until("agent_response")
	require.NoError(t, m.Wait(ctx, "run.completed", 2))

	var said []string
	for _, frame := range chat.Frames {
		switch frame.Type {
		case "user_input":
			said = append(said, "user: "+frame.Data.Message)
		case "agent_response":
			said = append(said, "agent: "+frame.Data.Message)
		}
	}
	require.Equal(t, said, m.Text())
	require.Contains(t, said[3], "buy milk")
}

func TestTheMonitorImportsOnlyNATS(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, "github.com/waggle-dev/waggle/e2e/monitor").Output()
	require.NoError(t, err)
	for _, imp := range strings.Fields(string(out)) {
		if first, _, _ := strings.Cut(imp, "/"); strings.Contains(first, ".") {
			require.Equal(t, "github.com/nats-io/nats.go", imp)
		}
	}
}
