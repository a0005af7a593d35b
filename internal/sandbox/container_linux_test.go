//go:build amd64 || arm64

package sandbox

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/waggle-dev/waggle/internal/sandbox/seccomp"
)

// inContainer marks the test process that has the restrictions of a container.
const inContainer = "WAGGLE_TEST_IN_CONTAINER"

// Where a container engine's filter forbids namespaces and mounts, programs start with the other layers, which suffice for
// require.
func TestInAContainer(t *testing.T) {
	if os.Getenv(inContainer) == "" {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestInAContainer$", "-test.v")
		cmd.Env = append(os.Environ(), inContainer+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "--- PASS: TestInAContainer")
		return
	}
	forbidNamespaces(t)
	f := Detect()
	require.False(t, f.Namespaces)
	require.NotEmpty(t, f.Why[Namespaces])
	require.True(t, f.Seccomp)
	require.GreaterOrEqual(t, f.Landlock, landlockSignals)
	require.Empty(t, f.Gaps(Settings{}))
	out, err := launch(t, Command{Args: []string{"sh", "-c", "echo $GREETING; cat /proc/self/environ || echo refused"}, Settings: Settings{Mode: Require}})
	require.NoError(t, err, out)
	require.Contains(t, out, "hello\n")
	require.Contains(t, out, "refused\n")
}

// forbidNamespaces sets a filter like a container engine's for all threads of this process.
func forbidNamespaces(t *testing.T) {
	t.Helper()
	const (
		filterMode = 1 // SECCOMP_SET_MODE_FILTER
		allThreads = 1 // SECCOMP_FILTER_FLAG_TSYNC
	)
	f := seccomp.New(seccomp.Rules{Namespaces: true, Closed: true, Network: true})
	runtime.LockOSThread() // privileges are a thread's; without root the filter asks for them
	defer runtime.UnlockOSThread()
	require.NoError(t, noNewPrivileges())
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, filterMode, allThreads, uintptr(unsafe.Pointer(&prog)))
	require.Zero(t, errno)
}
