package client

import (
	"context"
	"net/http"

	"github.com/coder/websocket"
)

// maxFrame is more than any frame of the tests.
const maxFrame = 8 << 20

// dial opens a raw socket, with an API key unless it is empty. It is for tests that send bad input, or that check the
// frames of one connection.
func dial(ctx context.Context, url, key string) (*websocket.Conn, error) {
	var opt websocket.DialOptions
	if key != "" {
		opt.HTTPHeader = http.Header{"Authorization": {"Bearer " + key}}
	}
	conn, _, err := websocket.Dial(ctx, url, &opt) //nolint:bodyclose // closed by the library
	if err == nil {
		conn.SetReadLimit(maxFrame)
	}
	return conn, err
}
