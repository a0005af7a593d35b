package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// envSockets makes the test binary a process that holds sockets for a benchmark, so
// that they do not cost the process that is measured: "host:port path count".
const envSockets = "GATEWAY_TEST_SOCKETS"

// sockets opens n sockets, or streams of server-sent events, from another process, which reads what comes until stop is
// called.
func sockets(t testing.TB, addr, path string, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", envSockets, addr, path, n))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return func() {
		cancel()
		_ = cmd.Wait()
	}
}

// beSockets is the other process. It ends when it is killed.
func beSockets() (code int) {
	var addr, path string
	var n int
	if _, err := fmt.Sscan(os.Getenv(envSockets), &addr, &path, &n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	for i := range n {
		br, err := openSocket(addr, strings.ReplaceAll(path, "{n}", strconv.Itoa(i)))
		if err != nil {
			fmt.Fprintln(os.Stderr, "cannot open a socket:", err)
			return 1
		}
		go func() {
			buf := make([]byte, 16<<10)
			for {
				if _, err := br.Read(buf); err != nil {
					os.Exit(0)
				}
			}
		}()
	}
	_, _ = os.Stdout.WriteString("ready\n")
	select {}
}

func openSocket(addr, path string) (*bufio.Reader, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	header, want := upgradeHeader+keyHeader, http.StatusSwitchingProtocols
	if strings.HasPrefix(path, "/agui") { // a stream of server-sent events
		header, want = "", http.StatusOK
	}
	if _, err := io.WriteString(nc, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n"+header+"\r\n"); err != nil {
		return nil, err
	}
	br := bufio.NewReaderSize(nc, 4096)
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		return nil, err
	}
	if want == http.StatusSwitchingProtocols {
		_ = res.Body.Close()
	}
	if res.StatusCode != want {
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	return br, nil
}
