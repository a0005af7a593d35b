// Command planner asks a gateway to plan a question, approves the plan, shows the progress of
// its tasks and prints the answer. Run it beside a server ("make run"):
//
//	go run ./sdk/go/examples/planner "what is in my workspace?"
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	question := cmp.Or(strings.Join(os.Args[1:], " "), "what is in my workspace?")
	if err := run(ctx, os.Stdout, cmp.Or(os.Getenv("WAGGLE_URL"), "ws://127.0.0.1:9000/ws"), question); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, url, question string) error {
	w, err := waggle.Open(ctx, url, waggle.Options{Token: os.Getenv("WAGGLE_TOKEN"), Language: "en_US"})
	if err != nil {
		return err
	}
	confirm := true
	s := w.Plan(waggle.SessionOptions{ConfirmPlan: &confirm})
	defer s.Close()
	if err := s.Send(question); err != nil {
		return err
	}
	for e, err := range s.Events(ctx) {
		if err != nil {
			return err
		}
		switch d := e.Data.(type) {
		case waggle.Question:
			_, _ = fmt.Fprintf(out, "? %d steps\n", len(d.Steps))
			err = s.Answer(d, waggle.Reply{Approve: true})
		case waggle.StepCompleted:
			_, _ = fmt.Fprintf(out, "✓ %s\n", d.StepID)
		case waggle.Answer:
			_, err = fmt.Fprintln(out, d.Text)
			return err
		case waggle.Failure:
			err = d.Err
		}
		if err != nil {
			return err
		}
	}
	return nil
}
