// Package examples_test holds the tasks of docs/SDKS.md in Go, and runs them as the page shows them.
package examples_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/sdk/go/internal/judge"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tour is a program that runs the tasks one after the other.
type tour struct {
	*waggle.Client

	url string
	out io.Writer
}

func TestTasksPrintWhatTheyShould(t *testing.T) {
	raw, err := os.ReadFile("../../../proto-schemas/sdk/tasks.json")
	if err != nil {
		t.Fatal(err)
	}
	var contract []struct {
		Name            string
		Prints, Without []string
	}
	if err := json.Unmarshal(raw, &contract); err != nil {
		t.Fatal(err)
	}
	server, err := judge.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for _, c := range contract {
		if slices.Contains(c.Without, "Go") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			var out strings.Builder
			w, err := waggle.Open(t.Context(), server.URL(), waggle.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := (tour{w, server.URL(), &out}).run(t.Context(), c.Name); err != nil {
				t.Fatal(err, out.String())
			}
			for _, want := range c.Prints {
				if !strings.Contains(strings.ToLower(out.String()), strings.ToLower(want)) {
					t.Errorf("%q is not in %q", want, out.String())
				}
			}
		})
	}
}

// run runs a task, with what it needs around it.
func (p tour) run(ctx context.Context, name string) error {
	alone := map[string]func(context.Context, *waggle.Client, io.Writer) error{
		"chat": chat, "resume": resume, "plan": plan, "client_tool": clientTool, "file": file, "cancel": cancel, "team": team,
	}
	if f := alone[name]; f != nil {
		return f(ctx, p.Client, p.out)
	}
	return map[string]func(context.Context) error{
		"answer": p.answer, "sessions": p.sessions,
		"task": func(ctx context.Context) error {
			return p.with(ctx, writeAgent, "agents", "shouter", func() error { return task(ctx, p.Client, p.out) })
		},
		"write_agent": func(ctx context.Context) error {
			return p.with(ctx, writeAgent, "agents", "shouter", func() error { return p.ask(ctx, api.NewMessage{Content: "bees", Agent: "shouter"}) })
		},
		"write_tools": func(ctx context.Context) error {
			return p.with(ctx, writeTools, "services", "calculator", func() error {
				call, err := p.Call(ctx, "POST", []byte(`{"kind": "service", "arguments": {"a": 2, "b": 3}}`), "tools", "calculator", "add", "call")
				_, _ = fmt.Fprintln(p.out, string(call))
				return err
			})
		},
	}[name](ctx)
}

func (p tour) answer(ctx context.Context) error {
	confirm := true
	run, err := p.Send(ctx, "", api.NewMessage{Content: "list the files, and read notes.md", Mode: event.ModePlan, RunOptions: api.RunOptions{ConfirmPlan: &confirm}})
	if err != nil {
		return err
	}
	if err := p.listed(ctx, "questions", run.Session); err != nil {
		return err
	}
	return answer(ctx, p.Client, p.out, run.Session)
}

func (p tour) sessions(ctx context.Context) error {
	run, err := p.Send(ctx, "", api.NewMessage{Content: "what does notes.md say?"})
	if err != nil {
		return err
	}
	if err := p.listed(ctx, "sessions", run.Session); err != nil {
		return err
	}
	return sessions(ctx, p.Client, p.out)
}

func (p tour) ask(ctx context.Context, m api.NewMessage) error {
	run, err := p.Send(ctx, "", m)
	if err != nil {
		return err
	}
	answer, err := run.Result(ctx)
	_, _ = fmt.Fprintln(p.out, answer.Text)
	return err
}

// with runs an agent or a service while then runs.
func (p tour) with(ctx context.Context, work func(context.Context, string) error, list, name string, then func() error) error {
	working, stop := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() { left <- work(working, p.url) }()
	defer func() { stop(); <-left }()
	if err := p.listed(ctx, list, name); err != nil {
		return err
	}
	return then()
}

// listed returns once a list has an entry: lists are as of a second ago.
func (p tour) listed(ctx context.Context, list, word string) error {
	for {
		page, err := p.Get(ctx, url.Values{}, list)
		if err != nil || strings.Contains(string(page), word) {
			return err
		}
	}
}
