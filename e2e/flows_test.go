package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/flows"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// sameKey signs the states of all installations of TestFlows.
const sameKey = process.Canary + "-0123456789-0123456789-0123456789"

// TestFlows plays every flow of the session protocol on real sockets of real
// processes, with the demo model and with the scripted one behind the OpenAI
// protocol, and compares what was said with the transcripts in testdata/flows.
func TestFlows(t *testing.T) {
	if !strings.Contains(flag.Lookup("test.run").Value.String(), "/") { // all of them are played
		proof.MyAgentShows(t)
	}
	stage, script := flows.NewStage()
	llm, err := scripted.Start("127.0.0.1:0", script)
	require.NoError(t, err)
	t.Cleanup(func() { _ = llm.Close() })
	env := []string{
		"OPENAI_BASE_URL=" + llm.OpenAIBaseURL(), "OPENAI_API_KEY=" + process.Canary,
		"WAGGLE_PIPELINE_RETRY_BACKOFF=20ms", "WAGGLE_WORKER_MODEL_TRIES=1", "WAGGLE_SESSION_STATE_KEYS=" + sameKey,
	}
	hasty := append([]string{"WAGGLE_PIPELINE_CONFIRM_TIMEOUT=1s"}, env...)
	_, demo := up(t, env)
	_, hastyDemo := up(t, hasty)
	_, openai := up(t, env, "--model", "openai:x")
	_, hastyOpenAI := up(t, hasty, "--model", "openai:x")
	stage.Places = map[string]flows.Place{
		flows.Demo: {Addr: demo, Other: openai}, flows.Scripted: {Addr: openai, Other: demo},
	}
	stage.Hasty = map[string]flows.Place{flows.Demo: {Addr: hastyDemo}, flows.Scripted: {Addr: hastyOpenAI}}
	want := map[string]bool{}
	for _, f := range flows.All() {
		models := []string{flows.Scripted}
		if f.Demo {
			models = append(models, flows.Demo)
		}
		for _, model := range models {
			name := fmt.Sprintf("%s.%s", f.Name, model)
			want[name] = true
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				transcribed(t, filepath.Join("testdata", "flows", name+".txtar"), stage.Perform(t, f, model))
			})
		}
	}
	all, err := filepath.Glob(filepath.Join("testdata", "flows", "*.txtar"))
	require.NoError(t, err)
	for _, path := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		require.True(t, want[name], "no flow is named %s", name)
	}
}

// transcribed compares a transcript with the one on file.
func transcribed(t *testing.T, path, got string) {
	t.Helper()
	if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" { // the dialects' tests have it
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -update writes it")
	old, now := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(old), len(now)) {
		a, b := lineOf(old, i), lineOf(now, i)
		require.True(t, a == b, "%s:%d: it was\n%s\nand is\n%s\nRead it, then go test -update.", path, i+1, a, b) //nolint:testifylint // Equal shows hundreds of lines
	}
}

func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}
