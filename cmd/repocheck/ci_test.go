package repocheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// ci runs .ci/run in a folder with the make targets of the Makefile.
func ci(t *testing.T, makefile string) (string, bool) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	write(".ci/run", read(t, ".ci/run"))
	write("scripts/nettools.sh", "#!/bin/sh\n")
	write("Makefile", ".PHONY: changes test race lint-changed verify helm e2e packages typescript\nchanges:\n\t@echo deploy/x; echo console/y\npackages race:\n\t@true\n"+makefile+"typescript:\n\tcp good.json .cache/test/typescript.json\n")
	for _, tool := range []string{"npm", "chromium"} { // nothing is to be installed
		write("bin/"+tool, "#!/bin/sh\n")
	}
	write("good.json", `{"Action":"pass","Package":"a","Test":"T"}`+"\n"+`{"Action":"pass","Package":"a"}`+"\n")
	write("bad.json", `{"Action":"output","Package":"b","Test":"T","Output":"why it failed\n"}`+"\n"+
		`{"Action":"fail","Package":"b","Test":"T"}`+"\n"+`{"Action":"fail","Package":"b"}`+"\n")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".cache", "bin"), 0o750))
	require.NoError(t, os.Symlink(programOf(t, sumProgram), filepath.Join(dir, ".cache", "bin", "testsum")))
	write(".gitignore", ".cache\n")
	out, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	c := exec.CommandContext(t.Context(), "bash", ".ci/run")
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err = c.CombinedOutput()
	return string(out), err == nil
}

const (
	passing = "test:\n\tcp good.json .cache/test/unit.json\ne2e:\n\tcp good.json .cache/test/e2e.json\n"
	clean   = "lint-changed:\n\t@true\nverify:\n\t@true\nhelm:\n\tcp good.json .cache/test/helm.json\n"
)

func TestTheCheckEndsWithOnePlainLine(t *testing.T) {
	out, ok := ci(t, passing+clean)
	require.True(t, ok, out)
	require.Regexp(t, `\n4 passed, 0 failed\n$`, out)
}

func TestTheCheckFailsWithAnyOfItsSteps(t *testing.T) {
	out, ok := ci(t, passing+"lint-changed:\n\t@echo 'a finding'; false\nverify:\n\t@true\nhelm:\n\t@true\n")
	require.False(t, ok)
	require.Contains(t, out, "a finding")
	require.Contains(t, out, "failed: lint\n")
	require.Regexp(t, `\n3 passed, 0 failed\n$`, out)

	out, ok = ci(t, "test:\n\tcp bad.json .cache/test/unit.json; false\ne2e:\n\tcp good.json .cache/test/e2e.json\n"+clean)
	require.False(t, ok)
	require.Contains(t, out, "why it failed")
	require.Regexp(t, `\n3 passed, 1 failed\n$`, out)

	out, ok = ci(t, "test:\n\tfalse\ne2e:\n\tfalse\n"+clean)
	require.False(t, ok, out)
}

// A fresh clone stays clean during its tests.
func TestTheCheckLeavesTheSourcesAlone(t *testing.T) {
	out, ok := ci(t, "test:\n\tcp good.json .cache/test/unit.json; echo x >go.work.sum\ne2e:\n\tcp good.json .cache/test/e2e.json\n"+clean)
	require.False(t, ok)
	require.Contains(t, out, "go.work.sum")
	require.Contains(t, out, "the checks changed these files")
	require.Contains(t, out, "failed: clean")
}
