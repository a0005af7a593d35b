package site

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A static binary asks the kernel for the time, and namespaces shift no wall clock. So
// binaries with clocks that can be set are built with a package time that adds a shift
// to what Now says: to the wall clock, not to the monotonic one, as an administrator
// who sets the clock of a machine does. Nothing else of them differs.

const (
	// clockVar names the file that holds a process's shift in seconds: eight bytes that
	// it has mapped, so that a write is seen at once.
	clockVar = "WAGGLE_CHAOS_CLOCK"
	// binariesVar names a folder in which the binaries with such clocks are already.
	binariesVar = "WAGGLE_CHAOS_CLOCKED"
	// ClockSlack is how far a process's clock may be from where it was set to: HTTP says
	// whole seconds, and the machine is busy.
	ClockSlack = 5 * time.Second
)

// shifting is the source of the shift, as a file of package time.
//
//go:embed shift.go.txt
var shifting []byte

// The line of time.Now after which the shift is added.
const (
	nowHead  = "func Now() Time {\n"
	nowReads = "\tsec, nsec, mono := runtimeNow()\n"
	nowAdds  = "\tsec = shifted(sec)\n"
)

// shiftNow adds the shift to the source of package time.
func shiftNow(source string) (string, error) {
	if n := strings.Count(source, nowHead+nowReads); n != 1 {
		return "", fmt.Errorf("time.Now of %s begins in another way than it did (%d matches): its clock cannot be set", runtime.Version(), n)
	}
	return strings.Replace(source, nowHead+nowReads, nowHead+nowReads+nowAdds, 1), nil
}

// clocked builds the binaries with clocks that can be set, once, and returns where
// they are.
var clocked = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(binariesVar); dir != "" {
		return dir, nil
	}
	dir, err := builtDir()
	if err != nil {
		return "", err
	}
	overlay, err := overlayIn(dir)
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", dir+"/", //nolint:gosec // the arguments are ours
		"github.com/waggle-dev/waggle/cmd/nats-server", "github.com/waggle-dev/waggle/cmd/waggle").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build binaries whose clocks can be set: %w: %s", err, out)
	}
	return dir, nil
})

// overlayIn writes what replaces files of package time, and returns the list of it.
func overlayIn(dir string) (string, error) {
	root, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	lib := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(lib, "time.go")) //nolint:gosec // the toolchain's
	if err != nil {
		return "", err
	}
	shifted, err := shiftNow(string(source))
	if err != nil {
		return "", err
	}
	files := map[string][]byte{"time.go": []byte(shifted), "shift.go": shifting}
	replace := map[string]string{}
	for name, content := range files {
		replace[filepath.Join(lib, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// wind gives a process a clock that can be set, if the site is one of such clocks.
func (m *Member) wind(t testing.TB) {
	t.Helper()
	if !m.s.clocks {
		return
	}
	dir, err := clocked()
	require.NoError(t, err)
	m.opt.Program = filepath.Join(dir, "waggle")
	if m.Role == roleNATS {
		m.opt.Program = filepath.Join(dir, "nats-server")
	}
	m.clock = filepath.Join(m.s.Dir, m.Name+".clock")
	require.NoError(t, os.WriteFile(m.clock, make([]byte, 8), 0o600))
	m.opt.Env = append(append([]string(nil), m.opt.Env...), clockVar+"="+m.clock)
}

// Shift sets the process's wall clock, while it runs.
func (m *Member) Shift(d time.Duration) error {
	f, err := os.OpenFile(m.clock, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	var text [8]byte
	binary.NativeEndian.PutUint64(text[:], uint64(d/time.Second)) //nolint:gosec // two's complement is what is read
	if _, err := f.WriteAt(text[:], 0); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// Ahead returns how far the process's clock is ahead of the true time, as the headers
// of its answers have it.
func (m *Member) Ahead(ctx context.Context) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.probe()+"/livez", nil)
	if err != nil {
		return 0, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	if err := resp.Body.Close(); err != nil {
		return 0, err
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, fmt.Errorf("the date of an answer of %s: %w", m.Name, err)
	}
	return time.Until(at), nil
}
