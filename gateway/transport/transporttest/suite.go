// Package transporttest is the suite that every transport passes.
package transporttest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxWait bounds every wait: machines may be busy.
const maxWait = 60 * time.Second

// Bound is the bound in bytes of the queue of a Link's transport.
const Bound = 64 << 10

// Link is a transport with the client at its other end.
type Link struct {
	transport.Transport

	// Room gets a value when the queue has room again; nil for transports that write
	// nothing before their end.
	Room <-chan struct{}
	// Read has the client read up to the end and returns the messages, and the code that
	// the end says; empty if it says none. Nothing is read before.
	Read func() (messages []string, code string)
	// Cut has the client go away.
	Cut func()
}

// Run runs the suite. open returns a link whose queue has Bound.
func Run(t *testing.T, open func(t *testing.T) *Link) {
	for name, test := range map[string]func(*testing.T, *Link){
		"order":             order,
		"bound":             bound,
		"a large message":   large,
		"an end":            end,
		"the client goes":   gone,
		"many send at once": together,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func message(i, size int) *transport.Message {
	return transport.New(fmt.Appendf(nil, `"%06d%s"`, i, strings.Repeat("x", max(0, size-8))), "test", transport.Position{Seq: uint64(i + 1)}) //nolint:gosec // a test's count
}

// read has the client read, and waits for the end of the transport.
func (l *Link) read(t *testing.T) (messages []string, code string) {
	t.Helper()
	messages, code = l.Read()
	l.over(t)
	return messages, code
}

func (l *Link) over(t *testing.T) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(maxWait):
		require.FailNow(t, "the transport is not over")
	}
}

// order: messages arrive as they were sent, once, and a final one ends a response.
func order(t *testing.T, l *Link) {
	var want []string
	for i := range 500 {
		m := message(i, 100)
		want = append(want, string(m.Data))
		if i%5 == 0 {
			require.True(t, l.Force(m))
		} else {
			require.Equal(t, 1, l.Send(m))
		}
	}
	last := transport.Text([]byte(`"last"`))
	last.Final = true
	require.Equal(t, 1, l.Send(last))
	l.End(fault.New(fault.Draining)) // of a response that has ended, too late
	got, _ := l.read(t)
	require.Equal(t, append(want, `"last"`), got)
}

// bound: a client that reads nothing holds up no sender, the queue accepts no more than its
// bound, Force a little more, and a client that reads again makes room.
func bound(t *testing.T, l *Link) {
	sent, full := 0, 0
	for i := 0; full < 3 && i < 10_000; i++ { // the network below takes some, and then does not
		if l.Send(message(sent, 8<<10)) == 1 {
			sent, full = sent+1, 0
			continue
		}
		if full++; l.Room == nil {
			break
		}
		select {
		case <-l.Room:
			full = 0
		case <-time.After(100 * time.Millisecond):
		}
	}
	require.Positive(t, full, "the queue is not bounded")
	forced := 0
	for l.Force(message(sent+forced, 8<<10)) {
		forced++
		require.Less(t, forced, 1000, "Force is not bounded")
	}
	require.GreaterOrEqual(t, forced, 4, "a last word has room")
	require.Zero(t, l.Send(message(0, 8<<10)), "Force has taken no other connection's room")
	if l.Room == nil {
		l.End(fault.New(fault.MessageTooBig))
		_, code := l.read(t)
		require.Equal(t, string(fault.MessageTooBig), code)
		return
	}
	got := make(chan []string, 1)
	go func() {
		messages, _ := l.Read()
		got <- messages
	}()
	select {
	case <-l.Room:
	case <-time.After(maxWait):
		require.FailNow(t, "the room is not free again")
	}
	require.Equal(t, 1, l.Send(message(sent+forced, 100)))
	l.End(fault.New(fault.Draining))
	messages := <-got
	require.Len(t, messages, sent+forced+1)
	for i, m := range messages {
		require.True(t, strings.HasPrefix(m, fmt.Sprintf(`"%06d`, i)), "message %d: %.20s", i, m)
	}
	l.over(t)
}

// large: an empty queue accepts a message beyond its bound.
func large(t *testing.T, l *Link) {
	m := message(0, 3*Bound)
	m.Final = true
	require.Equal(t, 1, l.Send(m))
	l.End(fault.New(fault.Draining))
	got, _ := l.read(t)
	require.Equal(t, []string{string(m.Data)}, got)
}

// end: an end is said, the first one wins, and nothing is accepted after it.
func end(t *testing.T, l *Link) {
	l.End(fault.New(fault.SessionDeleted))
	l.End(fault.New(fault.Draining))
	require.Zero(t, l.Send(message(0, 100)))
	require.False(t, l.Force(message(0, 100)))
	got, code := l.read(t)
	require.Empty(t, got)
	require.Equal(t, string(fault.SessionDeleted), code)
}

// gone: a client that goes away ends the transport, and sending to it harms nothing.
func gone(t *testing.T, l *Link) {
	require.Equal(t, 1, l.Send(message(0, 100)))
	l.Cut()
	l.over(t)
	require.Zero(t, l.Send(message(1, 100)))
	require.False(t, l.Force(message(1, 100)))
	l.End(fault.New(fault.Draining))
}

// together: concurrent senders keep their own order, and share messages with others.
func together(t *testing.T, l *Link) {
	const senders, each = 8, 40
	done := make(chan struct{})
	for s := range senders {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range each {
				l.Force(transport.Text(fmt.Appendf(nil, `"%d.%02d"`, s, i)))
			}
		}()
	}
	for range senders {
		<-done
	}
	last := transport.Text([]byte(`"last"`))
	last.Final = true
	l.Send(last)
	l.End(fault.New(fault.Draining))
	got, _ := l.read(t)
	require.Len(t, got, senders*each+1)
	next := make([]int, senders)
	for _, m := range got[:len(got)-1] {
		var s, i int
		_, err := fmt.Sscanf(m, `"%d.%d"`, &s, &i)
		require.NoError(t, err)
		require.Equal(t, next[s], i)
		next[s]++
	}
}
