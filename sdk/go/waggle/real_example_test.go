package waggle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

// A program sends a message to a new session and waits for the answer.
func ExampleClient_Send() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := w.Send(ctx, "", api.NewMessage{Content: `use workspace_read_file {"path": "notes.md"}`})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := run.Result(ctx)
	fmt.Println(answer.Status, err)
	// Output: success <nil>
}

// A run tells all that happens, also to programs that come later.
func ExampleRun_Events() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := w.Send(ctx, "", api.NewMessage{Content: `use workspace_read_file {"path": "notes.md"}`})
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range run.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if e.Type == event.ToolCalled || e.Type == event.RunCompleted {
			fmt.Println(e.Type)
		}
	}
	// Output:
	// tool.called
	// run.completed
}

// A plan waits until people confirm it. The first answer counts.
func ExampleClient_AnswerQuestion() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	confirm := true
	run, err := w.Send(ctx, "", api.NewMessage{Content: "read notes.md", Mode: event.ModePlan, RunOptions: api.RunOptions{ConfirmPlan: &confirm}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range run.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		question, asks := waggle.QuestionID(e)
		if !asks {
			continue
		}
		outcome, err := w.AnswerQuestion(ctx, question, api.QuestionAnswer{Decision: "approve"})
		fmt.Println(outcome.Decision, err)
		_, err = w.AnswerQuestion(ctx, question, api.QuestionAnswer{Decision: "reject"})
		fmt.Println(waggle.IsCode(err, fault.InputAnswered))
	}
	// Output:
	// approve <nil>
	// true
}

// A program gives an agent of the swarm a task, and waits for the result.
func ExampleClient_CreateTask() {
	ctx := context.Background()
	shouter, err := swarm.NewAgent(swarm.AgentOptions{Options: swarm.Options{URL: server()}, Name: "Shouter"}, func(_ context.Context, t *swarm.Task) (any, error) {
		var text string
		err := t.Decode(&text)
		return strings.ToUpper(text), err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	working, stop := context.WithCancel(ctx)
	left := make(chan error)
	go func() { left <- shouter.Run(working) }()
	defer func() { stop(); <-left }()
	if err := shouter.Connected(ctx); err != nil {
		fmt.Println(err)
		return
	}

	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err := w.CreateTask(ctx, api.NewTask{AgentName: "Shouter", Data: json.RawMessage(`"hello"`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := w.TaskResult(ctx, task)
	fmt.Println(string(result), err)
	_, err = w.CreateTask(ctx, api.NewTask{AgentName: "Nobody", Data: json.RawMessage(`"hello"`)})
	fmt.Println(waggle.IsCode(err, fault.AgentNotFound))
	// Output:
	// "HELLO" <nil>
	// true
}

// A team has a coordinator, which gets the messages that name no member.
func ExampleClient_CreateTeam() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	team, err := w.CreateTeam(ctx, api.NewTeam{TeamDefinition: waggle.TeamDefinition{Name: "site", Coordinator: "Boss", Members: []event.MemberDefinition{{Name: "Boss"}, {Name: "Coder"}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(team.Name, w.MessageTeam(ctx, team.TeamID, api.TeamMessage{Content: "hello", Target: "Coder"}), w.DeleteTeam(ctx, team.TeamID))
	for e, err := range w.Log(id.KindTeam, team.TeamID).Events(ctx, waggle.ReadOptions{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if e.Type == event.TeamMessage || e.Type == event.TeamClosed {
			fmt.Println(e.Type)
		}
	}
	// Output:
	// site <nil> <nil>
	// team.message
	// team.closed
}

// Lists are of all pages; a session can be shown, exported and deleted.
func ExampleClient_Sessions() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := w.Send(ctx, "", api.NewMessage{Content: "hello"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := run.Result(ctx); err != nil {
		fmt.Println(err)
		return
	}
	sessions, err := w.Sessions(ctx)
	fmt.Println(len(sessions) > 0, err)
	shown, err := w.ShowSession(ctx, run.Session)
	fmt.Println(len(shown.Runs), err)
	_, err = w.DeleteSession(ctx, run.Session)
	fmt.Println(err)
	_, err = w.ShowSession(ctx, run.Session)
	fmt.Println(waggle.IsCode(err, fault.SessionDeleted) || waggle.IsCode(err, fault.SessionNotFound))
	// Output:
	// true <nil>
	// 1 <nil>
	// <nil>
	// true
}

// The inbox has the questions of all sessions, teams and tasks, a moment after they were asked.
func ExampleClient_Questions() {
	ctx := context.Background()
	w, err := waggle.Open(ctx, server(), waggle.Options{}) // "http://127.0.0.1:9000"
	if err != nil {
		fmt.Println(err)
		return
	}
	open, err := w.Questions(ctx, url.Values{"state": {"open"}, "scope": {"budget"}})
	for _, q := range open {
		fmt.Println(q.ID, q.Title)
	}
	fmt.Println(len(open), err)
	// Output: 0 <nil>
}
