package repocheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// workspace is a repository of its own: two modules, and one of end-to-end tests.
type workspace struct {
	t             *testing.T
	dir, bin, sum string
}

func newWorkspace(t *testing.T) *workspace {
	t.Helper()
	t.Setenv("CI", "") // which has another base
	w := &workspace{t: t, dir: t.TempDir(), bin: programOf(t, checkProgram), sum: programOf(t, sumProgram)}
	w.write("go.work", "go 1.26.0\n\nuse (\n\t./one\n\t./two\n\t./e2e\n)\n")
	w.write(".gitignore", ".cache\n")
	for _, module := range []string{"one", "two", "e2e"} {
		w.write(module+"/go.mod", "module x.org/"+module+"\n\ngo 1.26.0\n")
	}
	w.pkg("one/leaf", "")
	w.pkg("one/near", "x.org/one/leaf")
	w.pkg("one/aside", "")
	w.pkg("two/far", "x.org/one/near")
	w.pkg("two/slow", "x.org/one/leaf")
	w.write("two/probe/probe.go", "package probe\n")
	w.write("two/probe/probe_test.go", "package probe\n\nimport (\n\t\"testing\"\n\n\t_ \"x.org/one/leaf\"\n)\n\nfunc TestProbe(*testing.T) {}\n")
	w.pkg("two/behind", "x.org/two/probe")
	w.pkg("e2e", "x.org/two/far")
	w.write(".cache/test/unit.json", `{"Action":"pass","Package":"x.org/two/slow","Elapsed":1000}`+"\n"+
		`{"Action":"output","Package":"x.org/two/far","Output":"ok x.org/two/far (cached)\n"}`+"\n"+
		`{"Action":"pass","Package":"x.org/two/far","Elapsed":1000}`+"\n")
	w.do("git", "init", "-q", "-b", "main")
	w.commit()
	return w
}

func (w *workspace) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
}

// pkg writes a package with a test, and an import unless needs is empty.
func (w *workspace) pkg(dir, needs string) {
	w.t.Helper()
	name := filepath.Base(dir)
	text := "package " + name + "\n"
	if needs != "" {
		text += "\nimport _ \"" + needs + "\"\n"
	}
	w.write(dir+"/"+name+".go", text)
	w.write(dir+"/"+name+"_test.go", "package "+name+"\n\nimport \"testing\"\n\nfunc TestIt(*testing.T) {}\n")
}

func (w *workspace) do(name string, args ...string) string {
	w.t.Helper()
	out, err := w.try(name, args...)
	require.NoError(w.t, err, "%s", out)
	return out
}

func (w *workspace) try(name string, args ...string) (string, error) {
	c := exec.CommandContext(w.t.Context(), name, args...)
	c.Dir = w.dir
	out, err := c.CombinedOutput()
	return string(out), err
}

func (w *workspace) commit() {
	w.t.Helper()
	w.do("git", "add", "-A")
	w.do("git", "-c", "user.name=x", "-c", "user.email=x@x.org", "commit", "-q", "-m", "x")
}

func (w *workspace) plan() string {
	w.t.Helper()
	return w.do(w.bin, "-plan")
}

// The command tests a change with all its importers, across modules and through tests. It names packages beyond the budget
// and those of make e2e.
func TestCheckChoosesWhatChangedAndWhatNeedsIt(t *testing.T) {
	w := newWorkspace(t)
	w.write("one/leaf/data.json", "{}")
	said := w.plan()
	require.Contains(t, said, "1 files differ from HEAD\n", "what is not committed counts")
	require.Regexp(t, `one/leaf +changed: data.json\n`, said)
	require.Regexp(t, `one/near +needs x.org/one/leaf\n`, said)
	require.Regexp(t, `two/far +needs x.org/one/near\n`, said, "what came from Go's cache says nothing of its time")
	require.Regexp(t, `two/probe +needs x.org/one/leaf\n`, said)
	require.Regexp(t, `not tested, .* make test does it: x.org/two/slow \(1004 s\)\n`, said)
	require.Contains(t, said, "make e2e tests them: x.org/e2e\n")
	require.NotContains(t, said, "aside")
	require.NotContains(t, said, "behind", "what only a test imports is no part of its package")

	said = w.do(w.bin, "-plan", "-near")
	require.Regexp(t, `one/near +needs x.org/one/leaf\n`, said)
	require.NotContains(t, said, "two/far", "it imports the change through another package")

	w.commit()
	require.Contains(t, w.plan(), "HEAD~", "on main, the last commit is the change")
	t.Setenv("CI", "true")
	require.Contains(t, w.plan(), "4 hours before the last commit", "a clone cannot tell what was pushed")
	t.Setenv("CI", "")
	w.do("git", "checkout", "-q", "-b", "topic")
	w.write("two/slow/slow_test.go", "package slow\n")
	w.commit()
	w.write("note.md", "a note")
	said = w.plan()
	require.Contains(t, said, "2 files differ from ")
	require.Contains(t, said, "where the branch left main\n")
	require.Regexp(t, `two/slow +changed: slow_test.go\n`, said, "what changed is tested, however long that takes")
	require.Contains(t, said, "in no package of the workspace: note.md\n")
	require.NotContains(t, said, "leaf")
}

func TestCheckFailsWithItsTests(t *testing.T) {
	w := newWorkspace(t)
	w.write("one/leaf/more.go", "package leaf\n")
	run := func() (string, error) { return w.try(w.bin, "-testsum", w.sum, "--", "-count=1") }
	said, err := run()
	require.NoError(t, err, said)
	require.Contains(t, said, "vet ok")
	require.Contains(t, said, "not linted")
	require.Contains(t, said, "4 passed, 0 failed\n")
	require.Contains(t, said, "longest: ")
	require.Contains(t, said, "test ok")

	said, err = w.try(w.bin, "-steps", "vet")
	require.NoError(t, err, said)
	require.Contains(t, said, "vet ok")
	require.NotContains(t, said, "test ok")

	w.write("two/far/far_test.go", "package far\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) { t.Fatal(\"no\") }\n")
	said, err = run()
	require.Error(t, err, said)
	require.Contains(t, said, "--- FAILED x.org/two/far TestIt")
	w.write("two/slow/slow.go", "package slow\n\nimport _ \"x.org/one/nothing\"\n")
	said, err = run()
	require.Error(t, err, said)
	require.NotContains(t, said, "vet ok")
}
