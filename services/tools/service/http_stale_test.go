package service_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// connKey is the key under which a request's context has the number of its connection.
type connKey struct{}

// aging is a server that ends each connection that is old when the next request comes over it, without an answer: as one does
// that was restarted, while the client has not noticed yet.
type aging struct {
	conns atomic.Int64
	old   atomic.Int64 // connections up to this number are old
	tools http.Handler
	meet  atomic.Pointer[sync.WaitGroup] // requests wait for each other, if set
}

func (a *aging) number(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, a.conns.Add(1))
}

func (a *aging) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if n, _ := req.Context().Value(connKey{}).(int64); n <= a.old.Load() {
		panic(http.ErrAbortHandler) // closes the connection
	}
	if m := a.meet.Load(); m != nil {
		m.Done()
		m.Wait()
	}
	a.tools.ServeHTTP(w, req)
}

// TestOneRestartLosesOneCall: the client has several connections to a server that was restarted, and none of them tells that it is
// dead before a request is sent over it. The first call is lost; the next one must not be sent over another dead connection.
func TestOneRestartLosesOneCall(t *testing.T) {
	a := &aging{}
	m := &endpoint{stateless: true, quit: make(chan struct{}), around: func(h http.Handler) http.Handler {
		a.tools = h
		return a
	}, number: a.number}
	t.Cleanup(m.end)
	m.up(t, true)
	r := start(t, service.Config{Servers: []mcpservers.Config{m.config()}})
	r.await(t, "remote_effect")
	meet := &sync.WaitGroup{}
	meet.Add(2)
	a.meet.Store(meet)
	var both sync.WaitGroup
	for range 2 {
		c := newCall(t, "remote_effect", nil)
		both.Go(func() { _, _ = r.Call(context.Background(), c) })
	}
	both.Wait()
	a.meet.Store(nil)
	require.EqualValues(t, 2, m.calls.Load())
	a.old.Store(a.conns.Load())
	_, err := r.Call(t.Context(), newCall(t, "remote_effect", nil))
	require.ErrorIs(t, err, fault.New(fault.ToolLost))
	require.Equal(t, "3", r.call(t, "remote_effect", nil))
}
