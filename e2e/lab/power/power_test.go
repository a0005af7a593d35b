package power_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/lab/power"
)

const insideVar = "WAGGLE_POWER_INSIDE"

// TestMain runs the tests with mounts of their own, which end with them.
func TestMain(m *testing.M) {
	if power.Serve() {
		return
	}
	if os.Getuid() != 0 || os.Getenv(insideVar) != "" {
		os.Exit(m.Run())
	}
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), insideVar+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: syscall.CLONE_NEWNS}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "power:", err)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// all cuts the power of all servers at once while events are appended, and returns how many
// acknowledged events are gone, and for how long the oldest had been acknowledged.
func all(t *testing.T, sync, long time.Duration) (lost int, age time.Duration) {
	t.Helper()
	disk := power.NewDisk(t)
	c := power.Start(t, sync, [3]string{disk.Dir, disk.Dir, disk.Dir})
	load := power.Write(t, power.Open(t, power.Connect(t, c)))
	load.Until(500, long)
	moment := time.Now()
	for i := range 3 {
		c.Kill(i)
	}
	disk.Fail()
	acked, _ := load.Stop() // appends fail from then on
	for i := range 3 {
		c.Restart(i)
	}
	store := power.Open(t, power.Connect(t, c))
	lost, age = power.Lost(t, store, acked, moment)
	again := power.Write(t, store) // the logs continue where they end
	again.Until(100, 0)
	_, wrong := again.Stop()
	require.NoError(t, wrong)
	return lost, age
}

// needsRoot skips a test that mounts a disk unless the user may mount one: a disk that forgets is a file system of its own.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("this test needs root: it mounts a disk that forgets unwritten data; run it with sudo, or in a privileged container")
	}
}

// most is how long an event that is lost may have been acknowledged where servers sync every
// second: that, and what a busy disk takes to write.
const most = 8 * time.Second

// TestAllServersLoseTheirPower: what that costs are events of the last moments, as
// sync_interval says; the logs have no gaps and continue.
func TestAllServersLoseTheirPower(t *testing.T) {
	needsRoot(t)
	t.Run("synced every second", func(t *testing.T) {
		lost, age := all(t, time.Second, 2*most)
		t.Logf("%d acknowledged events are lost, the oldest %s old", lost, age.Round(time.Millisecond))
		require.Less(t, age, most)
	})
	t.Run("synced before each is acknowledged", func(t *testing.T) {
		lost, _ := all(t, power.Always, 0)
		require.Zero(t, lost)
	})
	t.Run("never synced", func(t *testing.T) {
		lost, age := all(t, time.Hour, 0)
		t.Logf("%d acknowledged events are lost, the oldest %s old", lost, age.Round(time.Millisecond))
		require.Positive(t, lost, "the disk forgets")
	})
}

// TestOneServerLosesItsPower: it forgets what it had acknowledged, and has it again from the
// other two. Nothing is lost.
func TestOneServerLosesItsPower(t *testing.T) {
	needsRoot(t)
	disk := power.NewDisk(t)
	c := power.Start(t, time.Hour, [3]string{disk.Dir, t.TempDir(), t.TempDir()})
	conn := power.Connect(t, c)
	load := power.Write(t, power.Open(t, conn))
	for range 2 {
		load.Until(1000, 0)
		c.Kill(0)
		disk.Fail()
		c.Restart(0)
	}
	load.Until(1000, 0)
	acked, wrong := load.Stop()
	require.NoError(t, wrong)
	lost, _ := power.Lost(t, power.Open(t, power.Connect(t, c)), acked, time.Now())
	require.Zero(t, lost)
}
