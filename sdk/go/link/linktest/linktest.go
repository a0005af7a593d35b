// Package linktest plays a gateway's sockets to clients under test: one script a
// connection.
package linktest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// maxWait bounds a script, on a busy machine, too.
const maxWait = time.Minute

// Conn is the server's end of a connection. Ctx ends with its script.
type Conn struct {
	*websocket.Conn
	Ctx     context.Context //nolint:containedctx // of the connection
	Request *http.Request
}

// Serve runs one script per connection, in order, each with what peer makes of the
// connection, and then refuses. It returns the URL of the server, without a path.
func Serve[P any](t testing.TB, peer func(Conn) P, scripts ...func(P)) string {
	t.Helper()
	next := make(chan func(P), len(scripts))
	for _, s := range scripts {
		next <- s
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case script := <-next:
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Errorf("accept: %v", err)
				return
			}
			defer func() { _ = conn.CloseNow() }()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), maxWait)
			defer cancel()
			script(peer(Conn{conn, ctx, r}))
		default:
			http.Error(w, "no more scripts", http.StatusNotFound)
		}
	}))
	t.Cleanup(srv.Close)
	return "ws" + strings.TrimPrefix(srv.URL, "http")
}
