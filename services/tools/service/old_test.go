package service_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// old is a server of the older transport. A test changes what differs among real ones.
type old struct {
	script
	refuse   int    // the status of a POST to the address of the stream
	endpoint string // the address for messages; %s is that of the server
	noise    string // sent before each message, and before the endpoint
	accept   int    // the status of a message; 0 = 202

	url  string
	mu   sync.Mutex
	sent []string // requests with their keys
	out  chan string
	quit chan struct{}
}

func (o *old) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	o.mu.Lock()
	o.sent = append(o.sent, fmt.Sprintf("%s %s key=%s", req.Method, req.URL.RequestURI(), req.Header.Get("X-Key")))
	o.mu.Unlock()
	switch {
	case req.Method == http.MethodGet && req.URL.Path == "/sse":
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		endpoint := o.endpoint
		if strings.Contains(endpoint, "%s") {
			endpoint = fmt.Sprintf(endpoint, o.url)
		}
		_, _ = fmt.Fprintf(w, "%sevent: endpoint\ndata: %s\n\n", o.noise, endpoint)
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case m := <-o.out:
				_, _ = fmt.Fprintf(w, "%sevent: message\ndata: %s\n\n", o.noise, m)
			case <-req.Context().Done():
				return
			case <-o.quit:
				return
			}
		}
	case req.Method == http.MethodPost && req.URL.Path == "/sse":
		w.WriteHeader(o.refuse)
	case req.Method == http.MethodPost:
		message, _ := io.ReadAll(req.Body)
		if o.accept != 0 {
			w.WriteHeader(o.accept)
		} else {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "Accepted")
		}
		if answer := o.answer(message); answer != "" {
			select {
			case o.out <- answer:
			case <-o.quit:
			}
		}
	}
}

func (o *old) serve(t *testing.T) mcpservers.Config {
	t.Helper()
	o.out, o.quit = make(chan string), make(chan struct{})
	srv := httptest.NewServer(o)
	t.Cleanup(func() { close(o.quit); srv.Close() })
	o.url = srv.URL
	return mcpservers.Config{Name: "old", URL: srv.URL + "/sse?k=1", Headers: map[string]string{"X-Key": "secret"}}
}

// plainScript has one odd tool.
func plainScript() script {
	return script{Pages: []string{`{"tools":[{"name":"a","annotations":7}]}`}, Result: `{"content":[{"type":"text","text":"done"},{"type":"widget"}]}`}
}

// Servers of the older transport are served as they are, after a refusal that the protocol names.
func TestTheOlderTransport(t *testing.T) {
	const path = "/messages/?session_id=1"
	for name, o := range map[string]*old{
		"405":                        {refuse: 405, endpoint: path},
		"404":                        {refuse: 404, endpoint: path},
		"400":                        {refuse: 400, endpoint: path},
		"an address with its host":   {refuse: 405, endpoint: "%s" + path},
		"an address without a slash": {refuse: 405, endpoint: "messages/?session_id=1"},
		"a status of 200":            {refuse: 405, endpoint: path, accept: 200},
		"pings and comments":         {refuse: 405, endpoint: path, noise: ": ping\n\nevent: ping\ndata: 2026-01-01\n\nevent: heartbeat\ndata: {}\n\ndata:\n\nretry: 5\n\n"},
		"events without a name":      {refuse: 405, endpoint: path, noise: "id: 1\n\n"},
		"an address without a query": {refuse: 405, endpoint: "/messages/1"},
	} {
		t.Run(name, func(t *testing.T) {
			o.script = plainScript()
			r := start(t, service.Config{Servers: []mcpservers.Config{o.serve(t)}})
			r.await(t, "old_a")
			require.Equal(t, "done\n(a content block of type widget was left out)", r.call(t, "old_a", nil))
			require.Empty(t, r.server(t).Trouble)
			o.mu.Lock()
			defer o.mu.Unlock()
			require.Contains(t, o.sent, "GET /sse?k=1 key=secret")
			last := o.sent[len(o.sent)-1]
			require.True(t, last == "POST "+path+" key=secret" || last == "POST /messages/1?k=1 key=secret", last)
		})
	}
}

// The SDK's own server of the older transport works, with changes of its tools, cancelled calls and a lost stream.
func TestTheOlderTransportOfTheSDK(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "old", Version: "1"}, nil)
	entered, stopped := make(chan struct{}), make(chan struct{})
	add := func(name string, run func(context.Context) error) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, run(ctx)
		})
	}
	add("echo", func(context.Context) error { return nil })
	add("wait", func(ctx context.Context) error { close(entered); <-ctx.Done(); close(stopped); return ctx.Err() })
	srv := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(srv.Close)
	r := start(t, service.Config{Servers: []mcpservers.Config{{Name: "old", URL: srv.URL + "/sse"}}})
	t.Cleanup(r.svc.Stop) // the streams end before the server waits for them
	r.await(t, "old_echo")
	require.Equal(t, "echo", r.call(t, "old_echo", nil))

	add("later", func(context.Context) error { return nil })
	r.await(t, "old_later")

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	_, err := r.Call(ctx, newCall(t, "old_wait", nil))
	isFault(t, err, fault.ToolCancelled)
	<-stopped

	srv.CloseClientConnections()
	require.Eventually(t, func() bool { // the call that meets the end of the stream is lost
		res, err := r.Call(t.Context(), newCall(t, "old_echo", nil))
		if err != nil {
			require.NotContains(t, err.Error(), "sessionid=")
		}
		return err == nil && res.Text == "echo"
	}, maxWait, tick)
}

// Some such servers are refused, with a reason.
func TestWhyTheOlderTransportIsRefused(t *testing.T) {
	var stolen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { stolen = append(stolen, req.Header.Get("X-Key")) }))
	t.Cleanup(elsewhere.Close)
	for name, c := range map[string]struct {
		o    *old
		want []string
	}{
		"another host":    {&old{refuse: 405, endpoint: elsewhere.URL + "/messages?token=canary"}, []string{"it answers 405 Method Not Allowed;", "it wants messages sent to another host"}},
		"another scheme":  {&old{refuse: 405, endpoint: "ftp://x.example/"}, []string{"another host"}},
		"no such message": {&old{refuse: 405, endpoint: "/messages", accept: 401}, []string{"it answers 401 Unauthorized: it requires credentials"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.script = plainScript()
			is, log := troubled(t, c.o.serve(t))
			for _, want := range c.want {
				require.Contains(t, is.Trouble, want)
			}
			require.NotContains(t, is.Trouble+log, "canary")
		})
	}
	require.Empty(t, stolen)
	for status, want := range map[int][]string{
		404: {"it answers 404 Not Found: check that the path", "nor can it be used over the older transport, HTTP with SSE: it answers 404"},
		405: {"it answers 405 Method Not Allowed; nor can"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		is, _ := troubled(t, mcpservers.Config{Name: "s", URL: srv.URL})
		srv.Close()
		for _, w := range want {
			require.Contains(t, is.Trouble, w)
		}
	}
}

// A stream that floods ends, and its calls do not wait for it.
func TestTheOlderTransportIsBounded(t *testing.T) {
	o := &old{refuse: 405, endpoint: "/messages"}
	o.script = plainScript()
	r := start(t, service.Config{Servers: []mcpservers.Config{o.serve(t)}})
	r.await(t, "old_a")
	flood := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 1<<20) + `"}}`
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 40 {
			select {
			case o.out <- flood:
			case <-o.quit:
				return
			}
		}
	}()
	require.Eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		n := 0
		for _, s := range o.sent {
			if strings.HasPrefix(s, "GET ") {
				n++
			}
		}
		return n > 1
	}, maxWait, tick, "the stream was cut, and the server is connected anew")
	<-ended
	_, err := r.List(t.Context(), id.DefaultTenant)
	require.NoError(t, err)
}
