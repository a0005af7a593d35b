package repocheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// built is the folder of the programs that the tests run.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "repocheck")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// checkProgram and sumProgram return the programs of make check. They are built once for all tests.
var (
	checkProgram = program("check", "./check")
	sumProgram   = program("testsum", "../../scripts/testsum/main.go")
)

func program(name, source string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(built, name)
		out, err := exec.CommandContext(context.Background(), "go", "build", "-o", path, source).CombinedOutput()
		if err != nil {
			return "", errors.New(string(out))
		}
		return path, nil
	})
}

// programOf returns the path of a program.
func programOf(t *testing.T, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}
