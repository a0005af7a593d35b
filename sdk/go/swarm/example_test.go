package swarm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// A client gives a task, answers the agent's question and gets the result.
func ExampleClient() {
	ctx := context.Background()
	questions := make(chan swarm.TaskQuestion, 1)
	client, err := swarm.Dial(ctx, swarm.ClientOptions{
		Options: swarm.Options{URL: exampleServer()}, // "ws://127.0.0.1:9000"
		Name:    "example",
		OnEvent: func(e swarm.Event) {
			switch c := e.Content.(type) {
			case swarm.TaskNotification:
				fmt.Printf("%s: %s\n", c.NotificationType, c.Message)
			case swarm.TaskQuestion:
				questions <- c
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()

	task, err := client.CreateTask(ctx, swarm.NewTask{AgentName: "Translator", Data: map[string]string{"text": "good morning"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	q := <-questions
	fmt.Printf("asked: %s\n", q.Message)
	if err := task.Message(ctx, "spanish"); err != nil {
		fmt.Println(err)
		return
	}
	result, err := task.Wait(ctx)
	fmt.Printf("result: %s %v\n", result.Result, err)
	// Output:
	// progress: "reading"
	// asked: "which language?"
	// result: "buenos días" <nil>
}

// An agent upper-cases texts until it is stopped.
func ExampleAgent() {
	ctx, stop := context.WithCancel(context.Background())
	server := exampleAgents(func(result any) {
		fmt.Printf("the server got %q\n", result)
		stop()
	})
	agent, err := swarm.NewAgent(
		swarm.AgentOptions{Options: swarm.Options{URL: server}, ID: "upper-1", Name: "Upper", Capabilities: []string{"text"}},
		func(ctx context.Context, t *swarm.Task) (any, error) {
			var in struct{ Text string }
			if err := t.Decode(&in); err != nil {
				return nil, err // the client sees INVALID_INPUT
			}
			if err := t.Progress(ctx, 0.5, "half way"); err != nil {
				return nil, err
			}
			return strings.ToUpper(in.Text), nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(agent.Run(ctx))
	// Output:
	// the server got "HELLO"
	// <nil>
}

// A service offers one tool, whose calls are held to a schema.
func ExampleService() {
	service, err := swarm.NewService(swarm.ServiceOptions{Name: "Math", Tools: []swarm.Tool{{
		ID:          "add",
		Description: "adds two numbers",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`),
		Idempotent:  true,
		Run: func(ctx context.Context, c *swarm.ToolRun) (any, error) {
			var in struct{ A, B float64 }
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			return in.A + in.B, c.Notify(ctx, swarm.Notification{Type: swarm.Progress, Message: "added"})
		},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	stop() // a real program runs until it is interrupted: signal.NotifyContext
	fmt.Println(service.Run(ctx))
	// Output: <nil>
}
