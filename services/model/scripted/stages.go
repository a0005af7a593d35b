package scripted

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Stages answers requests by their stage. Smart answers for nil scripts.
type Stages struct {
	Plan      Script
	Tasks     map[string]Script // solving, by the step's id
	Solve     Script            // solving the steps that Tasks does not name
	Aggregate Script
	Chat      Script // requests without a stage
}

func (s Stages) of(x *Exchange) Script {
	switch x.Stage {
	case event.StagePlanning:
		return s.Plan
	case event.StageSolving:
		if script := s.Tasks[x.Task]; script != nil {
			return script
		}
		return s.Solve
	case event.StageAggregation:
		return s.Aggregate
	}
	return s.Chat
}

// InTurn answers the n-th request that it receives with the n-th reply, and those after the last with the last. Unlike
// Sequence it has its own count, so that it can be a part of Stages.
func InTurn(replies ...Reply) Script {
	var n atomic.Int64
	return func(*Exchange) Reply { return replies[min(n.Add(1), int64(len(replies)))-1] }
}

// Plan answers with a plan of the steps, streamed as JSON, and a token a word.
func Plan(tasks ...event.Step) Reply {
	raw, err := json.Marshal(map[string]any{
		"tasks": tasks, "summary": fmt.Sprintf("A plan of %d tasks", len(tasks)), "reasoning": "The script says so.",
	})
	if err != nil { // a step's context is not JSON
		return Fail(500, "api_error", err.Error())
	}
	return say(string(raw), 1)
}

// say streams a text word by word and counts the words.
func say(text string, in int) Reply {
	all := Words(text)
	return Stream(Text(all...), Usage(int64(in), int64(len(all))))
}

// smartPlan makes a step of each part between semicolons. A part that begins with "then" depends on the previous one.
func smartPlan(question string) []event.Step {
	var tasks []event.Step
	for part := range strings.SplitSeq(question, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		t := event.Step{ID: fmt.Sprintf("task_%d", len(tasks)+1)}
		rest, then := strings.CutPrefix(part, "then ")
		if t.Title = rest; then && len(tasks) > 0 {
			t.Dependencies = []string{tasks[len(tasks)-1].ID}
		}
		tasks = append(tasks, t)
	}
	return tasks
}

func smartAnswer(x *Exchange) string {
	var parts []string
	for _, r := range x.Data.Results {
		parts = append(parts, fmt.Sprintf("%s %s: %s%s", r.Title, r.Status, r.Output, r.Error))
	}
	return strings.Join(parts, "\n")
}
