package gateway_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

// valve passes connections on to a server, and holds back what the server sends while it is shut.
type valve struct {
	l    net.Listener
	shut sync.Mutex
	wg   sync.WaitGroup
}

func newValve(t testing.TB, target string) *valve {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	v := &valve{l: l}
	v.wg.Go(func() { v.serve(target) })
	t.Cleanup(func() {
		_ = l.Close()
		v.wg.Wait()
	})
	return v
}

func (v *valve) serve(target string) {
	for {
		client, err := v.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		v.wg.Go(func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		})
		v.wg.Go(func() {
			_, _ = io.Copy(held{client, &v.shut}, server)
			_ = client.Close()
		})
	}
}

// held writes while its valve is open.
type held struct {
	io.Writer
	shut *sync.Mutex
}

func (h held) Write(p []byte) (int, error) {
	h.shut.Lock()
	defer h.shut.Unlock()
	return h.Writer.Write(p)
}

// A probe gives up before a slow check of the streams ends. The check continues, and the next probes have its result.
func TestASlowCheckServesLaterProbes(t *testing.T) {
	t.Parallel()
	url, _ := bustest.Server(t)
	observer, err := nats.Connect(url, nats.Timeout(bustest.MaxWait))
	require.NoError(t, err)
	t.Cleanup(observer.Close)
	looks, err := observer.SubscribeSync("$JS.API.STREAM.INFO.EVT_00")
	require.NoError(t, err)
	v := newValve(t, strings.TrimPrefix(url, "nats://"))
	r := startOn(t, bustest.Dial(t, "nats://"+v.l.Addr().String()))
	require.NoError(t, observer.Flush())
	for { // Other parts have looked at the streams before.
		n, _, err := looks.Pending()
		require.NoError(t, err)
		if n == 0 {
			break
		}
		_, err = looks.NextMsg(maxWait)
		require.NoError(t, err)
	}

	v.shut.Lock()
	for range 2 {
		status, body, _ := r.get("/readyz")
		require.Equal(t, http.StatusServiceUnavailable, status, body)
	}
	_, err = looks.NextMsg(maxWait)
	require.NoError(t, err, "no check")
	require.NoError(t, observer.Flush())
	n, _, err := looks.Pending()
	require.NoError(t, err)
	require.Zero(t, n, "more than one check")
	v.shut.Unlock()
	eventually(t, "the check is used", func() bool { status, _, _ := r.get("/readyz"); return status == http.StatusOK })
}
