package waggle_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

// gateway answers one question; it ends with its one connection.
func gateway() string {
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { go srv.Close() }() // it waits for this handler
		defer func() { _ = conn.CloseNow() }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"agent_ready","data":{"session_id":"s1","last_seq":0}}`))
		_, _, _ = conn.Read(ctx)
		for _, frame := range []string{
			`{"type":"user_input","seq":3,"execution_id":"e","data":{"message":"How many words has notes.md?"}}`,
			`{"type":"tool_called","seq":5,"execution_id":"e","data":{"tool_name":"workspace_read_file","arguments":{"path":"notes.md"}}}`,
			`{"type":"agent_response","seq":9,"execution_id":"e","data":{"message":"It has 12 words."}}`,
		} {
			_ = conn.Write(ctx, websocket.MessageText, []byte(frame))
		}
		_, _, _ = conn.Read(ctx)
	}))
	return srv.URL
}

// A program asks, and gets the answer.
func ExampleSession_Ask() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, gateway(), waggle.Options{}) // "ws://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	s := w.Chat(waggle.SessionOptions{})
	defer s.Close()
	answer, err := s.Ask(ctx, "How many words has notes.md?", nil)
	fmt.Println(s.ID(), answer.Text, err)
	// Output: s1 It has 12 words. <nil>
}

// A program takes the events one by one, until the answer is there.
func ExampleSession_Events() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, gateway(), waggle.Options{}) // "ws://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	s := w.Chat(waggle.SessionOptions{})
	defer s.Close()
	if err := s.Send("How many words has notes.md?"); err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range s.Events(ctx) {
		switch d := e.Data.(type) {
		case waggle.ToolCall:
			fmt.Println("calls", d.Name)
		case waggle.Failure:
			fmt.Println("failed:", d.Err)
		}
		if answer, ok := e.Data.(waggle.Answer); ok || err != nil {
			fmt.Println(answer.Text, err)
			break
		}
	}
	// Output:
	// calls workspace_read_file
	// It has 12 words. <nil>
}
