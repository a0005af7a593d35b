// The tasks of docs/SDKS.md. run_test.go runs them.
package examples_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

func chat(ctx context.Context, w *waggle.Client, out io.Writer) error {
	run, err := w.Send(ctx, "", api.NewMessage{Content: "what does notes.md say?"})
	if err != nil {
		return err
	}
	for piece, err := range run.Deltas(ctx) {
		if err != nil {
			return err
		}
		_, _ = io.WriteString(out, piece.Text)
	}
	return nil
}

func resume(ctx context.Context, w *waggle.Client, out io.Writer) error {
	message := api.NewMessage{ID: "question-1", Content: "what does notes.md say?"}
	before, err := w.Send(ctx, "", message)
	if err != nil {
		return err
	}
	kept, after := before.Session, before.Seq // in a file or a database

	run, err := w.Send(ctx, kept, message) // in another process: the same id, the same run
	if err != nil {
		return err
	}
	for e, err := range w.Log(id.KindSession, kept).Events(ctx, waggle.ReadOptions{After: after}) { // each event once
		if err != nil {
			return err
		}
		if _, _ = fmt.Fprintln(out, e.Sequence, e.Type); e.Type == event.RunCompleted {
			break
		}
	}
	answer, err := run.Result(ctx)
	_, _ = fmt.Fprintln(out, answer.Text)
	return err
}

func plan(ctx context.Context, w *waggle.Client, out io.Writer) error {
	confirm := true
	run, err := w.Send(ctx, "", api.NewMessage{Content: "list the files, and read notes.md", Mode: event.ModePlan, RunOptions: api.RunOptions{ConfirmPlan: &confirm}})
	if err != nil {
		return err
	}
	for e, err := range run.Events(ctx) {
		if err != nil {
			return err
		}
		if question, asks := waggle.QuestionID(e); asks {
			_, _ = fmt.Fprintln(out, string(e.Data)) // with the steps
			if _, err := w.AnswerQuestion(ctx, question, api.QuestionAnswer{Decision: "approve"}); err != nil {
				return err
			}
		}
	}
	answer, err := run.Result(ctx)
	_, _ = fmt.Fprintln(out, answer.Text)
	return err
}

func answer(ctx context.Context, w *waggle.Client, out io.Writer, session string) error {
	questions, err := w.Questions(ctx, url.Values{"log": {session}})
	if err != nil {
		return err
	}
	for _, q := range questions {
		_, _ = fmt.Fprintln(out, q.Scope, len(q.Steps))
		outcome, err := w.AnswerQuestion(ctx, q.ID, api.QuestionAnswer{Decision: "reject", Feedback: "not now"})
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(out, outcome.Decision)
	}
	return nil
}

func clientTool(ctx context.Context, w *waggle.Client, out io.Writer) error {
	weather := event.ClientTool{
		Name: "weather", Description: "Tells the weather of a city.",
		InputSchema: json.RawMessage(`{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}`),
	}
	run, err := w.Send(ctx, "", api.NewMessage{Content: `use weather {"city": "Lisbon"}`, Tools: []event.ClientTool{weather}})
	if err != nil {
		return err
	}
	for e, err := range run.Events(ctx) {
		if err != nil {
			return err
		}
		question, asks := waggle.QuestionID(e)
		if !asks {
			continue
		}
		var call struct{ Arguments struct{ City string } }
		if err := json.Unmarshal(e.Data, &call); err != nil {
			return err
		}
		result := "21.5 degrees in " + call.Arguments.City
		if _, err := w.AnswerQuestion(ctx, question, api.QuestionAnswer{Decision: "approve", Result: &result}); err != nil {
			return err
		}
	}
	answer, err := run.Result(ctx)
	_, _ = fmt.Fprintln(out, answer.Text)
	return err
}

func file(ctx context.Context, w *waggle.Client, out io.Writer) error {
	todo := waggle.File("text/markdown", "todo.md", []byte("call mum"))
	run, err := w.Send(ctx, "", api.NewMessage{Content: "say thanks", Files: []api.MessageFile{todo}})
	if err != nil {
		return err
	}
	for e, err := range run.Events(ctx) {
		if err != nil {
			return err
		}
		if e.Type != event.MessageReceived {
			continue
		}
		d, err := event.As[event.MessageReceivedData](e)
		if err != nil {
			return err
		}
		for _, sent := range d.Files {
			data, err := w.SessionFile(ctx, run.Session, sent.Object.Digest)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintln(out, sent.Name, string(data))
		}
	}
	return nil
}

func cancel(ctx context.Context, w *waggle.Client, out io.Writer) error {
	run, err := w.Send(ctx, "", api.NewMessage{Content: "tell me the story"})
	if err != nil {
		return err
	}
	if err := run.Cancel(ctx, "it is late"); err != nil {
		return err
	}
	_, err = run.Result(ctx)
	_, _ = fmt.Fprintln(out, waggle.IsCode(err, fault.RunCancelled), err)
	return nil
}

func team(ctx context.Context, w *waggle.Client, out io.Writer) error {
	members := []event.MemberDefinition{{Name: "Boss"}, {Name: "Coder"}}
	site := waggle.TeamDefinition{Name: "site", Coordinator: "Boss", Members: members}
	team, err := w.CreateTeam(ctx, api.NewTeam{TeamDefinition: site})
	if err != nil {
		return err
	}
	if err := w.MessageTeam(ctx, team.TeamID, api.TeamMessage{Content: "say hello to the bees", Target: "Coder"}); err != nil {
		return err
	}
	for e, err := range w.Log(id.KindTeam, team.TeamID).Events(ctx, waggle.ReadOptions{}) {
		if err != nil {
			return err
		}
		if e.Type != event.TeamMemberEvent {
			continue
		}
		d, err := event.As[event.TeamMemberEventData](e)
		if err != nil {
			return err
		}
		var own event.Event
		if err := json.Unmarshal(d.Event, &own); err != nil {
			return err
		}
		if own.Type == event.RunCompleted {
			_, _ = fmt.Fprintf(out, "%s: %s\n", d.MemberName, own.Data)
			return w.DeleteTeam(ctx, team.TeamID)
		}
	}
	return nil
}

func task(ctx context.Context, w *waggle.Client, out io.Writer) error {
	task, err := w.CreateTask(ctx, api.NewTask{AgentName: "shouter", Data: json.RawMessage(`{"text": "hello"}`)})
	if err != nil {
		return err
	}
	result, err := w.TaskResult(ctx, task)
	_, _ = fmt.Fprintln(out, string(result))
	return err
}

func writeAgent(ctx context.Context, url string) error {
	o := swarm.AgentOptions{Options: swarm.Options{URL: url}, Name: "shouter", Capabilities: []string{"shouting"}}
	shouter, err := swarm.NewAgent(o, func(ctx context.Context, t *swarm.Task) (any, error) {
		var data struct{ Text, Description, Content string } // of a task, a step of a plan, a message
		if err := t.Decode(&data); err != nil {
			return nil, err
		}
		if err := t.Progress(ctx, 0.5, "taking a deep breath"); err != nil {
			return nil, err
		}
		return strings.ToUpper(data.Text+data.Description+data.Content) + "!", nil
	})
	if err != nil {
		return err
	}
	return shouter.Run(ctx) // until ctx ends
}

func writeTools(ctx context.Context, url string) error {
	add := swarm.Tool{
		ID: "add", Description: "Adds two numbers.", Idempotent: true,
		InputSchema: json.RawMessage(`{"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}`),
		Run: func(_ context.Context, c *swarm.ToolRun) (any, error) {
			var numbers struct{ A, B float64 }
			err := c.Decode(&numbers)
			return numbers.A + numbers.B, err
		},
	}
	calculator, err := swarm.NewService(swarm.ServiceOptions{Options: swarm.Options{URL: url}, ID: "calculator", Name: "calculator", Tools: []swarm.Tool{add}})
	if err != nil {
		return err
	}
	return calculator.Run(ctx)
}

func sessions(ctx context.Context, w *waggle.Client, out io.Writer) error {
	list, err := w.ListSome(ctx, waggle.Some{Query: url.Values{"q": {"notes"}}}, "sessions", "sessions")
	if err != nil {
		return err
	}
	var found api.SessionList
	err = json.Unmarshal(list, &found)
	for _, s := range found.Sessions {
		_, _ = fmt.Fprintln(out, s.SessionID, s.State, s.Question)
	}
	return err
}
