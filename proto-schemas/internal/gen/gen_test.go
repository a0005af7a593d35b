package gen

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	stale, err := Stale(root, files)
	if err != nil {
		t.Fatal(err)
	}
	if len(stale) > 0 {
		t.Fatalf("generated files are stale: %q; run make generate", stale)
	}
}

func TestStaleAndWrite(t *testing.T) {
	root := t.TempDir()
	files := map[string][]byte{docsDir + "/a.md": []byte("a\n"), docsDir + "/b.md": []byte("b\n"), bundlePath("c"): []byte("{}\n")}
	expectStale(t, root, files, docsDir+"/a.md", docsDir+"/b.md", bundlePath("c"))
	write(t, root, files)
	expectStale(t, root, files)

	damage(t, filepath.Join(root, docsDir, "a.md"), "other\n")
	damage(t, filepath.Join(root, docsDir, "leftover.md"), "old\n")
	damage(t, filepath.Join(root, docsDir, ".keep"), "")
	expectStale(t, root, files, docsDir+"/a.md", docsDir+"/leftover.md")
	write(t, root, files)
	expectStale(t, root, files)
	if _, err := os.Stat(filepath.Join(root, docsDir, "leftover.md")); !os.IsNotExist(err) {
		t.Fatal("the leftover is still there")
	}
}

func TestRoot(t *testing.T) {
	if _, err := Root(t.TempDir()); err == nil {
		t.Fatal("found a repository where none is")
	}
}

func TestEveryMemberIsDescribedOrObvious(t *testing.T) {
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	c, err := readComments(filepath.Join(root, "proto-schemas"), []string{"event"})
	if err != nil {
		t.Fatal(err)
	}
	for name, about := range c.structs {
		if strings.HasSuffix(name, "Data") && !strings.HasPrefix(about, name+" ") {
			t.Errorf("%s has no comment that begins with its name: %q", name, about)
		}
	}
	types := map[string]bool{}
	for _, info := range event.Catalogue {
		types[string(info.Type)] = true
	}
	for key := range rules {
		if owner, _, ok := strings.Cut(key, "/"); ok && !types[owner] {
			t.Errorf("rule %s is about a type that does not exist", key)
		}
	}
}

func expectStale(t *testing.T, root string, files map[string][]byte, want ...string) {
	t.Helper()
	got, err := Stale(root, files)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("stale: %q, want %q", got, want)
	}
}

func write(t *testing.T, root string, files map[string][]byte) {
	t.Helper()
	stale, err := Stale(root, files)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(root, files, stale); err != nil {
		t.Fatal(err)
	}
}

func damage(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
