package site

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

const (
	// PayTool is what models call the bank's tool.
	PayTool = "bank_pay"
	// paying is how long a payment takes: long enough to be killed in the middle.
	paying = 150 * time.Millisecond
	// wordPause is the pace of the model.
	wordPause = 15 * time.Millisecond
	words     = 12 // of an answer
)

// Bank is a tool whose effect must not happen twice. It keeps what was paid.
type Bank struct {
	URL string

	mu   sync.Mutex
	paid map[string]int // by purpose
}

func openBank(t testing.TB, host string) *Bank {
	t.Helper()
	b := &Bank{paid: map[string]int{}}
	srv := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	type in struct {
		Purpose string `json:"purpose"`
	}
	mcp.AddTool(srv, &mcp.Tool{Name: "pay", Description: "pays"},
		func(ctx context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
			b.mu.Lock()
			b.paid[a.Purpose]++
			b.mu.Unlock()
			pause := time.NewTimer(paying)
			defer pause.Stop()
			select {
			case <-pause.C:
			case <-ctx.Done():
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid for " + a.Purpose}}}, nil, nil
		})
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	web := &http.Server{
		Handler:           mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil),
		ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = web.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = web.Close() })
	b.URL = "http://" + l.Addr().String()
	return b
}

// Payments returns how often anything was paid for.
func (b *Bank) Payments() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, times := range b.paid {
		n += times
	}
	return n
}

// Paid returns how often a purpose was paid for.
func (b *Bank) Paid(purpose string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paid[purpose]
}

// script is the model: it pays for what it is told to pay for, once, and says again what
// it was told, in a stream of words.
func script() scripted.Script {
	talk := func(about string) scripted.Reply {
		pieces := make([]string, words)
		for i := range pieces {
			pieces[i] = fmt.Sprintf("word%02d ", i)
		}
		return scripted.Stream(scripted.Text(about+": "), scripted.Every(wordPause, pieces...), scripted.Usage(1, words))
	}
	chat := func(x *scripted.Exchange) scripted.Reply {
		last := x.Prompt.Messages[len(x.Prompt.Messages)-1]
		if _, text, ok := strings.Cut(last.Content, "pay for "); ok && last.Role == model.RoleUser {
			purpose, _, _ := strings.Cut(text, " ")
			return scripted.Stream(scripted.Calls(0, scripted.Call{
				ID: fmt.Sprintf("call_%d", x.N), Name: PayTool, Arguments: fmt.Sprintf(`{"purpose":%q}`, purpose),
			}))
		}
		return talk(last.Content)
	}
	return scripted.Stages{
		Plan: func(x *scripted.Exchange) scripted.Reply {
			return scripted.Plan(
				event.Step{ID: "first", Title: "the first part of " + x.Data.Question},
				event.Step{ID: "second", Title: "the second part of " + x.Data.Question, Dependencies: []string{"first"}})
		},
		Solve:     func(x *scripted.Exchange) scripted.Reply { return talk(x.Data.Question) },
		Aggregate: func(x *scripted.Exchange) scripted.Reply { return talk(x.Data.Question) },
		Chat:      chat,
	}.Script()
}
