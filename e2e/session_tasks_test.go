//go:build nightly

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAModelThatDoesNotAnswer: a task that takes too long is given up, one try after
// the other, and so is a model that says nothing.
func TestAModelThatDoesNotAnswer(t *testing.T) {
	f := newFleet(t, scripted.Stages{Tasks: map[string]scripted.Script{
		"endless": scripted.Always(scripted.Stream(scripted.Every(50*time.Millisecond, words(1000)...))),
		"mute":    scripted.Always(scripted.Stream(scripted.Hang())),
	}}.Script())
	f.configure("pipeline: {retry_backoff: 50ms, task_attempts: 2}\nworker: {job_timeout: 10s}\n")
	f.serve(everyone)
	_, addr := f.gateway()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	for task, told := range map[string]string{"endless": myagent.ErrorTimeout, "mute": myagent.AgentTimeout} {
		from := len(m.Frames)
		metadata := map[string]any{}
		if task == "endless" {
			metadata["timeout_seconds"] = 5 // the task's own limit, before the worker's and after the first words
		}
		m.Send(myagent.UserSolveTasks, map[string]any{"content": map[string]any{"tasks": tasks(task)}, "metadata": metadata})
		answer := m.Until(myagent.AgentFinalAnswer)
		require.Equal(t, "failed", sdk.As[myagent.FinalAnswerMeta](answer.Metadata).Status)
		require.Equal(t, 2, count(m.Frames[from:], told), "both attempts at %s: %s", task, client.Names(m.Frames[from:]))
	}
}
