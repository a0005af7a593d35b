package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// TestTheTasksWithCurl runs the tasks of docs/SDKS.md, which are in docs/examples/tasks.sh, with curl and jq.
func TestTheTasksWithCurl(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../docs/examples/tasks.sh")
	require.NoError(t, err)
	raw, err := os.ReadFile("../proto-schemas/sdk/tasks.json")
	require.NoError(t, err)
	var contract []struct {
		Name            string
		Prints, Without []string
	}
	require.NoError(t, json.Unmarshal(raw, &contract))
	dir, addr := up(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "workspace", "notes.md"), []byte("buy milk\n"), 0o600))
	shouter, err := swarm.NewAgent(swarm.AgentOptions{Options: swarm.Options{URL: "ws://" + addr}, Name: "shouter"}, func(_ context.Context, t *swarm.Task) (any, error) {
		var data struct{ Text string }
		err := t.Decode(&data)
		return strings.ToUpper(data.Text) + "!", err
	})
	require.NoError(t, err)
	working, stop := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- shouter.Run(working) }()
	t.Cleanup(func() { stop(); <-left })
	require.NoError(t, shouter.Connected(t.Context()))

	// The surroundings of a task: a plan that waits, and entries that lists show after a moment.
	before := map[string]string{
		"answer": `SESSION=$(api $WAGGLE/api/v1/sessions -d '{"confirm_plan": true}' | jq -r .session_id)
			api $WAGGLE/api/v1/sessions/$SESSION/messages -d '{"mode": "plan", "content": "list the files, and read notes.md"}'
			until api "$WAGGLE/api/v1/questions?log=$SESSION" | jq -e '.questions[0]'; do :; done`,
		"sessions": `chat; until api "$WAGGLE/api/v1/sessions?q=notes" | jq -e '.sessions[0]'; do :; done`,
	}
	for _, c := range contract {
		if slices.Contains(c.Without, "curl") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "bash", "-euc", "set -o pipefail; source "+script+"; setup\n{ "+cmp.Or(before[c.Name], ":")+"; } >/dev/null\n"+c.Name)
			command.Env = append(os.Environ(), "WAGGLE=http://"+addr)
			out, err := os.Create(filepath.Join(t.TempDir(), "out")) // a file: curl may still hold it open
			require.NoError(t, err)
			defer func() { _ = out.Close() }()
			command.Stdout, command.Stderr = out, out
			failed := command.Run()
			printed, err := os.ReadFile(out.Name())
			require.NoError(t, err)
			require.NoError(t, failed, string(printed))
			for _, want := range c.Prints {
				require.Contains(t, strings.ToLower(string(printed)), strings.ToLower(want))
			}
		})
	}
}
