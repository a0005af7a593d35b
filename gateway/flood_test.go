package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
)

// Messages over the rate are refused one by one, and the socket goes on when the
// client does as it is told.
func TestMessagesOverTheRate(t *testing.T) {
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.MessageRate, c.MessageBurst = 0.001, 6 })
	c, session := fresh(r)
	for range 8 {
		c.write(message("hello"))
	}
	for range 3 {
		c.refused("RATE_LIMITED")
	}
	for range 5 {
		r.nextCommand(session)
	}
	c.write(frame(fin|opPing, []byte("alive")))
	op, payload, err := c.read()
	require.NoError(t, err)
	require.Equal(t, "alive", string(payload))
	require.EqualValues(t, opPong, op)
	require.Empty(t, r.inbox(session))
}

// flood writes as fast as it can until the gateway has had enough, and returns how
// much it got rid of and the close code.
func flood(c *client, what []byte, limit int) (sent, code int) {
	done := make(chan int, 1)
	go func() {
		n := 0
		for n < limit && c.try(what) == nil {
			n++
		}
		done <- n
	}()
	for {
		_, _, err := c.read()
		if closed, ok := errors.AsType[closedError](err); ok {
			code = closed.code
		}
		if err != nil {
			_ = c.Conn.Close()
			return <-done, code
		}
	}
}

func TestFloods(t *testing.T) {
	// A message within the rate forgives those before it: at this one no machine refuses them too slowly.
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.MessageRate = 0.1 })
	check := r.bystander()
	settled := r.settled()
	for _, f := range []struct {
		name string
		what []byte
	}{
		{"tiny messages", bytes.Repeat(text("1"), 1000)},
		{"pings", bytes.Repeat(frame(fin|opPing, []byte("x")), 1000)},
		{"pongs", bytes.Repeat(frame(fin|opPong, nil), 1000)},
		{"valid messages", bytes.Repeat(message("again"), 1000)},
		{"bad messages", bytes.Repeat(text("{"), 1000)},
	} {
		t.Run(f.name, func(t *testing.T) {
			c, _ := fresh(r)
			sent, code := flood(c, f.what, 1000)
			require.Equal(t, 1008, code)
			t.Logf("%d thousand of a million were sent", sent)
			check()
		})
	}
	settled()
}

// Handshakes without end, sockets that are dropped at once: nothing stays behind.
func TestManyDials(t *testing.T) {
	r := start(t)
	check := r.bystander()
	settled := r.settled()
	const dialers, each = 8, 50
	var wg sync.WaitGroup
	for range dialers {
		wg.Go(func() {
			for i := range each {
				nc, err := net.Dial("tcp", r.addr)
				if err != nil {
					t.Error(err)
					return
				}
				switch i % 4 {
				case 0: // nothing
				case 1:
					_, _ = io.WriteString(nc, "GET /ws HTTP/1.1\r\nHost: localhost\r\n")
				case 2:
					_, _ = io.WriteString(nc, "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
						"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
				case 3:
					_, _ = nc.Write(bytes.Repeat([]byte{0xff}, 1000))
				}
				if tcp, ok := nc.(*net.TCPConn); ok && i%2 == 0 {
					_ = tcp.SetLinger(0)
				}
				_ = nc.Close()
			}
		})
	}
	wg.Wait()
	check()
	settled()
}

// quick is a gateway with little patience for messages.
func quick(c *gateway.Config, _ *gateway.Deps) { c.MessageTimeout = 200 * time.Millisecond }

// dribble sends p byte by byte, again and again, or nothing if p is empty, until the gateway
// has closed the socket or hung up. It returns the close code.
func dribble(c *client, p []byte) (code int) {
	ended := make(chan int, 1)
	go func() {
		for {
			_, _, err := c.read()
			if closed, ok := errors.AsType[closedError](err); ok {
				ended <- closed.code
				return
			}
			if err != nil {
				ended <- 0
				return
			}
		}
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case code := <-ended:
			_ = c.Conn.Close()
			return code
		case <-tick.C:
			if len(p) > 0 {
				_, _ = c.Conn.Write(p[i%len(p) : i%len(p)+1])
			}
		}
	}
}

func TestSlowHandshakes(t *testing.T) {
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.HandshakeTimeout = 2 * time.Second }) // the bystander's own is quicker
	check := r.bystander()
	settled := r.settled()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			c := r.tcp()
			defer func() { _ = c.Conn.Close() }()
			header := "GET /ws HTTP/1.1\r\nHost: localhost\r\n"
			if i%3 == 1 {
				c.write([]byte(header))
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = io.ReadAll(c.br)
			}()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				case <-tick.C:
					if i%3 == 2 { // one header that never ends
						_, _ = io.WriteString(c.Conn, (header + "X-A: " + strings.Repeat("a", 10_000))[n:n+1])
					}
				}
			}
		})
	}
	wg.Wait()
	check()
	settled()
}

func TestSlowMessages(t *testing.T) {
	r := start(t, quick)
	check := r.bystander()
	settled := r.settled()
	long := frame(opText, bytes.Repeat([]byte(" "), 4000))
	for _, f := range []struct {
		name  string
		begin []byte // at once
		then  []byte // byte by byte
	}{
		{"within a frame", nil, long},
		{"within a header", []byte{fin | opText}, nil},
		{"within a long header", []byte{fin | opText, 0x80 | 127, 0, 0, 0}, nil},
		{"between fragments", frame(opText, []byte("{")), nil},
		{"many fragments", frame(opText, []byte("{")), bytes.Repeat(frame(opContinuation, []byte(" ")), 500)},
		{"pings between fragments", frame(opText, []byte("{")), bytes.Repeat(frame(fin|opPing, nil), 500)},
		{"within a ping", []byte{fin | opPing, 0x80 | 5}, nil},
		{"within a close", []byte{fin | opClose}, nil},
	} {
		t.Run(f.name, func(t *testing.T) {
			c := r.dial("session=" + r.session("default").Entity.String())
			c.ready()
			c.write(f.begin)
			require.Equal(t, 1008, dribble(c, f.then))
			check()
		})
	}
	settled()
}

// A message that the gateway itself delays does not count as slow: frames wait in the socket
// until services answer.
func TestWaitingIsNotSlow(t *testing.T) {
	t.Parallel()
	r := prepare(t, sharedBus(t))
	r.mute = true // sessions take a while to be made
	r.srv = r.server(quick)
	r.serve()
	c := r.dial("")
	session := c.ready()
	for i := range 3 {
		c.write(message(fmt.Sprint(i)))
	}
	quiet(t, c, time.Second)
	open := r.anyCommand()
	require.Equal(t, session, open.Key.String())
	require.Empty(t, r.inbox(session), "no message comes before the session")
	require.NoError(t, r.make(open))
	for i := range 3 {
		require.JSONEq(t, fmt.Sprintf(`{"content":"%d"}`, i), string(r.nextCommand(session).Data))
	}
	c.leave()
}

// quiet fails if anything comes within the time.
func quiet(t testing.TB, c *client, d time.Duration) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(d)))
	_, err := c.br.Peek(1)
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
}
