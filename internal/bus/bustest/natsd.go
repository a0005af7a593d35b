package bustest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// MaxWait bounds every wait for a server: long, because machines may be busy.
const MaxWait = 60 * time.Second

// SyncEvery is the interval at which a server within a test's process syncs its files. It is long, because
// nats-server 2.15 arms its sync timer before it has stored it, which the race detector reports if a short interval
// ends first. The page cache keeps the writes of a server that ends within this process anyway.
const SyncEvery = "1h"

// natsdPackage is the program that every server of this package runs.
const natsdPackage = "github.com/waggle-dev/waggle/internal/bus/bustest/natsd"

// program returns the path of natsd. It builds it once for each test process, which is quick unless its sources changed;
// `make test` has built it already and names it in WAGGLE_NATSD.
var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("WAGGLE_NATSD"); path != "" {
		return path, nil
	}
	dir, err := folder("build")
	if err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(dir, "natsd")
	if said, err := exec.Command("go", "build", "-o", path, natsdPackage).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build natsd: %w: %s", err, said)
	}
	return path, nil
})

// folder returns a folder that all test processes of the user share.
func folder(name string) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("waggle-natsd-%d", os.Getuid()), name)
	return dir, os.MkdirAll(dir, 0o700)
}

// process is a NATS server in a separate process. It ends with the test's process at the latest.
type process struct {
	args  []string
	cmd   *exec.Cmd
	stdin io.Closer
	url   string
}

// start starts the process and returns when the server accepts connections.
func (p *process) start() error {
	path, err := program()
	if err != nil {
		return err
	}
	cmd := exec.Command(path, p.args...)
	cmd.Stderr = os.Stderr
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if p.url, err = launch(cmd); err != nil {
		return fmt.Errorf("start natsd %s: %w", strings.Join(p.args, " "), err)
	}
	p.cmd = cmd
	return nil
}

// launch starts the command and returns the URL that it announces.
func launch(cmd *exec.Cmd) (url string, err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ready := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err == nil && ready {
		return url, nil
	}
	return "", errors.Join(fmt.Errorf("it printed %q: %w", line, err), cmd.Process.Kill(), cmd.Wait())
}

func (p *process) runs() bool { return p.cmd != nil }

// stop ends the server, which warns its clients and hands its leaderships over, and waits for its end.
func (p *process) stop() {
	if p.cmd == nil {
		return
	}
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
	p.cmd = nil
}

// crash ends the server with SIGKILL.
func (p *process) crash() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	p.stop()
}

func (p *process) mustStart(t testing.TB) {
	t.Helper()
	require.NoError(t, p.start())
}
