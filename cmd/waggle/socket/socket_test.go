package socket

import (
	"context"
	"errors"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

func TestFinal(t *testing.T) {
	for code, want := range map[websocket.StatusCode]bool{
		websocket.StatusServiceRestart: false, websocket.StatusGoingAway: false, websocket.StatusTryAgainLater: false,
		websocket.StatusPolicyViolation: false, 4000: false, 4001: false, 4399: false,
		4401: true, 4403: true, 4404: true, 4422: true, websocket.StatusMessageTooBig: true, websocket.StatusProtocolError: true,
	} {
		require.Equal(t, want, final(websocket.CloseError{Code: code}, false), code)
	}
	require.False(t, final(context.DeadlineExceeded, false), "a lost connection (1006) is made again")
	require.True(t, final(Pointless(errors.New("no such session")), false))
	require.True(t, final(context.DeadlineExceeded, true), "nobody was ever there")
}

func TestTargetsAreWebSockets(t *testing.T) {
	got, err := Target("wss://h:1/ws?a=1", map[string]string{"b": "x y"})
	require.NoError(t, err)
	require.Equal(t, "wss://h:1/ws?a=1&b=x+y", got)
	require.Equal(t, "wss://h:1/ws", bare(got))
	for _, bad := range []string{"http://h/ws", "h:1", "ws://", ":"} {
		_, err := Target(bad, nil)
		require.ErrorContains(t, err, "check the path of --url", bad)
	}
}
