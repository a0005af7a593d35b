package workspace_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// canary is in every file outside of the workspace and in a file's name in every
// folder there, and nowhere in the workspace.
const canary = "CANARY-OUTSIDE"

// trap is a workspace full of ways out, with files beside it that the tools must neither read nor change.
type trap struct {
	*client
	outside string
	before  map[string]string
}

func newTrap(t testing.TB) *trap {
	base := t.TempDir()
	outside, dir := filepath.Join(base, "outside"), filepath.Join(base, "workspace")
	put(t, filepath.Join(outside, "secret.txt"), canary)
	put(t, filepath.Join(outside, "sub", "secret.txt"), canary)
	put(t, filepath.Join(base, "workspace-sibling", "secret.txt"), canary)
	for _, folder := range []string{outside, filepath.Join(outside, "sub"), filepath.Join(base, "workspace-sibling"), base} {
		put(t, filepath.Join(folder, canary), canary)
	}
	put(t, filepath.Join(dir, "sub", "dir", "inner.txt"), "inner")
	put(t, filepath.Join(dir, "plain.txt"), "plain")
	for name, to := range map[string]string{
		"abs":          outside,
		"absfile":      filepath.Join(outside, "secret.txt"),
		"rel":          "../outside",
		"relfile":      "../outside/secret.txt",
		"deep":         "sub/dir/../../../outside",
		"sub/up":       "..",
		"sub/upup":     "../..",
		"sub/dir/out":  "../../../outside/sub",
		"chain1":       "chain2",
		"chain2":       "rel",
		"loop":         "loop",
		"loopa":        "loopb",
		"loopb":        "loopa",
		"self":         ".",
		"dangling":     "../outside/new.txt",
		"danglingabs":  filepath.Join(outside, "new.txt"),
		"proc":         "/proc/self/root",
		"rootfs":       "/",
		"inside":       "plain.txt",
		"insidedir":    "sub/dir",
		"sibling":      "../workspace-sibling",
		"sub/absup":    dir + "/..",
		"sub/dir/dots": "../../..//outside/./sub/..",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	require.NoError(t, os.Link(filepath.Join(dir, "plain.txt"), filepath.Join(base, "outside", "second-name")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	sock, err := net.Listen("unix", filepath.Join(dir, "sock"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = sock.Close() })
	tr := &trap{client: open(t, dir), outside: outside}
	tr.before = tr.snapshot(t)
	return tr
}

// snapshot returns every path and content outside of the workspace.
func (tr *trap) snapshot(t require.TestingT) map[string]string {
	all := map[string]string{}
	for _, dir := range []string{tr.outside, filepath.Join(filepath.Dir(tr.outside), "workspace-sibling")} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				all[path] = "folder"
				return err
			}
			b, err := os.ReadFile(path)
			all[path] = string(b)
			return err
		})
		require.NoError(t, err)
	}
	entries, err := os.ReadDir(filepath.Dir(tr.outside))
	require.NoError(t, err)
	for _, e := range entries {
		all[e.Name()] = "top"
	}
	return all
}

// attack tries every tool on a path and returns all results.
func (tr *trap) attack(t testing.TB, path string) string {
	var all strings.Builder
	for _, a := range []struct {
		tool string
		in   args
	}{
		{"list_files", args{"path": path, "recursive": true}},
		{"read_file", args{"path": path}},
		{"write_file", args{"path": path, "content": "attack"}},
		{"write_file", args{"path": path, "content": "attack", "append": true}},
		{"write_file", args{"path": path + "/new.txt", "content": "attack"}},
		{"search_files", args{"path": path, "text": canary[:6]}},
		{"search_files", args{"path": path, "glob": canary[:6] + "*"}},
	} {
		text, _ := tr.call(t, a.tool, a.in)
		all.WriteString(text)
		all.WriteByte('\n')
	}
	return all.String()
}

func (tr *trap) check(t testing.TB, path string) {
	t.Helper()
	got := tr.attack(t, path)
	require.NotContains(t, got, canary, "%q told something from outside", path)
	require.Equal(t, tr.before, tr.snapshot(t), "%q changed something outside", path)
}

func hostilePaths(tr *trap) []string {
	return []string{
		"..", "../", "../outside", "../outside/secret.txt", "/", "//", "/etc/passwd", "../../../../../../etc/passwd",
		tr.outside, tr.outside + "/secret.txt", tr.dir, tr.dir + "/plain.txt", tr.dir + "/../outside/secret.txt",
		"abs", "abs/secret.txt", "absfile", "rel/secret.txt", "relfile", "deep/secret.txt", "sub/up/../outside",
		"sub/upup/outside/secret.txt", "sub/dir/out/secret.txt", "chain1/secret.txt", "loop", "loop/x", "loopa",
		"self/self/self/rel/secret.txt", "dangling", "danglingabs", "proc/etc/passwd", "rootfs/etc/passwd",
		"sibling/secret.txt", "sub/absup/outside/secret.txt", "sub/dir/dots/secret.txt", "fifo", "sock", "self/fifo",
		"plain.txt/..", "plain.txt/../../outside", "insidedir/../../outside/secret.txt", "./././../outside",
		"sub/./dir/.././../../outside/secret.txt", "plain.txt\x00/../outside", "\x00", "..\x00", "~", "~/secret.txt", "$HOME",
		"..\\outside\\secret.txt", "C:\\", "\\\\?\\", "file:///etc/passwd", "%2e%2e/outside/secret.txt", "..%2foutside",
		"\u2025/outside", "\uff0e\uff0e/outside", "..;/outside", ".../outside", ". ./outside", " ../outside",
		strings.Repeat("../", 1000) + "etc/passwd", strings.Repeat("self/", 200) + "rel/secret.txt",
		strings.Repeat("a", 5000), strings.Repeat("a/", 2000) + "b", "\xff\xfe", "a\nb", "\x1b[2J",
	}
}

func TestNoPathLeadsOut(t *testing.T) {
	tr := newTrap(t)
	for _, path := range hostilePaths(tr) {
		tr.check(t, path)
	}
	require.Equal(t, "plain", get(t, filepath.Join(tr.outside, "second-name")))
}

// Any path made of names that exist in the trap, of dots and of odd bytes.
func TestNoPathLeadsOutProperty(t *testing.T) {
	tr := newTrap(t)
	var names []string
	err := filepath.WalkDir(tr.dir, func(_ string, d fs.DirEntry, err error) error {
		names = append(names, d.Name())
		return err
	})
	require.NoError(t, err)
	names = append(names, "..", "..", "..", ".", "", "outside", "secret.txt", "workspace", "new", "\x00", " ", "...")
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(names), 1, 8).Draw(rt, "parts")
		path := rapid.SampledFrom([]string{"", "", "", "/", "./", tr.dir + "/"}).Draw(rt, "start") + strings.Join(parts, "/")
		tr.check(t, path)
	})
}

func FuzzPath(f *testing.F) {
	tr := newTrap(f)
	for _, path := range hostilePaths(tr) {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) { tr.check(t, path) })
}

// A file swapped for a pipe must not block the server.
func TestSwappingAFileForAPipeDoesNotBlock(t *testing.T) {
	tr := newTrap(t)
	path, pipe := filepath.Join(tr.dir, "f"), filepath.Join(tr.dir, "p")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.WriteFile(pipe+"1", []byte("x"), 0o644)
			_ = os.Rename(pipe+"1", path)
			_ = syscall.Mkfifo(pipe, 0o644)
			_ = os.Rename(pipe, path)
		}
	})
	for range 300 {
		tr.call(t, "read_file", args{"path": "f"})
		tr.call(t, "write_file", args{"path": "f", "content": "y", "append": true})
	}
	close(stop)
	wg.Wait()
}
