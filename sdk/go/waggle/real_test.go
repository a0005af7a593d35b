package waggle_test

import (
	"sync"
	"testing"

	"github.com/waggle-dev/waggle/sdk/go/internal/judge"
)

// shared is the real server of the examples. The first one starts it, and it ends after all tests.
var shared struct {
	once   sync.Once
	server *judge.Server
	err    error
}

// server returns the address of a real server with the demo model.
func server() string {
	shared.once.Do(func() { shared.server, shared.err = judge.Serve() })
	if shared.err != nil {
		panic(shared.err)
	}
	return shared.server.URL()
}

// tests ends the server before leaks of goroutines are looked for.
type tests struct{ *testing.M }

func (m tests) Run() int {
	defer func() {
		if shared.server != nil {
			shared.server.Close()
		}
	}()
	return m.M.Run()
}
