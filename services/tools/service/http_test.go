package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// endpoint is a streamable HTTP server that a test can stop and restart at its address.
type endpoint struct {
	stateless bool
	around    func(http.Handler) http.Handler                 // a handler before the server; nil = none
	number    func(context.Context, net.Conn) context.Context // of connections, as http.Server has it; nil = none

	addr  string
	front atomic.Pointer[http.HandlerFunc] // answers before the server, if set
	srv   *http.Server
	all   []*mcp.Server
	quit  chan struct{} // ends every waiting tool
	calls atomic.Int64  // calls of the tool "effect"
	ends  atomic.Int64  // calls of the tool "wait" that were stopped

	aborted atomic.Int64 // requests that the client closed
}

func (m *endpoint) up(t testing.TB, stateless bool) {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	m.all = append(m.all, s)
	add := func(name string, hints *mcp.ToolAnnotations, f func(context.Context) (string, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Annotations: hints},
			func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				text, err := f(ctx)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
			})
	}
	add("effect", nil, func(context.Context) (string, error) { return fmt.Sprint(m.calls.Add(1)), nil })
	add("wait", nil, func(ctx context.Context) (string, error) {
		m.calls.Add(1)
		select {
		case <-ctx.Done():
			m.ends.Add(1)
		case <-m.quit:
		}
		return "", ctx.Err()
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: stateless, JSONResponse: stateless})
	var served http.Handler = h
	if m.around != nil {
		served = m.around(h)
	}
	m.listen(t, func(w http.ResponseWriter, req *http.Request) {
		if f := m.front.Load(); f != nil {
			(*f)(w, req)
			return
		}
		defer context.AfterFunc(req.Context(), func() { m.aborted.Add(1) })()
		served.ServeHTTP(w, req)
	})
}

func (m *endpoint) listen(t testing.TB, h http.HandlerFunc) {
	t.Helper()
	if m.addr == "" {
		m.addr = freeport.Addr(t)
	}
	var l net.Listener
	require.Eventually(t, func() (ok bool) {
		var err error
		l, err = net.Listen("tcp", m.addr)
		return err == nil
	}, maxWait, 10*time.Millisecond)
	srv := &http.Server{Handler: h, ReadHeaderTimeout: maxWait, ConnContext: m.number}
	m.srv = srv
	go func() { _ = srv.Serve(l) }()
}

// end stops all parts of the server. It runs after the service has stopped.
func (m *endpoint) end() {
	close(m.quit)
	m.down()
	for _, s := range m.all {
		for ss := range s.Sessions() {
			_ = ss.Close()
		}
	}
}

// down cuts every connection, running calls included.
func (m *endpoint) down() { _ = m.srv.Close() }

func (m *endpoint) answer(h http.HandlerFunc) {
	if h == nil {
		m.front.Store(nil)
		return
	}
	m.front.Store(&h)
}

func (m *endpoint) config() mcpservers.Config {
	return mcpservers.Config{Name: "remote", URL: "http://" + m.addr + "/mcp", Headers: map[string]string{"X-Key": "secret"}}
}

// Secret parts of the address reach the server, and neither errors nor logs.
func TestHTTPAddressesAreNotTold(t *testing.T) {
	m := &endpoint{stateless: true, quit: make(chan struct{})}
	t.Cleanup(m.end)
	m.up(t, true)
	var log lockedBuffer
	cfg := m.config()
	cfg.URL = "http://someone:canary1@" + m.addr + "/mcp?key=canary2"
	svc, err := service.New(unasked(service.Config{Servers: []mcpservers.Config{cfg}}), service.Deps{Logger: zerolog.New(&log)})
	require.NoError(t, err)
	t.Cleanup(svc.Stop)
	require.NoError(t, svc.Start(t.Context()))
	r := &rig{Caller: svc}
	r.await(t, "remote_effect")
	seen := make(chan string, 100)
	m.answer(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		seen <- user + ":" + password + "?" + req.URL.RawQuery
		http.Error(w, "no", http.StatusNotFound)
	})
	var c tools.Call
	for timeout := time.Second; len(seen) == 0; timeout *= 2 { // on a busy machine it may be over before the request
		c = newCall(t, "remote_effect", nil)
		c.Timeout = timeout
		_, err = r.Call(t.Context(), c)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "canary")
	}
	require.Equal(t, "someone:canary1?key=canary2", <-seen)
	m.down()
	c.ID = "again"
	_, err = r.Call(t.Context(), c)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "canary")
	svc.Stop()
	require.NotEmpty(t, log.String())
	require.NotContains(t, log.String(), "canary")
}

// lockedBuffer collects a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestHTTP(t *testing.T) {
	for name, stateless := range map[string]bool{"stateful": false, "stateless": true} {
		for what, test := range map[string]func(*testing.T, *endpoint, *rig){
			"restart":        httpRestart,
			"cut off":        httpCut,
			"cancel":         httpCancel,
			"turned away":    httpTurnedAway,
			"too much":       httpTooMuch,
			"other host":     httpOtherHost,
			"broken answers": httpBroken,
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				m := &endpoint{stateless: stateless, quit: make(chan struct{})}
				t.Cleanup(m.end)
				m.up(t, stateless)
				r := start(t, service.Config{Servers: []mcpservers.Config{m.config()}})
				r.await(t, "remote_effect")
				require.Equal(t, "1", r.call(t, "remote_effect", nil))
				test(t, m, r)
			})
		}
	}
}

// After a restart calls work again, and none runs twice.
func httpRestart(t *testing.T, m *endpoint, r *rig) {
	for i := range 3 {
		m.down()
		var err error
		for timeout := 500 * time.Millisecond; ; timeout *= 2 {
			c := newCall(t, "remote_effect", nil)
			c.Timeout = timeout
			// Lost, if the service had not noticed the end of the connection.
			if _, err = r.Call(t.Context(), c); !errors.Is(err, fault.New(fault.ToolTimeout)) {
				break // on a busy machine the time may be over before that
			}
		}
		require.True(t, errors.Is(err, fault.New(fault.ToolsDown)) || errors.Is(err, fault.New(fault.ToolLost)), "%v", err)
		m.up(t, m.stateless)
		require.Equal(t, fmt.Sprint(i+2), r.call(t, "remote_effect", nil))
	}
	// Another kind of server takes its place.
	m.down()
	m.up(t, !m.stateless)
	require.Eventually(t, func() bool {
		_, err := r.Call(t.Context(), newCall(t, "remote_effect", nil))
		return err == nil
	}, maxWait, 10*time.Millisecond)
}

// A call whose connection is cut may have had its effect.
func httpCut(t *testing.T, m *endpoint, r *rig) {
	go func() {
		for m.calls.Load() < 2 {
			runtime.Gosched()
		}
		m.down()
	}()
	r.fails(t, newCall(t, "remote_wait", nil), fault.ToolLost)
	require.EqualValues(t, 2, m.calls.Load())
}

func httpCancel(t *testing.T, m *endpoint, r *rig) {
	// On a busy machine the time of a call may be over before the tool begins.
	for timeout := 500 * time.Millisecond; m.calls.Load() == 1; timeout *= 2 {
		c := newCall(t, "remote_wait", nil)
		c.Timeout = timeout
		r.fails(t, c, fault.ToolTimeout)
	}
	// A stateless server of the SDK does not stop its tool when the client closes the request.
	require.Eventually(t, func() bool { return m.ends.Load() > 0 || m.aborted.Load() > 0 }, maxWait, 10*time.Millisecond)
	require.Equal(t, fmt.Sprint(m.calls.Load()+1), r.call(t, "remote_effect", nil))
}

func httpTurnedAway(t *testing.T, m *endpoint, r *rig) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusUnauthorized} {
		r.await(t, "remote_effect")
		m.answer(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) })
		var err error
		for timeout := time.Second; ; timeout *= 2 {
			c := newCall(t, "remote_effect", nil)
			c.Timeout = timeout
			if _, err = r.Call(t.Context(), c); !errors.Is(err, fault.New(fault.ToolTimeout)) {
				break // on a busy machine the time may be over before the server answers, and then the tool may have run
			}
		}
		isFault(t, err, fault.ToolsDown)
		m.answer(nil)
	}
	require.Equal(t, "2", r.call(t, "remote_effect", nil))
}

// An endless answer ends the call, not the process.
func httpTooMuch(t *testing.T, m *endpoint, r *rig) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		m.answer(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(`data: {"jsonrpc":"2.0","id":"`))
			for block := make([]byte, 1<<20); req.Context().Err() == nil; {
				_, _ = w.Write(block)
			}
		})
		r.fails(t, newCall(t, "remote_effect", nil), fault.ToolLost)
		m.answer(nil)
		require.NotEmpty(t, r.call(t, "remote_effect", nil))
	}
}

// The client refuses redirects to another host, which would receive the headers.
func httpOtherHost(t *testing.T, m *endpoint, r *rig) {
	var seen atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer other.Close()
	var keys atomic.Int64
	m.answer(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("X-Key") == "secret" {
			keys.Add(1)
		}
		http.Redirect(w, req, other.URL, http.StatusTemporaryRedirect)
	})
	for timeout := time.Second; keys.Load() == 0; timeout *= 2 { // on a busy machine it may be over before the request
		c := newCall(t, "remote_effect", nil)
		c.Timeout = timeout
		_, err := r.Call(t.Context(), c)
		require.Error(t, err)
	}
	require.Zero(t, seen.Load())
}

func httpBroken(t *testing.T, m *endpoint, r *rig) {
	for _, body := range []string{"{", `{"jsonrpc":"2.0","id":"x","result":{}}`} {
		for _, kind := range []string{"application/json", "text/event-stream", "text/html"} {
			m.answer(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				if kind == "text/event-stream" {
					body = "data: " + body + "\n\n"
				}
				_, _ = w.Write([]byte(body))
			})
			c := newCall(t, "remote_effect", nil)
			c.Timeout = 300 * time.Millisecond
			_, err := r.Call(t.Context(), c)
			require.Error(t, err)
		}
	}
	m.answer(nil)
	// A handshake with a wrong answer has to reach its time limit first.
	require.Eventually(t, func() bool {
		_, err := r.Call(t.Context(), newCall(t, "remote_effect", nil))
		return err == nil
	}, maxWait, 10*time.Millisecond)
}

// TestTheFirstQuestionFindsTheTools of servers that answer at once, and does not wait for one that cannot be reached.
func TestTheFirstQuestionFindsTheTools(t *testing.T) {
	t.Parallel()
	m := &endpoint{quit: make(chan struct{})}
	m.up(t, true)
	t.Cleanup(m.end)
	r := start(t, service.Config{FirstMaxWait: maxWait, Servers: []mcpservers.Config{
		{Name: "down", URL: "http://" + freeport.Addr(t) + "/mcp"},
		{Name: "up", URL: "http://" + m.addr},
	}})
	list, err := r.List(t.Context(), id.DefaultTenant)
	require.NoError(t, err)
	var names []string
	for _, o := range list {
		names = append(names, o.Name)
	}
	require.Contains(t, names, "up_effect")
}
