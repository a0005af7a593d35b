package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// leastFile is the least that a file or a folder counts, as on a disk: a million empty files use room, too.
	leastFile = 4 << 10
	// restFactor times the duration of a measurement is how long it is taken for true: measuring takes a twentieth of
	// the time at most. A folder of 10,000 files takes some 30 ms.
	restFactor = 20
)

// usage keeps the bytes of the tenants' folders below their quotas. Programs write into the folders, too, so each is
// measured again before a write, once the last measurement has rested; between two measurements writes are added.
type usage struct {
	cfg quota.Config
	now func() time.Time

	mu     sync.Mutex
	folder map[id.Tenant]measured
}

// newUsage returns the usage of folders with the quotas.
func newUsage(cfg quota.Config) *usage {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &usage{cfg: cfg, now: cfg.Now, folder: map[id.Tenant]measured{}}
}

// measured is what a folder held at a time.
type measured struct {
	bytes int64
	until time.Time // when it is measured again
}

// admit returns the QUOTA_EXCEEDED fault of a write that replaces old bytes by more, beyond the tenant's quota. A write
// that makes the folder smaller is always admitted. A nil *usage admits everything.
func (u *usage) admit(ctx context.Context, root *os.Root, tenant id.Tenant, old, size int64) error {
	if u == nil || counted(size) <= counted(old) {
		return nil
	}
	limits, _ := u.cfg.Policy.Of(tenant, "")
	if limits.WorkspaceBytes <= 0 {
		return nil
	}
	used, err := u.of(ctx, root, tenant)
	if err != nil {
		return err
	}
	if used+counted(size)-counted(old) <= limits.WorkspaceBytes {
		return nil
	}
	r := quota.Refusal{Tenant: tenant, Resource: audit.WorkspaceBytes, Scope: quota.ScopeTenant, Limit: limits.WorkspaceBytes, Used: used}
	if u.cfg.Refused != nil {
		u.cfg.Refused(r)
	}
	return r.Fault(u.now())
}

// of returns the bytes in the tenant's folder.
func (u *usage) of(ctx context.Context, root *os.Root, tenant id.Tenant) (int64, error) {
	u.mu.Lock()
	m, known := u.folder[tenant]
	u.mu.Unlock()
	began := u.now()
	if known && began.Before(m.until) {
		return m.bytes, nil
	}
	bytes, err := measure(ctx, root)
	if err != nil {
		return 0, err
	}
	ended := u.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.folder[tenant] = measured{bytes: bytes, until: ended.Add(restFactor * ended.Sub(began))}
	return bytes, nil
}

// wrote adds a write to the last measurement.
func (u *usage) wrote(tenant id.Tenant, old, size int64) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if m, known := u.folder[tenant]; known {
		m.bytes += counted(size) - counted(old)
		u.folder[tenant] = m
	}
}

// counted returns what a file of the size counts; a negative size is that of a file that does not exist.
func counted(size int64) int64 {
	if size < 0 {
		return 0
	}
	return max(size, leastFile)
}

// Used returns the bytes in a folder, as quotas count them.
func Used(ctx context.Context, dir string) (int64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, fmt.Errorf("measure the workspace: %w", err)
	}
	defer root.Close()
	return measure(ctx, root)
}

// measure sums up all files and folders below root, and follows no link. Unreadable ones count nothing.
func measure(ctx context.Context, root *os.Root) (sum int64, err error) {
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != "." {
			sum += sizeOf(d)
		}
		return ctx.Err() // an unreadable folder does not end the walk
	})
	return sum, err
}

// sizeOf returns what a file or a folder counts. One that has gone meanwhile counts nothing.
func sizeOf(d fs.DirEntry) int64 {
	info, err := d.Info()
	switch {
	case err != nil:
		return 0
	case info.Mode().IsRegular():
		return counted(info.Size())
	default:
		return leastFile
	}
}
