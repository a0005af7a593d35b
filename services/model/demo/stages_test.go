package demo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/modeltest"
	"github.com/waggle-dev/waggle/services/model/prompt"
	"github.com/waggle-dev/waggle/services/plan"
)

// planned writes the plan for a question as "title<1,2", one step a line: the numbers are those of the steps that it waits
// for.
func planned(t *testing.T, question string, past ...model.Message) string {
	t.Helper()
	req := modeltest.Stage(t, event.StagePlanning, prompt.Data{Question: question})
	req.Messages = append(past, req.Messages...)
	r, err := modeltest.Generate(t.Context(), t, demo.New(), req)
	require.NoError(t, err)
	p, err := plan.Coerce([]byte(r.Text))
	require.NoError(t, err)
	var lines []string
	for _, k := range p.Tasks {
		var deps []string
		for _, d := range k.Dependencies {
			deps = append(deps, strings.TrimPrefix(d, "task_"))
		}
		lines = append(lines, k.Title+"<"+strings.Join(deps, ","))
	}
	return strings.Join(lines, "\n")
}

func TestPlans(t *testing.T) {
	for question, want := range map[string]string{
		"what is 2+2?": "what is 2+2<",
		"what is 2+2, what day is it, and what does todo.txt say?":      "what is 2+2<\nwhat day is it<\nwhat does todo.txt say<",
		"which files are in the workspace, and what does notes.md say?": "which files are in the workspace<\nwhat does notes.md say<",
		"Please list the files.":                                            "list the files<",
		"write hello to a.txt and then read it":                             "write hello to a.txt<\nread it<1",
		"what does todo.txt say and how many words does it have?":           "what does todo.txt say<\nhow many words does it have<1",
		"read todo.txt; write fly to todo.txt; read todo.txt":               "read todo.txt<\nwrite fly to todo.txt<1\nread todo.txt<2",
		"what is 2+3?; what is 7*6?; list the files; finally read notes.md": "what is 2+3<\nwhat is 7*6<\nlist the files<\nread notes.md<1,2,3",
		`write "then it goes" to a.txt; what is 3*3?`:                       `write "then it goes" to a.txt<` + "\nwhat is 3*3<",
		"what time is it; what is 1+1":                                      "what time is it<\nwhat is 1+1<",
		"tell me a joke":                                                    "tell me a joke<",
		"hello":                                                             "hello<",
		"":                                                                  "help<",
		"search for milk. After that, say milk":                             "search for milk<\nsay milk<1",
		strings.Repeat("é", 80) + "; what is 2+3?":                          strings.Repeat("é", 69) + "...<\nwhat is 2+3<",
	} {
		require.Equal(t, want, planned(t, question), question)
	}
	past := model.Message{Role: model.RoleUser, Content: "read notes.md"}
	require.Equal(t, "how many words does it have<\nlist the files<", planned(t, "how many words does it have? list the files", past))
}

// TestAPlanNamesTheCapabilityThatIsAskedFor: only if an agent has it.
func TestAPlanNamesTheCapabilityThatIsAskedFor(t *testing.T) {
	for question, want := range map[string]string{
		"ask shouting to greet the bees":                   "greet the bees<shouting>",
		"Please ask the Shouting agent to greet the bees":  "greet the bees<shouting>",
		"what is 1+1; ask shouting loud to greet the bees": "what is 1+1<>\ngreet the bees<shouting loud>",
		"ask whispering to greet the bees":                 "ask whispering to greet the bees<>",
		"ask shouting":                                     "ask shouting<>",
		"ask shoutingly to greet":                          "ask shoutingly to greet<>",
		"what does shouting mean?":                         "what does shouting mean?<>",
	} {
		req := modeltest.Stage(t, event.StagePlanning, prompt.Data{Question: question, Capabilities: []string{"shouting", "shouting loud"}})
		r, err := modeltest.Generate(t.Context(), t, demo.New(), req)
		require.NoError(t, err)
		p, err := plan.Coerce([]byte(r.Text))
		require.NoError(t, err)
		var lines []string
		for _, k := range p.Tasks {
			lines = append(lines, k.Title+"<"+k.Capability+">")
		}
		require.Equal(t, want, strings.Join(lines, "\n"), question)
	}
}

func TestPlansOfAnything(t *testing.T) {
	for _, u := range append(shown, others...) {
		planned(t, u.say)
	}
	require.Equal(t, 16, strings.Count(planned(t, strings.Repeat("what is 2+2? ", 40)), "<"), "a bounded number of tasks")
}

// TestATaskKnowsItsInputs: "it" means the file of the previous step.
func TestATaskKnowsItsInputs(t *testing.T) {
	long := "write " + strings.Repeat("very ", 30) + "much to a.txt"
	for _, in := range []prompt.Result{
		{ID: "a", Title: "write hello to a.txt", Status: "completed", Output: "Done."},
		{ID: "a", Title: long[:69] + "...", Status: "completed", Output: "Done. Wrote a.txt."},
	} {
		req := modeltest.Stage(t, event.StageSolving, prompt.Data{
			Task: &event.Step{ID: "b", Title: "short", Description: "read it"}, Inputs: []prompt.Result{in},
		})
		r, err := modeltest.Generate(t.Context(), t, demo.New(), req)
		require.NoError(t, err)
		require.Len(t, r.ToolCalls, 1)
		require.JSONEq(t, `{"path":"a.txt"}`, string(r.ToolCalls[0].Arguments))
	}
}

func TestSummaries(t *testing.T) {
	done := prompt.Result{ID: "a", Title: "A", Status: "completed", Output: "= 4"}
	for want, results := range map[string][]prompt.Result{
		"= 4": {done},
		"Here is what came of 2 steps:\n\n1. A\n= 4\n\n2. B\nDone, without a result.": {done, {Title: "B", Status: "completed"}},
		"Here is what came of 3 steps (1 done, 1 failed, 1 cancelled):\n\n1. A\n= 4\n\n2. B\nThis was not done: too hard\n\n3. C\nThis was not done.": {
			done, {Title: "B", Status: "failed", Error: "too hard"}, {Title: "C", Status: "cancelled"},
		},
	} {
		r, err := modeltest.Generate(t.Context(), t, demo.New(), modeltest.Stage(t, event.StageAggregation, prompt.Data{Results: results}))
		require.NoError(t, err)
		require.Equal(t, want, r.Text, fmt.Sprint(results))
	}
}
