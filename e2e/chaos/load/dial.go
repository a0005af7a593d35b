package load

import (
	"context"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

const (
	// DialTimeout bounds one attempt to connect.
	DialTimeout = 5 * time.Second
	frameLimit  = 4 << 20
)

func dialSocket(ctx context.Context, addr, path, key string) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+addr+path, &websocket.DialOptions{ //nolint:bodyclose // closed by the library
		HTTPHeader: http.Header{"Authorization": {"Bearer " + key}},
	})
	if err == nil {
		conn.SetReadLimit(frameLimit)
	}
	return conn, err
}
