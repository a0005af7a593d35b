package scripted

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Stages answers requests by what they are part of. What is nil is left to Smart.
type Stages struct {
	Plan      Script
	Tasks     map[string]Script // solving, by the task's id
	Solve     Script            // solving the tasks that Tasks does not name
	Aggregate Script
	Chat      Script // requests that belong to no stage
}

// Script returns the script that answers by stage.
func (s Stages) Script() Script {
	smart := Smart()
	return func(x *Exchange) Reply {
		script := s.of(x)
		if script == nil {
			script = smart
		}
		return script(x)
	}
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

// InTurn answers the n-th request that it is given with the n-th reply, and those
// after the last with the last. Unlike Sequence it counts for itself, so that it can
// be a part of Stages.
func InTurn(replies ...Reply) Script {
	var n atomic.Int64
	return func(*Exchange) Reply { return replies[min(n.Add(1), int64(len(replies)))-1] }
}

// Plan answers with a plan of the tasks, streamed as JSON, and a token a word.
func Plan(tasks ...event.Step) Reply {
	raw, err := json.Marshal(map[string]any{
		"tasks": tasks, "summary": fmt.Sprintf("A plan of %d tasks", len(tasks)), "reasoning": "The script says so.",
	})
	if err != nil { // a task's context is no JSON
		return Fail(500, "api_error", err.Error())
	}
	return say(string(raw), 1)
}

// say streams a text word by word and counts the words.
func say(text string, in int) Reply {
	all := Words(text)
	return Stream(Text(all...), Usage(int64(in), int64(len(all))))
}

// smartStage is Smart's answer in a stage, and whether it has one that is not a
// chat's.
func smartStage(x *Exchange) (Reply, bool) {
	in := len(strings.Fields(x.Data.Question))
	switch {
	case x.Stage == event.StagePlanning:
		return Plan(smartPlan(x.Data.Question)...), true
	case x.Stage == event.StageAggregation:
		return say(smartAnswer(x), in), true
	case x.Prompt.Schema != nil && x.Stage == "":
		user, _ := turn(x.Prompt.Messages)
		return Plan(smartPlan(user)...), true
	}
	return Reply{}, false
}

// smartPlan makes a task of each part between semicolons. One that begins with "then"
// depends on the one before it.
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
