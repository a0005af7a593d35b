package session

import (
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/plan"
)

const (
	// maxMemory and maxMemoryBytes bound the part of the conversation in a readable
	// state. MyAgent's own server had the same limits.
	maxMemory      = 100
	maxMemoryBytes = 100_000
	// maxTaskText bounds each text of a task there, in bytes: a hundred tasks then fit
	// a frame many times over. The signed state has them whole.
	maxTaskText = 500
)

// readable is the state of a session for clients that display it.
type readable struct {
	Stage     string      `json:"stage"` // planning, confirmation, solving, aggregation, idle
	Plan      planContext `json:"plan_context"`
	Current   *string     `json:"current_task_id"`
	Completed []string    `json:"completed_task_ids"`
	Agent     agentState  `json:"agent_state"`
}

type planContext struct {
	Question string      `json:"question"`
	Tasks    []taskState `json:"tasks"`
	Status   string      `json:"status"` // idle, in_progress, completed, failed, cancelled
}

type taskState struct {
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Description  string   `json:"description,omitempty"`
	Dependencies []string `json:"dependencies,omitempty"`
	Status       string   `json:"status"` // waiting, running, completed, failed, cancelled
	Attempt      int      `json:"attempt"`
	Output       string   `json:"output,omitempty"`
	Error        string   `json:"error,omitempty"`
}

type agentState struct {
	Memory []memory  `json:"llm_memory"` // the newest lines, oldest first
	Tools  toolState `json:"tool_state"`
}

type memory struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, as the model wrote it
}

type toolState struct {
	Calls int        `json:"calls"`
	Open  []openCall `json:"open"` // without an outcome
}

type openCall struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
}

// describe returns the readable state, with the newest lines of the conversation
// within limit bytes.
func describe(st *conversation.State, snap conversation.Snapshot, limit int) readable {
	out := readable{
		Stage: snap.Stage(), Completed: []string{},
		Plan: planContext{Tasks: []taskState{}, Status: "idle"},
		Agent: agentState{
			Memory: recall(snap, limit),
			Tools:  toolState{Calls: snap.Usage.ToolCalls, Open: openCalls(st)},
		},
	}
	if snap.Run == nil {
		return out
	}
	out.Plan.Question, out.Plan.Status = snap.Run.Content, string(snap.Run.Status)
	if snap.Run.Question != "" {
		out.Plan.Question = snap.Run.Question
	}
	if snap.Run.Status == conversation.Running {
		out.Plan.Status = "in_progress"
	}
	running := runningTasks(st.Run(snap.Run.ID))
	for _, t := range snap.Run.Steps {
		one := taskState{
			ID: t.Step.ID, Title: clip(t.Step.Title, maxTaskText), Description: clip(t.Step.Description, maxTaskText),
			Dependencies: t.Step.Dependencies, Status: t.Status, Attempt: t.Attempt,
			Output: clip(t.Output, maxTaskText), Error: clip(t.Error, maxTaskText),
		}
		if running[one.ID] {
			one.Status = "running"
			if out.Current == nil {
				out.Current = &one.ID
			}
		}
		if one.Status == "completed" {
			out.Completed = append(out.Completed, one.ID)
		}
		out.Plan.Tasks = append(out.Plan.Tasks, one)
	}
	return out
}

// runningTasks returns the ids of the tasks that are being solved, which a snapshot
// does not tell: elsewhere they wait.
func runningTasks(r *conversation.Run) map[string]bool {
	out := map[string]bool{}
	if r == nil || r.Plan == nil {
		return out
	}
	for _, t := range r.Plan.Steps {
		if t.State == plan.Running {
			out[t.ID] = true
		}
	}
	return out
}

// recall returns the newest lines of the conversation within limit bytes, the run that
// is on included.
func recall(snap conversation.Snapshot, limit int) []memory {
	all := make([]memory, 0, len(snap.History)+2)
	for _, l := range snap.History {
		m := memory{Role: l.Role, Content: l.Content, ToolCallID: l.ToolCallID}
		for _, c := range l.ToolCalls {
			m.ToolCalls = append(m.ToolCalls, call{ID: c.ID, Name: c.Name, Arguments: string(c.Arguments)})
		}
		all = append(all, m)
	}
	if r := snap.Run; r != nil {
		all = append(all, memory{Role: event.RoleUser, Content: r.Content})
		if r.Answer != "" {
			all = append(all, memory{Role: event.RoleAssistant, Content: r.Answer})
		}
	}
	size, from := 0, len(all)
	for from > 0 && len(all)-from < maxMemory {
		size += all[from-1].bytes()
		if size > limit {
			break
		}
		from--
	}
	return all[from:]
}

func (m memory) bytes() int {
	n := len(m.Content)
	for _, c := range m.ToolCalls {
		n += len(c.Arguments)
	}
	return n
}

// openCalls returns the tool calls of the run that is on which have no outcome.
func openCalls(st *conversation.State) []openCall {
	out := []openCall{}
	for _, w := range openJobs(st) {
		if len(w.Messages) == 0 {
			continue
		}
		for _, tc := range w.Messages[len(w.Messages)-1].ToolCalls {
			if c := st.Call(tc.ID); c != nil && !c.Status.Final() {
				out = append(out, openCall{ID: c.ID, Tool: c.Tool, Status: string(c.Status)})
			}
		}
	}
	return out
}

// openJobs returns the jobs of the active run that have not ended.
func openJobs(st *conversation.State) []*conversation.Job {
	r := st.Active()
	if r == nil {
		return nil
	}
	var out []*conversation.Job
	add := func(w *conversation.Job) {
		if w != nil && !w.Ended {
			out = append(out, w)
		}
	}
	if r.Plan == nil {
		add(st.Job(r.ID))
		return out
	}
	add(r.Plan.Job)
	for _, t := range r.Plan.Steps {
		add(t.Job)
	}
	return out
}

// clip cuts a text to at most n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
