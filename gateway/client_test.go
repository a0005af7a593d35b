package gateway_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Opcodes, and the FIN bit that goes with them in the first byte of a frame.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
	fin            = 0x80
)

// client speaks WebSocket over a bare connection: it can say anything, also what is
// not allowed.
type client struct {
	t testing.TB
	net.Conn
	br     *bufio.Reader
	chop   *rand.Rand  // writes go out in random pieces
	header http.Header // of the handshake's answer
}

// dial opens a socket with the query, for example "session=x&after=1".
func (r *rig) dial(query string, header ...string) *client {
	r.t.Helper()
	c, status, body := r.handshake(query, header...)
	require.Equal(r.t, http.StatusSwitchingProtocols, status, "%s", body)
	return c
}

// handshake asks for a socket and returns the answer's status and body.
func (r *rig) handshake(query string, header ...string) (*client, int, string) {
	r.t.Helper()
	return r.handshakeAt(r.path, query, header...)
}

// handshakeAt is handshake for a path.
func (r *rig) handshakeAt(path, query string, header ...string) (*client, int, string) {
	r.t.Helper()
	c := r.tcp()
	request := "GET " + path + "?" + query + " HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	host := "Host: " + r.addr + "\r\n"
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			host = ""
		}
		request += header[i] + ": " + header[i+1] + "\r\n"
	}
	c.write([]byte(request + host + "\r\n"))
	status, body := c.answer()
	if status != http.StatusSwitchingProtocols {
		_ = c.Conn.Close()
	}
	return c, status, body
}

// tcp opens a bare connection.
func (r *rig) tcp() *client {
	r.t.Helper()
	nc, err := net.DialTimeout("tcp", r.addr, maxWait)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = nc.Close() })
	require.NoError(r.t, nc.SetDeadline(time.Now().Add(maxWait)))
	return &client{t: r.t, Conn: nc, br: bufio.NewReader(nc)}
}

// answer reads an HTTP answer.
func (c *client) answer() (status int, body string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.br, &http.Request{Method: http.MethodGet})
	require.NoError(c.t, err)
	c.header = res.Header
	if res.StatusCode != http.StatusSwitchingProtocols {
		b, err := io.ReadAll(res.Body)
		require.NoError(c.t, err)
		body = string(b)
	}
	_ = res.Body.Close()
	return res.StatusCode, body
}

// write sends bytes, in random pieces if the client chops.
func (c *client) write(p []byte) {
	c.t.Helper()
	require.NoError(c.t, c.try(p))
}

// try is write for a peer that may have hung up.
func (c *client) try(p []byte) error {
	for len(p) > 0 {
		n := len(p)
		if c.chop != nil {
			n = 1 + c.chop.IntN(min(n, 1+c.chop.IntN(n)))
		}
		if _, err := c.Conn.Write(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// frame returns a frame as a client has to send it: masked.
func frame(first byte, payload []byte) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n <= 125:
		b = append(b, 0x80|byte(n))
	case n <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	mask := [4]byte{0x37, 0xfa, 0x21, 0x3d}
	b = append(b, mask[:]...)
	for i, x := range payload {
		b = append(b, x^mask[i%4])
	}
	return b
}

// text returns a text frame.
func text(s string) []byte { return frame(fin|opText, []byte(s)) }

// message returns a user_message.
func message(s string) []byte {
	b, _ := json.Marshal(map[string]string{"type": "user_message", "content": s})
	return frame(fin|opText, b)
}

// errHungUp says that the connection ended without a close frame.
var errHungUp = errors.New("the server hung up without a close frame")

// closedError is a close frame.
type closedError struct {
	code   int
	reason string
}

func (e closedError) Error() string { return fmt.Sprintf("closed with %d (%s)", e.code, e.reason) }

// read returns the next frame. It checks that the server obeys the protocol: final,
// unmasked, no reserved bits, the shortest length.
func (c *client) read() (op byte, payload []byte, err error) {
	var h [8]byte
	require.NoError(c.t, c.SetDeadline(time.Now().Add(maxWait)))
	if _, err = io.ReadFull(c.br, h[:2]); err != nil {
		return 0, nil, errHungUp
	}
	require.Zero(c.t, h[0]&0x70, "reserved bits")
	require.NotZero(c.t, h[0]&fin, "a frame that is not final")
	require.Zero(c.t, h[1]&0x80, "a masked frame")
	op, n := h[0]&0xf, uint64(h[1])
	switch n {
	case 126:
		_, err = io.ReadFull(c.br, h[:2])
		n = uint64(binary.BigEndian.Uint16(h[:]))
		require.Greater(c.t, n, uint64(125))
	case 127:
		_, err = io.ReadFull(c.br, h[:])
		n = binary.BigEndian.Uint64(h[:])
		require.Greater(c.t, n, uint64(0xffff))
	}
	if err != nil {
		return 0, nil, errHungUp
	}
	payload = make([]byte, n)
	if _, err = io.ReadFull(c.br, payload); err != nil {
		return 0, nil, errHungUp
	}
	if op == opClose {
		if n == 0 {
			return op, nil, closedError{code: 1005}
		}
		return op, payload, closedError{int(binary.BigEndian.Uint16(payload)), string(payload[2:])}
	}
	return op, payload, nil
}

// shown is a frame of the dialect.
type shown struct {
	Type string `json:"type"`
	Seq  uint64 `json:"seq"`
	Data struct {
		Message   string `json:"message"`
		Code      string `json:"code"`
		Field     string `json:"field"`
		SessionID string `json:"session_id"`
		LastSeq   uint64 `json:"last_seq"`
		FirstSeq  uint64 `json:"first_seq"`
		Text      string `json:"text"`
	} `json:"data"`
}

// next returns the next frame of the dialect. Pings of the server are answered.
func (c *client) next() (shown, error) {
	c.t.Helper()
	var s shown
	payload, err := c.text()
	if err == nil {
		require.NoError(c.t, json.Unmarshal(payload, &s), "%s", payload)
	}
	return s, err
}

// text returns the next text frame. Pings of the server are answered.
func (c *client) text() ([]byte, error) {
	c.t.Helper()
	for {
		op, payload, err := c.read()
		switch {
		case err != nil:
			return nil, err
		case op == opPing:
			c.write(frame(fin|opPong, payload))
		case op == opText:
			return payload, nil
		}
	}
}

// must returns the next frame, which has to be of the type.
func (c *client) must(kind string) shown {
	c.t.Helper()
	s, err := c.next()
	require.NoError(c.t, err, "instead of %s", kind)
	require.Equal(c.t, kind, s.Type, "%+v", s)
	return s
}

// ready reads the greeting and returns the session's id.
func (c *client) ready() string {
	c.t.Helper()
	c.must("agent_start")
	return c.must("agent_ready").Data.SessionID
}

// refused reads the error frame of a message that was not accepted.
func (c *client) refused(code string) shown {
	c.t.Helper()
	s := c.must("error")
	require.Equal(c.t, code, s.Data.Code, "%+v", s)
	return s
}

// closes reads until the server has closed the socket, with this code.
func (c *client) closes(code int) {
	c.t.Helper()
	for {
		_, _, err := c.read()
		if err == nil {
			continue
		}
		var closed closedError
		require.ErrorAs(c.t, err, &closed, "expected close code %d", code)
		require.Equal(c.t, code, closed.code, closed.reason)
		break
	}
	_ = c.try(frame(fin|opClose, binary.BigEndian.AppendUint16(nil, uint16(code))))
	_, err := c.br.ReadByte()
	require.Error(c.t, err, "data after a close frame")
	_ = c.Conn.Close()
}

// leave closes the socket as a client should.
func (c *client) leave() {
	c.t.Helper()
	c.write(frame(fin|opClose, []byte{0x03, 0xe8}))
	c.closes(1000)
}

// bystander is a client that is not concerned: it sees its session continue while
// something else happens.
func (r *rig) bystander() (check func()) {
	r.t.Helper()
	l := r.session("default", "before")
	c := r.dial("session=" + l.Entity.String())
	c.ready()
	n := 0
	return func() {
		r.t.Helper()
		n++
		want := fmt.Sprintf("still here %d", n)
		r.answers(l, want)
		require.Equal(r.t, want, c.must("agent_response").Data.Message)
		c.write(message("hello"))
		require.True(r.t, strings.Contains(string(r.nextCommand(l.Entity.String()).Data), "hello"))
	}
}
