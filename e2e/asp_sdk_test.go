package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// sdkMaxWait bounds what the SDK is asked to do, on a busy machine.
const sdkMaxWait = 90 * time.Second

func sdkContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sdkMaxWait)
	t.Cleanup(cancel)
	return ctx
}

// keep runs an agent or a service of the SDK until the test ends.
func keep(t *testing.T, run func(context.Context) error, connected func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	require.NoError(t, connected(sdkContext(t)))
}

func sdkAgent(t *testing.T, o swarm.Options, name string, h swarm.TaskHandler) *swarm.Agent {
	t.Helper()
	a, err := swarm.NewAgent(swarm.AgentOptions{Options: o, ID: strings.ToLower(name) + "-1", Name: name, Capabilities: []string{"sdk"}}, h)
	require.NoError(t, err)
	keep(t, a.Run, a.Connected)
	return a
}

// TestTheSDKWorksASwarm: a client, two agents and a service, all of them written with
// the SDK, and one task that needs all of them.
func TestTheSDKWorksASwarm(t *testing.T) {
	t.Parallel()
	at, ctx := one.forTenant(t).sdk(), sdkContext(t)

	sums, err := swarm.NewService(swarm.ServiceOptions{Options: at, ID: "sums", Name: "Sums", Tools: []swarm.Tool{{
		ID: "add", Description: "adds two numbers", Idempotent: true,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`),
		Run: func(ctx context.Context, c *swarm.ToolRun) (any, error) {
			var in struct{ A, B int }
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			return map[string]int{"sum": in.A + in.B}, c.Notify(ctx, swarm.Notification{Type: swarm.Progress, Message: "adding"})
		},
	}}})
	require.NoError(t, err)
	keep(t, sums.Run, sums.Connected)
	sdkAgent(t, at, "Doubler", func(_ context.Context, task *swarm.Task) (any, error) {
		var n int
		err := task.Decode(&n)
		return 2 * n, err
	})
	lead := sdkAgent(t, at, "Lead", func(ctx context.Context, task *swarm.Task) (any, error) {
		if err := task.Progress(ctx, 0.1, "begun"); err != nil {
			return nil, err
		}
		if _, err := task.CallService(ctx, "sums", "add", map[string]any{"a": "one"}, swarm.Call{}); !swarm.IsCode(err, fault.ToolBadInput) {
			return nil, errors.New("the schema was not kept")
		}
		sum, err := task.CallService(ctx, "sums", "add", map[string]int{"a": 1, "b": 2}, swarm.Call{})
		if err != nil {
			return nil, err
		}
		doubled, err := task.Child(ctx, swarm.Child{AgentName: "Doubler", Data: 21})
		if err != nil {
			return nil, err
		}
		answer, err := task.Ask(ctx, swarm.Question{Message: "which unit?", Options: []string{"m", "ft"}})
		return map[string]json.RawMessage{"sum": sum, "doubled": doubled, "unit": answer}, err
	})

	events := make(chan swarm.Event, 200)
	client, err := swarm.Dial(ctx, swarm.ClientOptions{Options: at, Name: "test", OnEvent: func(e swarm.Event) {
		if e.Name != swarm.EventRawMessage {
			events <- e
		}
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	process.Eventually(t, "the agents are known", func() bool {
		agents, err := client.Agents(ctx, swarm.Filter{Capabilities: []string{"sdk"}, Status: swarm.StatusActive})
		return err == nil && len(agents) == 2
	})
	process.Eventually(t, "the service is known", func() bool {
		tools, err := lead.ServiceTools(ctx, "sums")
		return err == nil && len(tools) == 1
	})
	task, err := client.CreateTask(ctx, swarm.NewTask{AgentName: "Lead", Data: map[string]string{"q": "?"}})
	require.NoError(t, err)
	names := map[string]int{}
	for names[swarm.EventTaskResult] == 0 {
		select {
		case e := <-events:
			if names[e.Name]++; e.Name == swarm.EventTaskQuestion {
				require.NoError(t, task.Message(ctx, "ft"))
			}
		case <-ctx.Done():
			require.Fail(t, "no result", "%v", names)
		}
	}
	r, err := task.Wait(ctx)
	require.NoError(t, err)
	require.JSONEq(t, `{"sum":{"sum":3},"doubled":42,"unit":"ft"}`, string(r.Result))
	for _, name := range []string{
		swarm.EventConnected, swarm.EventWelcome, swarm.EventTaskCreated, swarm.EventTaskNotification, swarm.EventTaskStatus, swarm.EventTaskQuestion,
		swarm.EventChildTaskCreated, swarm.EventChildTaskStatus, swarm.EventServiceStarted, swarm.EventServiceNotified, swarm.EventServiceCompleted,
	} {
		require.Positive(t, names[name], "%s: %v", name, names)
	}
	require.Zero(t, names[swarm.EventTaskError])
}

// TestTasksAtTheTerminal: the commands give a task, show it and find its result.
func TestTasksAtTheTerminal(t *testing.T) {
	t.Parallel()
	p := one.forTenant(t)
	sdkAgent(t, p.sdk(), "Echo", func(ctx context.Context, task *swarm.Task) (any, error) {
		if string(task.Data) == `"wait"` {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return "you said " + string(task.Data) + "\x1b[2J", task.Progress(ctx, 0.5, "half")
	})
	identity := filepath.Join(t.TempDir(), "who.json")
	waggle := func(args ...string) (string, error) {
		c := exec.CommandContext(sdkContext(t), process.Binary(t), args...)
		c.Env = append(append(c.Environ(), p.env()...), "WAGGLE_IDENTITY="+identity)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	out, err := waggle("tasks", "create", "--agent", "Echo", "hello there")
	require.NoError(t, err, out)
	require.Contains(t, out, "progress: half")
	require.Contains(t, out, "you said \"hello there\"\n")
	require.NotContains(t, out, "\x1b")
	out, err = waggle("tasks", "create", "--agent", "Echo", "--detach", "wait")
	require.NoError(t, err, out)
	id, _, _ := strings.Cut(strings.TrimSpace(out), " ") // of the news and of the line for scripts, which come side by side
	id, _, _ = strings.Cut(id, "\n")
	out, err = waggle("tasks", "show", id)
	require.NoError(t, err, out)
	require.Contains(t, out, "Echo")
	out, err = waggle("tasks", "cancel", "--reason", "enough", id)
	require.NoError(t, err, out)
	out, err = waggle("tasks", "watch", id)
	require.Error(t, err)
	require.Contains(t, out, "cancelled")
	require.Eventually(t, func() bool { // the list follows the logs within a second or two
		out, err = waggle("tasks", "list")
		require.NoError(t, err, out)
		return strings.Contains(out, "completed") && strings.Contains(out, "cancelled")
	}, process.MaxWait, 100*time.Millisecond)
	out, err = waggle("agents")
	require.NoError(t, err, out)
	require.Contains(t, out, "echo-1")
	out, err = waggle("tasks", "create", "--agent", "Nobody", "x")
	require.Error(t, err)
	require.Contains(t, out, "AGENT_NOT_FOUND")
}
