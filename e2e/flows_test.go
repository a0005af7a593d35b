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
)

// sameKey signs the states of all installations of TestFlows.
const sameKey = process.Canary + "-0123456789-0123456789-0123456789"

// TestFlows plays every flow of the session protocol on real sockets of real
// processes, with the demo model in one process and with the scripted one behind the
// OpenAI protocol in an installation as deployed, and compares what was said with the transcripts in testdata/flows.
func TestFlows(t *testing.T) {
	t.Parallel()
	if !strings.Contains(flag.Lookup("test.run").Value.String(), "/") { // all of them are played
		proof.MyAgentShows(t)
	}
	here := one.forTenant(t)
	there, _ := apart.forTenant(t, nil)
	hasty := []string{"WAGGLE_PIPELINE_CONFIRM_TIMEOUT=1s", "OPENAI_BASE_URL=" + apart.llm.OpenAIBaseURL(), "OPENAI_API_KEY=" + process.Canary}
	_, hastyDemo := up(t, hasty)
	_, hastyOpenAI := up(t, hasty, "--model", "openai:x")
	stage := apart.stage
	stage.Places = map[string]flows.Place{
		flows.Demo: {Addr: here.addr, Other: there.addr, Key: here.key}, flows.Scripted: {Addr: there.addr, Other: here.addr, Key: here.key},
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
