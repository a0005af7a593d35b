package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
)

// Messages over the rate are refused one by one, and the socket continues when the
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

// A message that the gateway itself delays does not count as slow: frames wait in the socket
// until services answer.
func TestWaitingIsNotSlow(t *testing.T) {
	t.Parallel()
	r := prepare(t, sharedBus(t))
	r.mute = true // sessions take a while to be made
	r.srv = r.server(func(c *gateway.Config, _ *gateway.Deps) {
		c.MessageTimeout, c.PingInterval = 200*time.Millisecond, 200*time.Millisecond
	})
	r.serve()
	c := r.dial("")
	session := c.ready()
	for i := range 3 {
		c.write(message(fmt.Sprint(i)))
	}
	for range 3 { // pings last longer than a message may, and nothing else comes
		op, payload, err := c.read()
		require.NoError(t, err)
		require.EqualValues(t, opPing, op)
		c.write(frame(fin|opPong, payload))
	}
	open := r.anyCommand()
	require.Equal(t, session, open.Key.String())
	require.Empty(t, r.inbox(session), "no message comes before the session")
	require.NoError(t, r.make(open))
	for i := range 3 {
		require.JSONEq(t, fmt.Sprintf(`{"content":"%d"}`, i), string(r.nextCommand(session).Data))
	}
	c.leave()
}
