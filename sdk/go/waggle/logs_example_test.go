package waggle_test

import (
	"context"
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

// A session has an id of the program's, such as that of a ticket. Its messages bring files along.
func ExampleClient_CreateSession() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	session, err := w.CreateSession(ctx, api.NewSession{SessionID: "ticket-4711", OnBusy: event.OnBusyEnqueue})
	if err != nil {
		fmt.Println(err)
		return
	}
	note := waggle.File("text/plain", "note.txt", []byte("buy milk"))
	run, err := w.Send(ctx, session, api.NewMessage{Content: "compute 6*7", Files: []api.MessageFile{note}})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := run.Result(ctx)
	fmt.Println(session, answer.Status, err)
	// Output: ticket-4711 success <nil>
}

// A log is read from its first event, or after one that is known. New events follow as they happen.
func ExampleLog_Events() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := w.Send(ctx, "", api.NewMessage{Content: "compute 6*7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range w.Log(id.KindSession, run.Session).Events(ctx, waggle.ReadOptions{After: 1}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if e.Type == event.MessageReceived || e.Type == event.RunCompleted {
			fmt.Println(e.Type)
		}
		if e.Type == event.RunCompleted {
			return
		}
	}
	// Output:
	// message.received
	// run.completed
}

// Announcements tell a program what happens in all logs, from now on.
func ExampleClient_Live() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	begin := func(up bool, _ error) {
		if up {
			if _, err := w.Send(ctx, "", api.NewMessage{Content: "compute 6*7"}); err != nil {
				fmt.Println(err)
			}
		}
	}
	for e, err := range w.Live(ctx, waggle.LiveOptions{Types: []event.Type{event.RunCompleted}, Connection: begin}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Type)
		return
	}
	// Output: run.completed
}

// Steps that a program has planned itself are carried out as those of a plan.
func ExampleClient_Solve() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	steps := []event.Step{{ID: "product", Title: "compute 6*7"}, {ID: "sum", Title: "compute 1+1", Dependencies: []string{"product"}}}
	run, err := w.Solve(ctx, "", steps, api.RunOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := run.Result(ctx)
	fmt.Println(answer.Status, err)
	// Output: success <nil>
}
