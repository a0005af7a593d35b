package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// npmMaxWait is for a registry on a bad day; a minute is usual for the first time.
const npmMaxWait = 5 * time.Minute

// installs are folders with packages of others, by the folder of testdata that names them.
var installs = struct {
	sync.Mutex
	dirs map[string]string
}{dirs: map[string]string{}}

// packages returns a folder with the packages of a folder of testdata. The first test that needs it installs exactly the
// locked versions, without running any of their scripts.
func packages(t *testing.T, name string) string {
	t.Helper()
	installs.Lock()
	defer installs.Unlock()
	if dir := installs.dirs[name]; dir != "" {
		return dir
	}
	dir, err := os.MkdirTemp("", "waggle-"+name+"-")
	require.NoError(t, err)
	installs.dirs[name] = dir
	require.NoError(t, os.Chmod(dir, 0o755)) // programs of a root process run as another user
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
	ctx, cancel := context.WithTimeout(context.Background(), npmMaxWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "this test needs Node.js and npm (Debian: apt-get install npm): %s", out)
	return dir
}

// uninstall removes what packages has installed.
func uninstall() error {
	installs.Lock()
	defer installs.Unlock()
	var errs []error
	for _, dir := range installs.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
