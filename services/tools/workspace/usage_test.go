package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/quota"
)

// TestWorkspaceBytes: a tenant's files stay below its quota, those that programs write counted. The refusal says what to
// do, and doing it helps. Other tenants are not concerned.
func TestWorkspaceBytes(t *testing.T) {
	dir := t.TempDir()
	var refused []quota.Refusal
	now := time.Now()
	c := openLimited(t, dir, quota.Config{
		Policy: quota.Policy{
			Tenant:  quota.Limits{WorkspaceBytes: 100 << 10},
			Tenants: map[string]quota.Override{"big": {Tenant: quota.Limits{WorkspaceBytes: quota.None}}},
		},
		Refused: func(r quota.Refusal) { refused = append(refused, r) }, Now: func() time.Time { return now },
	})
	write := func(path string, size int) args { return args{"path": path, "content": strings.Repeat("x", size)} }
	c.ok(t, "write_file", write("a.txt", 40<<10))
	c.ok(t, "write_file", write("b.txt", 40<<10))
	text := c.refused(t, "write_file", write("c.txt", 40<<10))
	require.Contains(t, text, "QUOTA_EXCEEDED")
	require.Contains(t, text, "102400 bytes of files in the workspace. Delete files that are not needed, and try again.")
	require.NoFileExists(t, filepath.Join(dir, "c.txt"))
	c.ok(t, "write_file", write("b.txt", 30<<10))
	c.ok(t, "write_file", write("c.txt", 20<<10))
	more := write("b.txt", 20<<10)
	more["append"] = true
	require.Contains(t, c.refused(t, "write_file", more), "QUOTA_EXCEEDED", "an append counts as what it makes")
	for _, tenant := range []string{"other", "big"} {
		text, bad := c.callAs(t, tenant, "write_file", write("a.txt", 90<<10))
		require.False(t, bad, text)
	}
	text, bad := c.callAs(t, "big", "write_file", write("b.txt", 90<<10))
	require.False(t, bad, text)

	require.NoError(t, os.Remove(filepath.Join(dir, "a.txt")))
	c.ok(t, "write_file", write("d.txt", 5<<10))
	put(t, filepath.Join(dir, "cache", "of-a-program.bin"), strings.Repeat("x", 60<<10))
	require.Contains(t, c.refused(t, "write_file", write("e.txt", 5)), "QUOTA_EXCEEDED")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "cache")))
	c.ok(t, "write_file", write("e.txt", 5))
	for range 2000 { // empty files use room as well
		path := filepath.Join(dir, "many", time.Duration(now.UnixNano()).String())
		now = now.Add(time.Second)
		put(t, path, "")
	}
	require.Contains(t, c.refused(t, "write_file", write("f.txt", 5)), "QUOTA_EXCEEDED")
	require.Len(t, refused, 4)
	require.Equal(t, []any{"default", "workspace_bytes", quota.ScopeTenant, int64(100 << 10)}, []any{
		refused[0].Tenant.String(), refused[0].Resource.String(), refused[0].Scope, refused[0].Limit,
	})
}

// TestAMeasurementRests: a folder that takes long to measure is measured again after twenty times as long; until then
// writes are added.
func TestAMeasurementRests(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	c := openLimited(t, dir, quota.Config{
		Policy: quota.Policy{Tenant: quota.Limits{WorkspaceBytes: 100 << 10}},
		Now:    func() time.Time { now = now.Add(time.Second); return now }, // each look at the clock takes a second
	})
	big := strings.Repeat("x", 40<<10)
	c.ok(t, "write_file", args{"path": "a.txt", "content": big})
	put(t, filepath.Join(dir, "program.bin"), big)
	c.ok(t, "write_file", args{"path": "b.txt", "content": big})
	require.Contains(t, c.refused(t, "write_file", args{"path": "c.txt", "content": big}), "QUOTA_EXCEEDED", "writes are added")
	c.ok(t, "write_file", args{"path": "c.txt", "content": "small"})
	now = now.Add(20 * time.Second)
	require.Contains(t, c.refused(t, "write_file", args{"path": "d.txt", "content": "small"}), "QUOTA_EXCEEDED", "the program is noticed")
}
