package arrival_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/arrival"
)

const maxWait = 30 * time.Second

// TestNoConnectionKeepsItsTurn: strangers that wait for an answer, send half of a body, or stay silent as a socket, and
// clients that have authenticated, keep no other connection from its turn.
func TestNoConnectionKeepsItsTurn(t *testing.T) {
	t.Parallel()
	table := arrival.New(100)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, release := context.WithTimeout(t.Context(), 2*maxWait)
	defer release()
	entered := make(chan string, 100)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /waits", func(_ http.ResponseWriter, r *http.Request) {
		entered <- r.URL.Path
		<-ctx.Done()
	})
	mux.HandleFunc("GET /client", func(_ http.ResponseWriter, r *http.Request) {
		arrival.Of(r).Admitted()
		entered <- r.URL.Path
		<-ctx.Done()
	})
	mux.HandleFunc("POST /body", func(_ http.ResponseWriter, r *http.Request) {
		entered <- r.URL.Path
		_, _ = io.Copy(io.Discard, r.Body)
	})
	mux.HandleFunc("GET /socket", func(w http.ResponseWriter, r *http.Request) {
		nc, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		entered <- r.URL.Path
		go func() {
			_, _ = nc.Read(make([]byte, 1))
			_ = nc.Close()
		}()
	})
	mux.HandleFunc("GET /asks", func(http.ResponseWriter, *http.Request) {})
	s := &http.Server{Handler: mux, ConnContext: table.Accept, ConnState: table.Changed, ReadHeaderTimeout: maxWait}
	served := make(chan error, 1)
	go func() { served <- s.Serve(table.Listen(l)) }()
	defer func() {
		release()
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	}()
	send := func(head string) net.Conn {
		nc, err := net.DialTimeout("tcp", l.Addr().String(), maxWait)
		require.NoError(t, err)
		t.Cleanup(func() { _ = nc.Close() })
		require.NoError(t, nc.SetDeadline(time.Now().Add(maxWait)))
		_, err = io.WriteString(nc, head+" HTTP/1.1\r\nHost: here\r\n")
		require.NoError(t, err)
		return nc
	}
	for range 10 {
		for head, rest := range map[string]string{
			"GET /waits": "\r\n", "GET /client": "\r\n", "GET /socket": "\r\n", "POST /body": "Content-Length: 10\r\n\r\nhalf",
		} {
			_, err := io.WriteString(send(head), rest)
			require.NoError(t, err)
			select {
			case <-entered:
			case <-ctx.Done():
				require.FailNow(t, "the request was not handled", head)
			}
		}
		nc := send("GET /asks")
		in := bufio.NewReader(nc)
		for range 3 { // each request on the connection
			_, err := io.WriteString(nc, "\r\n")
			require.NoError(t, err)
			resp, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode)
			_, err = io.WriteString(nc, "GET /asks HTTP/1.1\r\nHost: here\r\n")
			require.NoError(t, err)
		}
	}
}
