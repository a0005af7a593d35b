package repocheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testsum returns a function that runs the counter.
func testsum(t *testing.T) func(args ...string) (string, bool) {
	t.Helper()
	bin := programOf(t, sumProgram)
	return func(args ...string) (string, bool) {
		b, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput()
		return strings.TrimSpace(string(b)), err == nil
	}
}

func lastLine(s string) string { return s[strings.LastIndex(s, "\n")+1:] }

func results(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "results.json")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return name
}

func TestTheCounterCounts(t *testing.T) {
	run := testsum(t)
	good := results(t,
		`{"Action":"run","Package":"a","Test":"T1"}`, `{"Action":"pass","Package":"a","Test":"T1"}`,
		`{"Action":"run","Package":"a","Test":"T2"}`, `{"Action":"skip","Package":"a","Test":"T2"}`,
		`{"Action":"pass","Package":"a","Elapsed":1.5}`)
	out, ok := run(good)
	require.True(t, ok)
	require.Equal(t, "1 passed, 0 failed, 1 skipped", lastLine(out))

	bad := results(t,
		`{"Action":"run","Package":"b","Test":"T"}`, `{"Action":"output","Package":"b","Test":"T","Output":"why it failed\n"}`,
		`{"Action":"fail","Package":"b","Test":"T"}`, `{"Action":"fail","Package":"b"}`)
	out, ok = run(good, bad)
	require.False(t, ok)
	require.Contains(t, out, "why it failed")
	require.Equal(t, "1 passed, 1 failed, 1 skipped", lastLine(out))
	require.Regexp(t, `slowest packages:\n +1.5 s  a\n +0.0 s  b\n`, out)

	crashed := results(t, `{"Action":"run","Package":"c","Test":"T"}`, `{"Action":"fail","Package":"c"}`)
	out, ok = run(crashed)
	require.False(t, ok)
	require.Equal(t, "0 passed, 1 failed", lastLine(out))

	broken := results(t,
		`{"ImportPath":"d [d.test]","Action":"build-output","Output":"d.go:1: no such thing\n"}`,
		`{"ImportPath":"d [d.test]","Action":"build-fail"}`,
		`{"Action":"start","Package":"d"}`, `{"Action":"fail","Package":"d","FailedBuild":"d [d.test]"}`)
	out, ok = run(broken)
	require.False(t, ok)
	require.Contains(t, out, "no such thing")
	require.Equal(t, "0 passed, 1 failed", lastLine(out))

	_, ok = run()
	require.False(t, ok, "no results are no success")
	_, ok = run(filepath.Join(t.TempDir(), "none"))
	require.False(t, ok)
}

func TestTheCounterRunsTests(t *testing.T) {
	run := testsum(t)
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("go.mod", "module x\n\ngo 1.26.0\n")
	write("x_test.go", "package x\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Run(\"sub\", func(*testing.T) {}) }\n")
	t.Setenv("GOWORK", "off")
	raw := filepath.Join(dir, "out", "raw.json")
	out, ok := run("-out", raw, "-dirs", dir, "--", "go", "test", "-json", "./...")
	require.True(t, ok, out)
	require.Equal(t, "2 passed, 0 failed", lastLine(out))
	again, ok := run(raw)
	require.True(t, ok)
	require.Equal(t, lastLine(out), lastLine(again))

	write("y_test.go", "package x\n\nfunc broken {\n")
	out, ok = run("-out", raw, "-dirs", dir, "--", "go", "test", "-json", "./...")
	require.False(t, ok, out)
	require.Contains(t, lastLine(out), " 1 failed")
	_, ok = run("-out", raw, "-dirs", filepath.Join(dir, "nowhere"), "--", "go", "test", "-json", "./...")
	require.False(t, ok)
}
