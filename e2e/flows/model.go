package flows

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// actor is a model that does what questions and titles of tasks tell it, so that one
// server plays in all flows at once. Of a question, each part between semicolons is a
// task; one that begins with "then" depends on the one before it, one that begins with
// "finally" on all. Some parts are stage directions instead:
//
//	plan badly         every plan is invalid
//	plan badly once    the first plan is invalid
//	plan a circle once the tasks of the first one depend on each other
//	hold plan KEY      half a plan is there until the gate is opened
//	hold answer KEY    the same of the answer that is made of the results
//
// And of tasks:
//
//	say TEXT           the result is the text
//	hold KEY           half a result is there until the gate is opened
//	pieces KEY         a third is there until the gate is opened, and two until the gate "KEY end" is
//	fail N KEY         the first N attempts break off in the middle
//	refuse             the model says that the request is bad
//
// All others are answered as by scripted.Smart, which calls tools.
type actor struct {
	mu    sync.Mutex
	gates map[string]chan struct{}
	asked map[string]int
	smart scripted.Script
}

func newActor() *actor {
	return &actor{gates: map[string]chan struct{}{}, asked: map[string]int{}, smart: scripted.Smart()}
}

// gate returns what is closed once the gate is open.
func (a *actor) gate(key string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gates[key] == nil {
		a.gates[key] = make(chan struct{})
	}
	return a.gates[key]
}

// open lets the answers that wait at a gate continue.
func (a *actor) open(key string) { close(a.gate(key)) }

// times counts how often a thing was asked for.
func (a *actor) times(key string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[key]++
	return a.asked[key]
}

// script is the model.
func (a *actor) script() scripted.Script {
	return scripted.Stages{Plan: a.plan, Solve: a.solve, Aggregate: a.aggregate}.Script()
}

// direct returns what stands after a stage direction in a question.
func direct(question, direction string) (string, bool) {
	for part := range strings.SplitSeq(question, ";") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(part), direction); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

func (a *actor) plan(x *scripted.Exchange) scripted.Reply {
	q := x.Data.Question
	if often, ok := direct(q, "plan badly"); ok && (often == "" || len(x.Data.Feedback) == 0) {
		return words("I would rather not.")
	}
	tasks := parts(q)
	if _, ok := direct(q, "plan a circle"); ok && len(x.Data.Feedback) == 0 {
		tasks[0].Dependencies = []string{tasks[len(tasks)-1].ID}
	}
	raw, err := json.Marshal(map[string]any{
		"tasks": tasks, "summary": fmt.Sprintf("A plan of %d", len(tasks)), "reasoning": "Each part is a task.",
	})
	if err != nil {
		return scripted.Fail(http.StatusInternalServerError, "api_error", err.Error())
	}
	if key, ok := direct(q, "hold plan "); ok {
		const half = 8 // bytes: {"reason
		return scripted.Stream(scripted.Text(string(raw[:half])), scripted.Gate(a.gate(key)), scripted.Text(string(raw[half:])), scripted.Usage(7, 5))
	}
	return words(string(raw))
}

// parts makes tasks of a question.
func parts(question string) []event.Step {
	var tasks []event.Step
	for part := range strings.SplitSeq(question, ";") {
		part = strings.TrimSpace(part)
		if part == "" || strings.HasPrefix(part, "plan ") || strings.HasPrefix(part, "hold plan ") || strings.HasPrefix(part, "hold answer ") {
			continue
		}
		t := event.Step{ID: fmt.Sprintf("task_%d", len(tasks)+1), Title: part}
		if rest, ok := strings.CutPrefix(part, "then "); ok {
			t.Title, t.Dependencies = rest, []string{tasks[len(tasks)-1].ID}
		}
		if rest, ok := strings.CutPrefix(part, "finally "); ok {
			t.Title = rest
			for _, before := range tasks {
				t.Dependencies = append(t.Dependencies, before.ID)
			}
		}
		tasks = append(tasks, t)
	}
	return tasks
}

func (a *actor) solve(x *scripted.Exchange) scripted.Reply {
	verb, rest, _ := strings.Cut(x.Data.Task.Title, " ")
	switch verb {
	case "say":
		return words(rest)
	case "hold":
		return a.held(rest)
	case "pieces":
		return scripted.Stream(scripted.Text("one "), scripted.Gate(a.gate(rest)), scripted.Text("two "), scripted.Gate(a.gate(rest+" end")),
			scripted.Text("three"), scripted.Usage(7, 5))
	case "refuse":
		return scripted.Fail(http.StatusBadRequest, "invalid_request_error", "no")
	case "fail":
		var n int
		var key string
		if _, err := fmt.Sscan(rest, &n, &key); err == nil && a.times(key) <= n {
			return scripted.Stream(scripted.Text("half "), scripted.Trouble("server_error", "out of order"))
		}
		return words("mended")
	}
	return a.smart(x)
}

func (a *actor) aggregate(x *scripted.Exchange) scripted.Reply {
	if key, ok := direct(x.Data.Question, "hold answer "); ok {
		return a.held(key)
	}
	return a.smart(x)
}

func (a *actor) held(key string) scripted.Reply {
	return scripted.Stream(scripted.Text("half "), scripted.Gate(a.gate(key)), scripted.Text("done"), scripted.Usage(7, 5))
}

// words says a text word by word.
func words(text string) scripted.Reply {
	return scripted.Stream(scripted.Text(scripted.Words(text)...), scripted.Usage(7, 5))
}
