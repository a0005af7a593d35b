// Command shouter is an agent of the swarm in one file: it gets texts and returns them in
// capitals. Run it beside a server ("make run"), and ask in a chat:
//
//	go run ./sdk/go/examples/shouter
//	bin/waggle chat --plan --yes "ask shouting to greet the bees"
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// step is the data of a task from a chat; a client of the swarm may send a plain text instead.
type step struct {
	Description string `json:"description"`
}

// shout is the agent's work on one task.
func shout(ctx context.Context, t *swarm.Task) (any, error) {
	var s step
	if err := t.Decode(&s.Description); err != nil { // not a text
		if err := t.Decode(&s); err != nil {
			return nil, err // the client sees INVALID_INPUT
		}
	}
	if err := t.Progress(ctx, 0.5, "taking a deep breath"); err != nil {
		return nil, err
	}
	return strings.ToUpper(s.Description) + "!", nil
}

func main() {
	if err := run(cmp.Or(os.Getenv("WAGGLE_URL"), "ws://127.0.0.1:9000")); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "shouter:", err)
		os.Exit(1)
	}
}

func run(url string) error {
	agent, err := swarm.NewAgent(swarm.AgentOptions{
		Options: swarm.Options{URL: url}, Name: "shouter", Capabilities: []string{"shouting"},
	}, shout)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return agent.Run(ctx) // until ctx ends; it reconnects by itself
}
