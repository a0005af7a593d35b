// Package ws is the gateway's WebSocket sockets.
//
// The handshake, reading and the rules for control frames are those of
// coder/websocket. Writing is not: the frame of a message is built once, shared by every socket
// that it goes to and written by a few shard goroutines. A shard takes all that
// waits for a socket, copies it together and makes one attempt that never blocks;
// a goroutine that lives as long as the peer is behind carries on the rest. So an idle socket has one goroutine, its reader, and
// a stuck peer costs the others nothing.
//
// Nothing here has a timer of its own: one sweep over all sockets, about once a
// second, sends pings and finds peers that are silent, stuck or too slow.
package ws

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/gateway/transport"
)

// frame is a complete frame of a server: header and payload, unmasked. It is shared by
// all sockets that it was sent to and must never be modified.
type frame []byte

// Parts of a frame's header (RFC 6455, section 5.2). All our frames are final.
const (
	opText  = 0x80 | 0x1
	opClose = 0x80 | 0x8
	opPing  = 0x80 | 0x9
	opPong  = 0x80 | 0xA

	short  = 125       // longest payload whose length fits the second byte
	medium = 1<<16 - 1 // longest payload whose length takes two bytes more
)

// maxHeader is the longest header of a server's frame.
const maxHeader = 10

// maxControl is the longest control frame: header and 125 bytes.
const maxControl = 2 + short

// maxReason is what a close frame can carry besides the code.
const maxReason = short - 2

// pingFrame is the only ping that we send.
var pingFrame = []byte{opPing, 0}

// text returns the frame of a message, the same for all sockets.
func text(m *transport.Message) frame { return m.Render(transport.WebSocket, render) }

func render(m *transport.Message) []byte {
	var header [maxHeader]byte
	return m.Prefix(appendHeader(header[:0], opText, len(m.Data)))
}

func headerLen(n int) int {
	switch {
	case n <= short:
		return 2
	case n <= medium:
		return 4
	default:
		return 10
	}
}

func appendHeader(b []byte, op byte, n int) []byte {
	switch {
	case n <= short:
		return append(b, op, byte(n&0x7f))
	case n <= medium:
		return append(b, op, short+1, byte(n>>8&0xff), byte(n&0xff))
	default:
		b = append(b, op, short+2, 0, 0, 0, 0)
		return append(b, byte(n>>24&0xff), byte(n>>16&0xff), byte(n>>8&0xff), byte(n&0xff))
	}
}

// closeFrame returns the close frame for the code. A code that must not be sent
// becomes 1011, and a reason that is too long is cut at a whole character.
func closeFrame(code int, reason string) ([]byte, int) {
	if !sendable(code) {
		code = int(websocket.StatusInternalError)
	}
	if len(reason) > maxReason {
		n := maxReason
		for n > 0 && !utf8.RuneStart(reason[n]) {
			n--
		}
		reason = reason[:n]
	}
	b := appendHeader(make([]byte, 0, maxControl), opClose, 2+len(reason))
	b = append(b, byte(code>>8&0xff), byte(code&0xff))
	return append(b, reason...), code
}

// sendable reports whether a close frame may carry the code (RFC 6455, section 7.4).
func sendable(code int) bool {
	switch {
	case code >= 3000 && code <= 4999:
		return true
	case code == 1004, code == 1005, code == 1006:
		return false
	default:
		return code >= 1000 && code <= 1014
	}
}

// closeOf takes a close frame of coder's apart. The code is 1005 without
// one; ok is false when the reason, which a peer chose, is not valid UTF-8.
func closeOf(p []byte) (code int, ok bool) {
	if len(p) < 4 {
		return int(websocket.StatusNoStatusRcvd), true
	}
	return int(binary.BigEndian.Uint16(p[2:])), utf8.Valid(p[4:])
}
