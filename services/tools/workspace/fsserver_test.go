package workspace_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/workspace"
)

func TestANewWorkspaceHasNotes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "workspace")
	c := open(t, dir)
	require.Regexp(t, `^notes\.md \(\d+ bytes\)\n$`, c.ok(t, "list_files", nil))
	require.Equal(t, get(t, filepath.Join(dir, "notes.md")), c.ok(t, "read_file", args{"path": "notes.md"}))
}

func TestAnExistingWorkspaceIsLeftAlone(t *testing.T) {
	c := open(t, t.TempDir())
	require.Equal(t, "[The folder is empty.]", c.ok(t, "list_files", nil))
}

func TestWhatACallHasWritten(t *testing.T) {
	c := open(t, t.TempDir())
	written := func(path string, more bool) (string, bool, bool) {
		in := args{"path": path, "content": "x", "append": more}
		raw, err := json.Marshal(in)
		require.NoError(t, err)
		w, ok := workspace.Written("write_file", raw, tools.Result{Text: c.ok(t, "write_file", in)})
		return w.Path, w.Created, ok
	}
	for i, more := range []bool{true, true, false} {
		path, created, ok := written("drafts/./plan.md", more)
		require.True(t, ok)
		require.Equal(t, "drafts/plan.md", path)
		require.Equal(t, i == 0, created)
	}
	for _, tool := range []string{"read_file", "write_file"} {
		_, ok := workspace.Written(tool, []byte(`{"path":"../x"}`), tools.Result{})
		require.False(t, ok)
	}
}

func TestAWorkspaceThatIsNoFolderIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, "x")
	_, err := workspace.Open(path)
	require.Error(t, err)
}

func TestTenantsHaveFoldersOfTheirOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workspace")
	c := open(t, dir)
	text, bad := c.callAs(t, "acme", "write_file", args{"path": "plan.md", "content": "secret of acme"})
	require.False(t, bad, text)
	require.Equal(t, "secret of acme", get(t, filepath.Join(dir+".tenants", "acme", "plan.md")))
	require.NotContains(t, c.ok(t, "list_files", args{"recursive": true}), "plan.md")
	require.Equal(t, "[Nothing found.]", c.ok(t, "search_files", args{"text": "secret of acme"}))
	text, _ = c.callAs(t, "globex", "search_files", args{"text": "secret of acme"})
	require.Equal(t, "[Nothing found.]", text)
	for _, tenant := range []string{"../acme", "a.b", "*", strings.Repeat("x", 65)} {
		_, bad := c.callAs(t, tenant, "list_files", nil)
		require.True(t, bad, tenant)
	}
}

func TestList(t *testing.T) {
	c := open(t, t.TempDir())
	put(t, filepath.Join(c.dir, "b.txt"), "12345")
	put(t, filepath.Join(c.dir, "a", "c.txt"), "1")
	put(t, filepath.Join(c.dir, "a", "d", "e.txt"), "")
	require.NoError(t, os.Symlink("b.txt", filepath.Join(c.dir, "z")))
	require.Equal(t, "a/\nb.txt (5 bytes)\nz (link)\n", c.ok(t, "list_files", nil))
	require.Equal(t, "a/\na/c.txt (1 byte)\na/d/\na/d/e.txt (0 bytes)\nb.txt (5 bytes)\nz (link)\n",
		c.ok(t, "list_files", args{"recursive": true}))
	require.Equal(t, "a/c.txt (1 byte)\na/d/\n", c.ok(t, "list_files", args{"path": "a/"}))
	require.Equal(t, "b.txt is not a folder", c.refused(t, "list_files", args{"path": "b.txt"}))
	require.Equal(t, "no does not exist", c.refused(t, "list_files", args{"path": "no"}))
}

func TestListIsBounded(t *testing.T) {
	c := open(t, t.TempDir())
	for i := range 1100 {
		put(t, filepath.Join(c.dir, fmt.Sprintf("f%04d", i)), "")
	}
	text := c.ok(t, "list_files", nil)
	require.Equal(t, 1001, strings.Count(text, "\n"))
	require.Contains(t, text, "[The list is cut.")
}

func TestRead(t *testing.T) {
	c := open(t, t.TempDir())
	put(t, filepath.Join(c.dir, "f"), "one\ntwo\nthree")
	put(t, filepath.Join(c.dir, "empty"), "")
	put(t, filepath.Join(c.dir, "binary"), "a\x00b")
	put(t, filepath.Join(c.dir, "latin"), "caf\xe9")
	for _, tc := range []struct {
		in   args
		want string
	}{
		{args{"path": "f"}, "one\ntwo\nthree"},
		{args{"path": "./x/../f"}, "one\ntwo\nthree"},
		{args{"path": "f", "offset": 2}, "two\nthree"},
		{args{"path": "f", "offset": 3, "limit": 5}, "three"},
		{args{"path": "f", "limit": 1}, "one\n[These are lines 1 to 1. The file goes on: continue with offset 2.]"},
		{args{"path": "f", "offset": 2, "limit": 1}, "two\n[These are lines 2 to 2. The file goes on: continue with offset 3.]"},
		{args{"path": "empty"}, "[The file is empty.]"},
	} {
		require.Equal(t, tc.want, c.ok(t, "read_file", tc.in), "%v", tc.in)
	}
	for _, tc := range []struct {
		in   args
		want string
	}{
		{args{"path": "f", "offset": 9}, "f has no line 9; it ends at line 2"},
		{args{"path": "f", "offset": -1}, "offset and limit may not be negative"},
		{args{"path": "binary"}, "binary is not a text file"},
		{args{"path": "latin"}, "latin is not a text file"},
		{args{"path": "."}, ". is a folder"},
		{args{"path": "no"}, "no does not exist"},
		{args{"path": "f/x"}, "f/x: not a directory"},
	} {
		require.Equal(t, tc.want, c.refused(t, "read_file", tc.in), "%v", tc.in)
	}
}

// A client that follows the remarks reads a long file to its end, and gets all of it.
func TestReadInPieces(t *testing.T) {
	c := open(t, t.TempDir())
	var want strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&want, "line %d äöü\n", i)
	}
	put(t, filepath.Join(c.dir, "long"), want.String())
	var got strings.Builder
	calls := 0
	for offset := 1; offset > 0; calls++ {
		text := c.ok(t, "read_file", args{"path": "long", "offset": offset})
		require.LessOrEqual(t, len(text), 97<<10)
		offset = 0
		if i := strings.LastIndex(text, "["); i >= 0 {
			_, err := fmt.Sscanf(text[strings.LastIndex(text, " ")+1:], "%d.]", &offset)
			require.NoError(t, err)
			text = text[:i]
		}
		got.WriteString(text)
	}
	require.Equal(t, want.String(), got.String())
	require.Greater(t, calls, 3)
}

func TestReadOfOneEndlessLine(t *testing.T) {
	c := open(t, t.TempDir())
	put(t, filepath.Join(c.dir, "f"), "first\n"+strings.Repeat("ä", 200_000)+"\nlast\n")
	text := c.ok(t, "read_file", args{"path": "f"})
	require.Equal(t, "first\n[These are lines 1 to 1. The file goes on: continue with offset 2.]", text)
	text = c.ok(t, "read_file", args{"path": "f", "offset": 2})
	require.True(t, strings.HasSuffix(text, "[Line 2 is too long and was cut off here. Continue with offset 3.]"))
	require.Equal(t, "last\n", c.ok(t, "read_file", args{"path": "f", "offset": 3}))
}

func TestAHugeFileIsReadUpToTheBound(t *testing.T) {
	c := open(t, t.TempDir())
	f, err := os.Create(filepath.Join(c.dir, "sparse"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(100<<30))
	require.NoError(t, f.Close())
	require.Contains(t, c.refused(t, "read_file", args{"path": "sparse", "offset": 2}), "beyond the first 64 MiB")
	require.Contains(t, c.refused(t, "read_file", args{"path": "sparse"}), "not a text file")
	require.Contains(t, c.ok(t, "search_files", args{"text": "x"}), "[There may be more.")
}

func TestWrite(t *testing.T) {
	c := open(t, t.TempDir())
	path := filepath.Join(c.dir, "a", "b", "f.txt")
	require.Equal(t, "Created a/b/f.txt with 3 bytes.", c.ok(t, "write_file", args{"path": "a/b/f.txt", "content": "one"}))
	require.Equal(t, "one", get(t, path))
	require.NoError(t, os.Chmod(path, 0o600))
	require.Equal(t, "Replaced a/b/f.txt with 3 bytes.", c.ok(t, "write_file", args{"path": "a/b/f.txt", "content": "two"}))
	require.Equal(t, "Appended 4 bytes to a/b/f.txt, which now has 7 bytes.",
		c.ok(t, "write_file", args{"path": "a/b/f.txt", "content": " + 1", "append": true}))
	require.Equal(t, "two + 1", get(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "the mode is kept")
	require.Equal(t, "Created new with 0 bytes.", c.ok(t, "write_file", args{"path": "new", "content": "", "append": true}))
	require.Equal(t, "a/\na/b/\na/b/f.txt (7 bytes)\nnew (0 bytes)\n", c.ok(t, "list_files", args{"recursive": true}))

	require.Equal(t, "a is a folder", c.refused(t, "write_file", args{"path": "a", "content": "x"}))
	require.Equal(t, "give the name of a file", c.refused(t, "write_file", args{"path": "", "content": "x"}))
	require.Contains(t, c.refused(t, "write_file", args{"path": "new/x", "content": "x"}), "new/x: not a directory")
	require.Contains(t, c.refused(t, "write_file", args{"path": "x", "content": strings.Repeat("x", 1<<20+1)}), "larger than")
}

func TestAppendsDoNotGrowAFileForEver(t *testing.T) {
	c := open(t, t.TempDir())
	put(t, filepath.Join(c.dir, "f"), strings.Repeat("x", 16<<20))
	require.Contains(t, c.refused(t, "write_file", args{"path": "f", "content": "x", "append": true}), "would grow beyond")
}

func TestConcurrentAppendsAllArrive(t *testing.T) {
	c := open(t, t.TempDir())
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { c.ok(t, "write_file", args{"path": "f", "content": "x", "append": true}) })
	}
	wg.Wait()
	require.Equal(t, strings.Repeat("x", 20), get(t, filepath.Join(c.dir, "f")))
}

func TestSearch(t *testing.T) {
	c := open(t, t.TempDir())
	put(t, filepath.Join(c.dir, "notes.md"), "Hello world\nnothing\nhello again\n")
	put(t, filepath.Join(c.dir, "docs", "a.txt"), "say HELLO")
	put(t, filepath.Join(c.dir, "docs", "deep", "b.md"), "bye\r\n")
	put(t, filepath.Join(c.dir, "image"), "hello\x00")
	for _, tc := range []struct {
		in   args
		want string
	}{
		{args{"text": "hello"}, "docs/a.txt:1: say HELLO\nnotes.md:1: Hello world\nnotes.md:3: hello again\n"},
		{args{"text": "hello", "case_sensitive": true}, "notes.md:3: hello again\n"},
		{args{"text": "hello", "glob": "*.txt"}, "docs/a.txt:1: say HELLO\n"},
		{args{"text": "bye", "path": "docs"}, "docs/deep/b.md:1: bye\n"},
		{args{"glob": "*.md"}, "docs/deep/b.md\nnotes.md\n"},
		{args{"glob": "docs/*"}, "docs/a.txt\n"},
		{args{"glob": "docs/**"}, "docs/a.txt\ndocs/deep/b.md\n"},
		{args{"glob": "**/*.md"}, "docs/deep/b.md\nnotes.md\n"},
		{args{"glob": strings.Repeat("**/", 400) + "*.txt"}, "docs/a.txt\n"},
		{args{"text": "absent"}, "[Nothing found.]"},
	} {
		require.Equal(t, tc.want, c.ok(t, "search_files", tc.in), "%v", tc.in)
	}
	for _, in := range []args{{}, {"text": "a\nb"}, {"glob": "[a"}, {"text": "x", "path": "no"}, {"text": "x", "path": "notes.md"}} {
		c.refused(t, "search_files", in)
	}
}

func TestSearchIsBounded(t *testing.T) {
	c := open(t, t.TempDir())
	put(t, filepath.Join(c.dir, "f"), strings.Repeat(strings.Repeat("x", 1000)+"\n", 1000))
	text := c.ok(t, "search_files", args{"text": "xx"})
	require.Equal(t, 201, strings.Count(text, "\n"))
	require.Less(t, len(text), 100<<10)
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	c := open(t, t.TempDir())
	for tool, in := range map[string]args{
		"read_file":    {"offset": 1},
		"write_file":   {"path": "x"},
		"list_files":   {"path": 7},
		"search_files": {"text": "x", "unknown": true},
	} {
		c.refused(t, tool, in)
	}
	require.Equal(t, "[The folder is empty.]", c.ok(t, "list_files", nil))
}

// Some disks do not distinguish case, so that the names of folders differ in more.
func TestTenantsThatDifferInCaseHaveDistinctFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workspace")
	require.NoError(t, os.MkdirAll(filepath.Join(dir+".tenants", "ACME"), 0o750))
	put(t, filepath.Join(dir+".tenants", "ACME", "plan.md"), "written by an earlier version")
	c := open(t, dir)
	for _, tenant := range []string{"acme", "Acme"} {
		text, bad := c.callAs(t, tenant, "write_file", args{"path": "plan.md", "content": "of " + tenant})
		require.False(t, bad, text)
	}
	for tenant, want := range map[string]string{"acme": "of acme", "Acme": "of Acme", "ACME": "written by an earlier version"} {
		text, bad := c.callAs(t, tenant, "read_file", args{"path": "plan.md"})
		require.False(t, bad, text)
		require.Equal(t, want, text)
	}
	entries, err := os.ReadDir(dir + ".tenants")
	require.NoError(t, err)
	folded := map[string]bool{}
	for _, e := range entries {
		folded[strings.ToLower(e.Name())] = true
	}
	require.Len(t, folded, 3)
}

// A process that was killed during a write has left a temporary file.
func TestAbandonedTemporaryFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "drafts"), 0o750))
	old, fresh, own := filepath.Join(dir, "drafts", ".waggle-0123456789abcdef.tmp"), filepath.Join(dir, ".waggle-fedcba9876543210.tmp"), filepath.Join(dir, "a.tmp")
	for _, path := range []string{old, fresh, own} {
		put(t, path, "x")
	}
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(old, long, long))
	require.NoError(t, os.Chtimes(own, long, long))
	open(t, dir)
	require.NoFileExists(t, old)
	require.FileExists(t, fresh, "another process may be writing it")
	require.FileExists(t, own)
}
