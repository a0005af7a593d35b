package swarm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// start runs an agent or a service until the returned function is called.
func start(r runner) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error)
	go func() { left <- r.Run(ctx) }()
	return func() { cancel(); <-left }, r.Connected(ctx)
}

// An agent asks, and the program that gave the task answers.
func ExampleTask_Ask() {
	ctx := context.Background()
	to := swarm.Options{URL: server()} // "http://127.0.0.1:9000"
	translator, err := swarm.NewAgent(swarm.AgentOptions{Options: to, Name: "Asker"}, func(ctx context.Context, t *swarm.Task) (any, error) {
		answer, err := t.Ask(ctx, swarm.Question{Message: "Which language?", Options: []string{"spanish", "french"}})
		return answer, err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := start(translator)
	defer stop()
	if err != nil {
		fmt.Println(err)
		return
	}

	questions := make(chan swarm.TaskQuestion, 1)
	client, err := swarm.Dial(ctx, swarm.ClientOptions{Options: to, OnEvent: func(e swarm.Event) {
		if q, ok := e.Content.(swarm.TaskQuestion); ok {
			questions <- q
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	task, err := client.CreateTask(ctx, swarm.NewTask{AgentName: "Asker", Data: "good morning"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string((<-questions).Message), task.Message(ctx, "french"))
	result, err := task.Wait(ctx)
	fmt.Println(string(result.Result), err)
	// Output:
	// "Which language?" <nil>
	// "french" <nil>
}

// An agent gives parts of its task to another agent, and learns why one failed.
func ExampleTask_Child() {
	ctx := context.Background()
	to := swarm.Options{URL: server()} // "http://127.0.0.1:9000"
	doubler, err := swarm.NewAgent(swarm.AgentOptions{Options: to, Name: "Doubler"}, func(_ context.Context, t *swarm.Task) (any, error) {
		var n int
		err := t.Decode(&n)
		return n * 2, err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	boss, err := swarm.NewAgent(swarm.AgentOptions{Options: to, Name: "Boss"}, func(ctx context.Context, t *swarm.Task) (any, error) {
		_, failure := t.Child(ctx, swarm.Child{AgentName: "Doubler", Data: "many"})
		fmt.Println(swarm.IsCode(failure, fault.ToolBadInput))
		return t.Child(ctx, swarm.Child{AgentName: "Doubler", Data: 21})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, agent := range []*swarm.Agent{doubler, boss} {
		stop, err := start(agent)
		defer stop()
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	client, err := swarm.Dial(ctx, swarm.ClientOptions{Options: to})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	result, err := client.SendTask(ctx, swarm.NewTask{AgentName: "Boss", Data: "go"})
	fmt.Println(string(result.Result), err)
	// Output:
	// true
	// 42 <nil>
}

// An agent runs a tool of a service, whose arguments are held to the schema of the tool.
func ExampleTask_CallService() {
	ctx := context.Background()
	to := swarm.Options{URL: server()} // "http://127.0.0.1:9000"
	service, err := swarm.NewService(swarm.ServiceOptions{Options: to, ID: "printer", Name: "Printer", Tools: []swarm.Tool{{
		ID:          "print",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
		Run: func(_ context.Context, r *swarm.ToolRun) (any, error) {
			var in struct{ Text string }
			err := r.Decode(&in)
			return strings.ToUpper(in.Text), err
		},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	clerk, err := swarm.NewAgent(swarm.AgentOptions{Options: to, Name: "Clerk"}, func(ctx context.Context, t *swarm.Task) (any, error) {
		_, failure := t.CallService(ctx, "printer", "print", map[string]any{}, swarm.Call{})
		fmt.Println(swarm.IsCode(failure, fault.ToolBadInput))
		return t.CallService(ctx, "printer", "print", map[string]string{"text": "hello"}, swarm.Call{})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range []runner{service, clerk} {
		stop, err := start(r)
		defer stop()
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	client, err := swarm.Dial(ctx, swarm.ClientOptions{Options: to})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	result, err := client.SendTask(ctx, swarm.NewTask{AgentName: "Clerk", Data: "go"})
	fmt.Println(string(result.Result), err)
	// Output:
	// true
	// "HELLO" <nil>
}
