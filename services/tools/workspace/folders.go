package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools/internal/folder"
)

const (
	// tenantsSuffix is appended to the folder's name for the folders of the other tenants. They are beside it, not in it: no
	// tenant may see the files of another.
	tenantsSuffix = ".tenants"
)

// welcome is written into a new folder, so that a user's first question has an answer.
const welcome = `# Notes

Welcome to your workspace. Agents can list, read, write and search the files in
this folder, and nothing outside of it.

- Put files here that your agents should know.
- Ask: "Which files are in the workspace, and what does notes.md say?"
`

// Folders finds the folder of a tenant. It is safe for concurrent use.
type Folders struct {
	dir   string
	mu    sync.Mutex // one goroutine at a time prepares folders
	swept map[string]bool
	usage *usage // nil: without a limit
	later func(time.Duration, func())
}

// Open returns the folders rooted at dir: the default tenant owns dir itself, any other one dir.tenants/<tenant>. It creates
// a missing folder, with a notes.md in it.
func Open(dir string) (*Folders, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace folder: %w", err)
	}
	return openLater(abs, func(d time.Duration, f func()) { time.AfterFunc(d, f) })
}

// openLater is Open; later calls a function after a time.
func openLater(dir string, later func(time.Duration, func())) (*Folders, error) {
	f := &Folders{dir: dir, swept: map[string]bool{}, later: later}
	root, err := f.Root(id.DefaultTenant)
	if err != nil {
		return nil, err
	}
	return f, root.Close()
}

// Limit applies quotas of bytes to the folders. It is called before the first call of a tool.
func (f *Folders) Limit(cfg quota.Config) { f.usage = newUsage(cfg) }

// Root opens the tenant's folder. The caller closes it.
func (f *Folders) Root(tenant id.Tenant) (*os.Root, error) {
	dir, old := f.dir, f.dir
	if tenant != id.DefaultTenant {
		dir, old = filepath.Join(f.dir+tenantsSuffix, folder.Name(tenant)), filepath.Join(f.dir+tenantsSuffix, tenant.String())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := prepare(dir, old); err != nil {
		return nil, wrapOpen(err)
	}
	root, err := os.OpenRoot(dir)
	if err == nil && !f.swept[dir] {
		f.swept[dir] = true
		now := time.Now()
		sweep(root, now.Add(-abandoned))
		f.later(abandoned, func() { sweepAgain(dir, now) })
	}
	return root, wrapOpen(err)
}

// sweepAgain removes what a process left that was killed just before this one began: by now no other one still writes it.
func sweepAgain(dir string, before time.Time) {
	if root, err := os.OpenRoot(dir); err == nil {
		sweep(root, before)
		_ = root.Close()
	}
}

// exists reports whether the folder is there under exactly this name.
func exists(dir string) bool {
	entries, err := os.ReadDir(filepath.Dir(dir))
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == filepath.Base(dir) })
}

func wrapOpen(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("open the workspace folder: %w", err)
}

// prepare creates the folder with a welcome in it, or gives an old folder its new name. It does not change an existing folder.
func prepare(dir, old string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if exists(old) {
		return os.Rename(old, dir)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "notes.md"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640) //nolint:gosec // The folder is the operator's choice.
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(welcome)
	return errors.Join(err, f.Close())
}
