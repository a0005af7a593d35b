package plug_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/cmd/waggle/plug"
)

const (
	role = "PLUG_TEST_CHILD" // of the child
	page = "http://127.0.0.1:9000"
)

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		goleak.VerifyTestMain(m)
	case "fails":
		os.Exit(7)
	default: // serves until SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		_, _ = fmt.Fprintln(os.Stdout, os.Getpid())
		<-c
	}
}

// rig runs children and tells of each one.
type rig struct {
	t       *testing.T
	plug    *plug.Plug
	stop    context.CancelFunc
	ended   chan error
	started chan int // process ids
	killed  chan int
}

func newRig(t *testing.T, does string) *rig {
	p, err := plug.Open(t.Context(), page)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	ctx, stop := context.WithCancel(t.Context())
	r := &rig{t: t, plug: p, stop: stop, ended: make(chan error, 1), started: make(chan int, 9), killed: make(chan int, 9)}
	go func() {
		r.ended <- p.Run(ctx, func(ctx context.Context) *exec.Cmd { return r.child(ctx, does) }, 0, func(pid int) { r.killed <- pid })
	}()
	return r
}

func (r *rig) child(ctx context.Context, does string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), role+"="+does), os.Stderr
	read, write, err := os.Pipe()
	if err != nil {
		r.t.Error(err)
		return c
	}
	c.Stdout = write
	go func() {
		defer func() { _ = read.Close() }()
		line := bufio.NewScanner(read)
		if line.Scan() {
			pid, _ := strconv.Atoi(line.Text())
			r.started <- pid
		}
	}()
	r.t.Cleanup(func() { _ = write.Close() })
	return c
}

// ask sends a request and returns the status.
func (r *rig) ask(method, url, origin string) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, url, nil)
	require.NoError(r.t, err)
	req.Header.Set("Origin", origin)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return resp.StatusCode
}

// TestPull: the page kills the child, as often as it likes, and another one starts each time.
func TestPull(t *testing.T) {
	r := newRig(t, "serves")
	first := <-r.started
	require.Equal(t, http.StatusNotFound, r.ask("POST", r.plug.URL(), "https://evil.example"))
	require.Equal(t, http.StatusNotFound, r.ask("POST", r.plug.URL()+"x", page))
	require.Equal(t, http.StatusNotFound, r.ask("POST", r.plug.URL(), ""))
	require.Equal(t, http.StatusMethodNotAllowed, r.ask("GET", r.plug.URL(), page))
	require.NoError(t, syscall.Kill(first, 0), "nothing of this kills")

	require.Equal(t, http.StatusNoContent, r.ask("POST", r.plug.URL(), page))
	require.Equal(t, first, <-r.killed)
	second := <-r.started
	require.NotEqual(t, first, second)
	require.Equal(t, http.StatusNoContent, r.ask("POST", r.plug.URL(), page))
	require.Equal(t, second, <-r.killed)
	<-r.started
	r.stop()
	require.NoError(t, <-r.ended)
	require.Equal(t, http.StatusConflict, r.ask("POST", r.plug.URL(), page))
}

// TestKilledByOthers: it does not matter who kills it.
func TestKilledByOthers(t *testing.T) {
	r := newRig(t, "serves")
	require.NoError(t, syscall.Kill(<-r.started, syscall.SIGKILL))
	<-r.killed
	<-r.started
	r.stop()
	require.NoError(t, <-r.ended)
}

// TestEndsByItself: what cannot start is not started for ever.
func TestEndsByItself(t *testing.T) {
	r := newRig(t, "fails")
	err := <-r.ended
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.ExitCode())
	require.Empty(t, r.killed)
	r.stop()
}

func TestCheck(t *testing.T) {
	p, err := plug.Open(t.Context())
	require.NoError(t, err)
	require.NoError(t, plug.Check(p.URL()))
	require.NoError(t, p.Close())
	for _, wrong := range []string{"x", "http://10.0.0.1:80/x", "http://127.0.0.1:", "http://127.0.0.1:80", "http://127.0.0.1:80/", "https://127.0.0.1:80/x"} {
		require.Error(t, plug.Check(wrong), wrong)
	}
}
