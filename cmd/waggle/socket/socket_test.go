package socket

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

func TestFailuresSayWhatToDo(t *testing.T) {
	plain := errors.New("why")
	for want, err := range map[string]error{
		"the server refused the connection (HTTP 401 Unauthorized); give an API key or token with --token or WAGGLE_TOKEN": &link.RefusedError{Status: 401},
		"the server refused the connection (HTTP 404 Not Found); check the path of --url and the session":                  &link.RefusedError{Status: 404},
		"the server refused the connection (HTTP 403 Forbidden)":                                                           &link.RefusedError{Status: 403},
		"the server closed the connection: bye (4404)":                                                                     &link.ClosedError{Code: 4404, Reason: "bye"},
		"the server did not come back: why":                                                                                &link.AwayError{For: time.Minute, Err: plain},
		"connect to ws://h/ws: why":                                                                                        &link.DialError{Address: "ws://h/ws", Err: plain},
		`no server answers at ws://h/ws; start one with "waggle up" (make run), or name another with --url`:                &link.DialError{Address: "ws://h/ws", Err: syscall.ECONNREFUSED},
		"why": plain,
	} {
		require.EqualError(t, Explain(err), want)
	}
	require.EqualError(t, Answered(&waggle.Error{Code: "X\x1b[2J", Message: "no\x1b[2J", Status: 401}), "no [X] (--token or WAGGLE_TOKEN)")
	require.EqualError(t, Answered(&link.DialError{Address: "http://h", Err: plain}), "connect to http://h: why")
	require.NoError(t, Explain(nil))
}

func TestReadable(t *testing.T) {
	for address, want := range map[string]bool{
		"ws://127.0.0.1:9000/ws": false, "ws://localhost:9000/ws": false, "ws://[::1]:9000/ws": false, "wss://waggle.example/ws": false,
		"ws://waggle.example/ws": true, "ws://10.0.0.7:9000/ws": true, "http://192.168.1.4": true, "ws://localhost.example/ws": true, "%": false,
	} {
		require.Equal(t, want, Readable(address), address)
	}
}

// TestAdviceFitsTheCommand: the words for sockets do not reach people at a terminal.
func TestAdviceFitsTheCommand(t *testing.T) {
	for _, code := range []fault.Code{fault.SessionNotFound, fault.SessionClosed, fault.SessionDeleted} {
		of := fault.Lookup(code)
		text := Answered(&waggle.Error{Status: of.Status, Code: string(code), Message: of.Message}).Error()
		require.NotContains(t, text, "Connect without")
		require.Contains(t, text, "["+string(code)+"]")
	}
	require.Equal(t, "no [X]", Answered(&waggle.Error{Status: 400, Code: "X", Message: "no"}).Error())
}
