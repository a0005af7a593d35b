package e2e_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

const question = "which files are in the workspace, and what does notes.md say?"

// up starts everything in one process, as a newcomer does.
func up(t *testing.T, env []string, args ...string) (dir, addr string) {
	t.Helper()
	dir, addr = t.TempDir(), freeport.Addr(t)
	p := process.Start(t, process.Options{
		Name: "up", Dir: dir, Env: env,
		Args: append([]string{"up", "--addr", addr, "--nats-addr", freeport.Addr(t), "--data", filepath.Join(dir, "data")}, args...),
	})
	p.Ready(addr)
	return dir, addr
}

// TestTheFirstQuestion: a newcomer starts everything in one process and asks a question at
// the terminal. A bare client sees the answer frame by frame as the protocol describes it,
// with real calls of real tools.
func TestTheFirstQuestion(t *testing.T) {
	t.Parallel()
	dir, addr := up(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "workspace", "todo.txt"), []byte("sing"), 0o600))
	chat := process.Start(t, process.Options{Name: "chat", Dir: dir, Args: []string{"chat", "--url", "ws://" + addr + "/ws", question}})
	require.NoError(t, chat.Wait())
	for _, want := range []string{"notes.md", "todo.txt", "Welcome to your workspace"} {
		require.Contains(t, chat.Output(), want)
	}
	askAndCheck(t, addr)
}

func askAndCheck(t *testing.T, addr string) {
	t.Helper()
	c := client.DialOrbit(t, "ws://"+addr+"/ws")
	c.Until("agent_ready")
	c.Ask(question)
	answer := c.Until("agent_response", "error")
	require.Contains(t, answer.Data.Message, "notes.md")
	require.Contains(t, answer.Data.Message, "Welcome to your workspace")
	require.True(t, answer.Data.ExecutionCompleted)
	require.Equal(t, []string{
		"agent_start", "agent_ready", "user_input", "agent_thinking",
		"tool_called", "tool_executing", "tool_called", "tool_executing", "tool_result", "tool_result", "agent_response",
	}, c.Types())
	require.Equal(t, question, c.Frames[2].Data.Message)
	tools := map[string]bool{}
	for _, f := range c.Frames {
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, f.Timestamp)
		if f.Seq > 0 {
			require.Equal(t, *answer.ExecutionID, *f.ExecutionID, "one execution id on all frames of a run")
			require.Regexp(t, `^exec_\d{8}_\d{6}_\d{6}$`, *f.ExecutionID)
		}
		if f.Type == "tool_called" {
			tools[f.Data.ToolName] = true
			require.Equal(t, "Executing "+f.Data.ToolName, f.Data.Description)
		}
	}
	require.Equal(t, map[string]bool{"workspace_list_files": true, "workspace_read_file": true}, tools)
}

// TestTheLogOutlivesEverything: the whole installation is killed and started again
// on its files; the session continues with its history, and a client and an agent of the
// swarm come back to a task, which ends once.
func TestTheLogOutlivesEverything(t *testing.T) {
	t.Parallel()
	dir, addr, bus := t.TempDir(), freeport.Addr(t), freeport.Addr(t)
	start := func() *process.Process {
		p := process.Start(t, process.Options{Name: "up", Dir: dir, Args: []string{"up", "--addr", addr, "--nats-addr", bus}})
		p.Ready(addr)
		return p
	}
	p := start()
	c := client.DialOrbit(t, "ws://"+addr+"/ws")
	c.Until("agent_ready")
	c.Ask("what does notes.md say?")
	c.Until("agent_response")
	outlived := taskOutlives(t, addr)
	p.Kill()

	start()
	again := client.DialOrbit(t, "ws://"+addr+"/ws?after=0&session="+c.Session)
	again.Until("agent_response")
	require.Equal(t, transcript(c.Frames), transcript(again.Frames))
	again.Ask("and how many words does it have?")
	require.Contains(t, again.Until("agent_response", "error").Data.Message, "words")
	outlived()
}

// TestAKilledInstallationResumes: everything is killed while a plan waits, and started again, as the README says. The terminal that has
// shown the plan takes the answer.
func TestAKilledInstallationResumes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	asked := regexp.MustCompile("(?m)^1\\. `bin/waggle chat --plan \"(.*)\"`").FindStringSubmatch(string(page))
	require.NotNil(t, asked, "the README's list begins with a plan")
	dir, addr, bus := t.TempDir(), freeport.Addr(t), freeport.Addr(t)
	start := func() *process.Process {
		p := process.Start(t, process.Options{Name: "up", Dir: dir, Args: []string{"up", "--addr", addr, "--nats-addr", bus}})
		p.Ready(addr)
		return p
	}
	p := start()
	stdin, answer := io.Pipe()
	chat := process.Start(t, process.Options{
		Name: "chat", Dir: dir, Input: stdin, Args: []string{"chat", "--url", "ws://" + addr + "/ws", "--plan", asked[1]},
	})
	process.Eventually(t, "the plan waits", func() bool { return strings.Contains(chat.Output(), "Carry it out?") })
	p.Kill()
	start()
	_, err = io.WriteString(answer, "y\n")
	require.NoError(t, err)
	require.NoError(t, answer.Close())
	require.NoError(t, chat.Wait())
	for _, want := range []string{"▸ 1 ", "✓ 1 ", "✓ 2 ", "The workspace has 1 file", "Welcome to your workspace"} {
		require.Equal(t, 1, strings.Count(chat.Output(), want), "%s in %s", want, chat.Output())
	}
}

// taskOutlives has an agent begin a task. The function that it returns requires that client and agent come back to another server
// at the same address, and that the task ends well.
func taskOutlives(t *testing.T, addr string) (outlived func()) {
	t.Helper()
	ctx, running, goOn := sdkContext(t), make(chan struct{}, 10), make(chan struct{})
	sdkAgent(t, swarm.Options{URL: "ws://" + addr}, "Slow", func(ctx context.Context, task *swarm.Task) (any, error) {
		running <- struct{}{}
		select {
		case <-goOn:
			return task.Metadata.Attempt, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	c, err := swarm.Dial(ctx, swarm.ClientOptions{Options: swarm.Options{URL: "ws://" + addr}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	id := c.ID()
	task, err := c.CreateTask(ctx, swarm.NewTask{AgentName: "Slow", Data: 1, QueueTimeout: time.Minute})
	require.NoError(t, err)
	receive(t, running, "the task")
	return func() {
		t.Helper()
		status, err := c.TaskStatus(ctx, task.ID())
		require.NoError(t, err)
		require.NotEqual(t, swarm.TaskStatusFailed, status.Status)
		close(goOn)
		r, err := task.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, swarm.TaskStatusCompleted, r.Status)
		require.Equal(t, id, c.ID())
	}
}
