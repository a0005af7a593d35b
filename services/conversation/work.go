package conversation

import "github.com/waggle-dev/waggle/proto-schemas/event"

// StepKind says what a worker has to do next for a run.
type StepKind int

// The steps of a run, in the order in which they are looked for.
const (
	StepNone     StepKind = iota // the run has ended
	StepDiscard                  // messages of a dead attempt are still open
	StepCalls                    // tool calls of the last message have no outcome
	StepGenerate                 // it is the model's turn
	StepFinish                   // the last message is the answer
)

// Step is the next thing to do for a run.
type Step struct {
	Kind    StepKind
	Discard []string         // StepDiscard: message ids
	Calls   []event.ToolCall // StepCalls: those without an outcome, in the model's order
	Answer  Message          // StepFinish
	Rounds  int              // messages of the model so far
}

// Next returns what is left to do for the run. It depends on nothing but the log,
// so a worker that takes over goes on exactly where the dead one stopped.
func (s *State) Next(runID string) Step {
	r := s.Run(runID)
	if r == nil || r.Status != Running {
		return Step{Kind: StepNone}
	}
	st := Step{Rounds: len(r.Messages)}
	if len(r.Open) > 0 {
		st.Kind, st.Discard = StepDiscard, append([]string(nil), r.Open...)
		return st
	}
	if len(r.Messages) == 0 {
		st.Kind = StepGenerate
		return st
	}
	last := r.Messages[len(r.Messages)-1]
	if len(last.ToolCalls) == 0 {
		st.Kind, st.Answer = StepFinish, last
		return st
	}
	st.Calls = s.unsettled(last)
	st.Kind = StepCalls
	if len(st.Calls) == 0 {
		st.Kind = StepGenerate
	}
	return st
}

func (s *State) unsettled(m Message) []event.ToolCall {
	var out []event.ToolCall
	for _, tc := range m.ToolCalls {
		if c := s.calls[tc.ID]; c == nil || !c.Status.Final() {
			out = append(out, tc)
		}
	}
	return out
}

// Line is one line of the conversation as a model sees it.
type Line struct {
	Role       string // user, assistant, tool
	Content    string
	ToolCalls  []event.ToolCall
	ToolCallID string
	IsError    bool
}

// History returns the conversation up to and including the run, oldest first. Of
// earlier runs it holds what was said and done; messages whose tool calls never
// got an outcome are left out, because no model accepts them. Whole earlier runs
// are dropped, oldest first, until the text fits into limit bytes; the run itself
// is always whole. dropped is the number of runs left out.
func (s *State) History(runID string, limit int) (lines []Line, dropped int) {
	var blocks [][]Line
	size := 0
	for i := s.index(runID); i >= 0; i-- {
		block := s.lines(s.order[i])
		n := bytesOf(block)
		if len(blocks) > 0 && size+n > limit {
			dropped = i + 1
			break
		}
		size += n
		blocks = append(blocks, block)
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		lines = append(lines, blocks[i]...)
	}
	return lines, dropped
}

func (s *State) index(runID string) int {
	for i, r := range s.order {
		if r.ID == runID {
			return i
		}
	}
	return -1
}

func (s *State) lines(r *Run) []Line {
	out := []Line{{Role: event.RoleUser, Content: r.Content}}
	for _, m := range r.Messages {
		if len(s.unsettled(m)) > 0 {
			break
		}
		out = append(out, Line{Role: event.RoleAssistant, Content: m.Content, ToolCalls: m.ToolCalls})
		for _, tc := range m.ToolCalls {
			c := s.calls[tc.ID]
			out = append(out, Line{Role: "tool", ToolCallID: c.ID, Content: c.Result, IsError: c.Status != CallCompleted})
		}
	}
	return out
}

func bytesOf(lines []Line) int {
	n := 0
	for _, l := range lines {
		n += len(l.Content)
		for _, tc := range l.ToolCalls {
			n += len(tc.Arguments)
		}
	}
	return n
}
