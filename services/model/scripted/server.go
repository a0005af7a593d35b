// Package scripted is a model provider for tests, which answers by a script.
//
// A Server speaks the chat completions protocol of OpenAI and the messages protocol of Anthropic over real HTTP, on the same
// port, so that any client and any process can use it:
//
//	srv, err := scripted.Start("127.0.0.1:0", scripted.Sequence(
//		scripted.TooMany("1"),
//		scripted.Stream(scripted.Text("Hel", "lo"), scripted.Gate(ch), scripted.Text("!")),
//	))
//	defer srv.Close()
//	// OPENAI_BASE_URL=srv.OpenAIBaseURL() OPENAI_API_KEY=any waggle up --model openai:x
//	// ANTHROPIC_BASE_URL=srv.AnthropicBaseURL() ANTHROPIC_API_KEY=any waggle up --model anthropic:x
//
// Smart is a script that behaves like a simple model: it calls the tools that the user's text asks for and answers from
// their results.
//
// Stages answers the requests of pipeline runs, each stage and step from its own script, with plans made by Plan:
//
//	scripted.Stages{
//		Plan:  scripted.InTurn(scripted.Stream(scripted.Text("no plan")), scripted.Plan(tasks...)),
//		Tasks: map[string]scripted.Script{"b": scripted.Always(scripted.Fail(400, "bad", "no"))},
//	}.Script()
//
// Each request becomes an Exchange, which holds the request, signals the end of its answer, and signals that the client
// closed the request:
//
//	x, err := srv.Exchange(ctx, 1)   // waits for the first request
//	<-x.Gone()                       // the client closed it before it was answered
//	x, err = srv.Find(ctx, func(x *scripted.Exchange) bool { return x.Task == "b" })
package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	maxRequest = 64 << 20         // bytes of one request: any conversation of a test
	maxHeader  = 10 * time.Second // for a client to send its header
)

// Ended waits until the server has finished with the request or, if Gone is closed, has seen that the client closed it, and
// returns that time.
func (x *Exchange) Ended() time.Time {
	<-x.done
	return x.ended
}

// Gone is closed when the client has closed the request before its answer was complete.
func (x *Exchange) Gone() <-chan struct{} { return x.gone }

// Done is closed when the server has finished with the request, in any way.
func (x *Exchange) Done() <-chan struct{} { return x.done }

// Server is a running server. Its methods may be called from any goroutine.
type Server struct {
	url    string
	http   *http.Server
	script Script
	served chan struct{}
	stop   chan struct{}
	once   sync.Once

	mu      sync.Mutex
	all     []*Exchange
	arrived chan struct{} // replaced at each arrival
}

// Start listens on addr, "127.0.0.1:0" for a port of the system's choice, and answers each request by the script. The caller
// closes it.
func Start(addr string, script Script) (*Server, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("start scripted server: %w", err)
	}
	s := &Server{
		url: "http://" + ln.Addr().String(), script: script,
		served: make(chan struct{}), stop: make(chan struct{}), arrived: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, OpenAI) })
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, Anthropic) })
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: maxHeader, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(ln) // ends with http.ErrServerClosed
	}()
	return s, nil
}

// OpenAIBaseURL returns the value for OPENAI_BASE_URL.
func (s *Server) OpenAIBaseURL() string { return s.url + "/v1" }

// AnthropicBaseURL returns the value for ANTHROPIC_BASE_URL.
func (s *Server) AnthropicBaseURL() string { return s.url }

// Close breaks all connections and returns when all requests have ended.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.stop) })
	err := s.http.Close()
	<-s.served
	for _, x := range s.Exchanges() {
		<-x.done
	}
	if err != nil {
		return fmt.Errorf("close scripted server: %w", err)
	}
	return nil
}

// Exchanges returns the requests so far.
func (s *Server) Exchanges() []*Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Exchange waits for the n-th request, counted from 1.
func (s *Server) Exchange(ctx context.Context, n int) (*Exchange, error) {
	x, err := s.Find(ctx, func(x *Exchange) bool { return x.N == n })
	if err != nil {
		return nil, fmt.Errorf("request %d: %w", n, err)
	}
	return x, nil
}

// Find waits for a request that fits and returns the first.
func (s *Server) Find(ctx context.Context, fits func(*Exchange) bool) (*Exchange, error) {
	for seen := 0; ; {
		s.mu.Lock()
		arrived, all := s.arrived, s.all
		s.mu.Unlock()
		if i := slices.IndexFunc(all[seen:], fits); i >= 0 {
			return all[seen+i], nil
		}
		seen = len(all)
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("it has not arrived: %w", ctx.Err())
		}
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, protocol string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x := &Exchange{
		Protocol: protocol, Header: r.Header, Body: body, Arrived: time.Now(),
		gone: make(chan struct{}), done: make(chan struct{}),
	}
	if err := x.decode(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.add(x)
	defer func() {
		x.ended = time.Now()
		close(x.done)
	}()
	reply := s.script(x)
	switch err := reply.write(r.Context(), s.stop, w, x); {
	case err == nil:
	case errors.Is(err, errCut):
		panic(http.ErrAbortHandler) // the one way to break a connection in mid-answer
	case !s.stopping():
		close(x.gone)
	}
}

func (s *Server) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

func (s *Server) add(x *Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, x)
	x.N = len(s.all)
	close(s.arrived)
	s.arrived = make(chan struct{})
}
